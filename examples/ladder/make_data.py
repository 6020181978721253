"""Writes scikit-learn's 1,797 handwritten digits, in a fixed order, as digits.npz.

python make_data.py --data_dir=/tmp/digits
"""

import argparse
import os

import numpy as np
from sklearn.datasets import load_digits


def write_digits(data_dir):
    """1,437 digits to train and 360 to test: images Nx8x8x1 float32 in [0, 1], labels int32."""
    digits = load_digits()
    order = np.random.RandomState(0).permutation(len(digits.target))
    images = (digits.images[order, :, :, np.newaxis] / 16).astype(np.float32)
    labels = digits.target[order].astype(np.int32)
    os.makedirs(data_dir, exist_ok=True)
    np.savez(
        os.path.join(data_dir, "digits.npz"),
        train_images=images[:1437],
        train_labels=labels[:1437],
        test_images=images[1437:],
        test_labels=labels[1437:],
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data_dir", required=True, help="directory to write to")
    write_digits(parser.parse_args().data_dir)
