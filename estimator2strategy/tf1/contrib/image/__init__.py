"""`tf.contrib.image` of TF 1.15, written with plain ops, because TensorFlow has lost its kernels.

`image_transforms.py` has projective transforms and colours, `image_warps.py` has warps.

Refused: `bipartite_match`, `connected_components` and `single_image_random_dot_stereograms`.
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("image", globals())
