"""Shared by the examples: losses out of event files, and a picture of two curves."""

import glob
import os

import numpy as np


def event_losses(model_dir, tag="loss"):
    """Steps and values of a scalar summary: two arrays."""
    import tensorflow as tf

    by_step = {}
    for path in sorted(glob.glob(os.path.join(model_dir, "events*"))):
        for event in tf.compat.v1.train.summary_iterator(path):
            for value in event.summary.value:
                if value.tag == tag:
                    by_step[event.step] = value.simple_value
    steps = sorted(by_step)
    return np.array(steps), np.array([by_step[step] for step in steps])


def pictures(path, title, draws):
    """Draws side by side, with one function `draw(axes)` each, and saves the picture."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    width = 5.2 * len(draws)
    figure, all_axes = plt.subplots(1, len(draws), figsize=(width, 4.2), layout="constrained")
    figure.suptitle(title)
    for draw, axes in zip(draws, np.atleast_1d(all_axes)):
        draw(axes)
    figure.savefig(path, dpi=80)
    plt.close(figure)
    print(f"Picture: {path}")


def curves(named, ylabel="loss", title=""):
    """A `draw` for `pictures`: {name: (steps, values)}, the later ones thinner and on top."""

    def draw(axes):
        for i, (name, (steps, values)) in enumerate(named.items()):
            axes.plot(steps, values, lw=max(5 - 3 * i, 1), alpha=0.8, label=name)
        axes.set(xlabel="training step", ylabel=ylabel)
        axes.set_title(title, fontsize=10)
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)

    return draw


def largest_difference(first, second):
    """Of two (steps, values), where they have the same steps."""
    common, i, j = np.intersect1d(first[0], second[0], return_indices=True)
    assert len(common), "no step in common"
    return float(np.abs(first[1][i] - second[1][j]).max())
