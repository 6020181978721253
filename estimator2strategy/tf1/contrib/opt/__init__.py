"""`tf.contrib.opt` of TF 1.15: optimizers with the interface of `tf.train.Optimizer`.

`optimizers_of_1_15.py` has most of them, `sign_optimizers.py` those that look at signs, and
`external_optimizer.py` that of SciPy, which minimises outside of the graph.

Refused: optimizers that average over workers (`ElasticAverageOptimizer`, ...), and experiments
(`ShampooOptimizer`, `GGTOptimizer`, ...).
"""

from __future__ import annotations

from estimator2strategy.tf1.contrib import names_of

__getattr__ = names_of("opt", globals())
