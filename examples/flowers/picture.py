"""Draws a training in one go over one that was interrupted and went on.

    python picture.py --whole=/tmp/flowers/model --resumed=/tmp/flowers/resumed --out=flowers.png

Exits with 1 when their losses differ by more than 0.0001.
"""

import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import shared

TOLERANCE = 1e-4


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--whole", required=True)
    parser.add_argument("--resumed", required=True)
    parser.add_argument("--out", default="flowers.png")
    args = parser.parse_args(argv)
    whole, resumed = shared.event_losses(args.whole), shared.event_losses(args.resumed)
    accuracies = shared.event_losses(os.path.join(args.whole, "eval"), "accuracy")
    difference = shared.largest_difference(whole, resumed)
    print(f"Held-out accuracy: {accuracies[1][-1]:.1%}")
    print(f"Largest difference of the losses: {difference:.1e}")
    curves = shared.curves({"two calls of train": whole, "two runs of the program": resumed})
    found = shared.curves({"held-out": accuracies}, ylabel="accuracy")
    shared.pictures(args.out, "Flower or temple: trained on 4 emulated cores", [curves, found])
    return 0 if difference <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
