"""Cuts scikit-learn's two photographs (a flower, a temple) into 32x32 JPEG files, a folder each.

python make_jpegs.py --out=/tmp/flowers/jpegs
"""

import argparse
import os

import numpy as np
import tensorflow as tf
from sklearn.datasets import load_sample_images

SIZE = 32
CLASSES = ("china", "flower")


def write_jpegs(folder, patches=400):
    """Writes `patches` files of each photograph: of every five the last is to test."""
    for name, photo in zip(CLASSES, load_sample_images().images):
        random = np.random.RandomState(0)
        rows = random.randint(0, photo.shape[0] - SIZE, patches)
        columns = random.randint(0, photo.shape[1] - SIZE, patches)
        for i, (row, column) in enumerate(zip(rows, columns)):
            split = "test" if i % 5 == 4 else "train"
            path = os.path.join(folder, split, name, f"{i:04}.jpg")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            patch = photo[row : row + SIZE, column : column + SIZE]
            tf.io.write_file(path, tf.io.encode_jpeg(patch, quality=95))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="folder to write to")
    parser.add_argument("--patches", type=int, default=400, help="files of each photograph")
    args = parser.parse_args()
    write_jpegs(args.out, args.patches)
