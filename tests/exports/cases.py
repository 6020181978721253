"""The inputs and predictions that `models.py` keeps beside each export. It is Python 3.7."""

import base64
import json
import os

import numpy as np


def encoded(values):
    if values.dtype == object:
        return [base64.b64encode(value).decode() for value in values]
    return values.tolist()


def inputs_of(case):
    """The inputs of a case as NumPy arrays."""
    return {
        name: np.array([base64.b64decode(value) for value in values], object)
        if isinstance(values[0], str)
        else np.array(values, np.float32)
        for name, values in case["inputs"].items()
    }


def read(folder):
    with open(os.path.join(folder, "case.json")) as file:
        return json.load(file)


def difference(found, case):
    """The greatest difference of a result to the predictions."""
    expected = np.array(case["predictions"])
    found = np.asarray(found)
    if found.shape != expected.shape:
        raise ValueError(f"the result has shape {found.shape}, not {expected.shape}")
    return float(np.max(np.abs(found - expected)))


def differences(folder, answers, kinds=None):
    """Kind -> difference, or the first line of the error that `answers` raised.

    Args:
        folder: The folder of all kinds.
        answers: `answers(folder of the kind, case)` returns what is compared.
        kinds: Those to ask for; None: all.
    """
    found = {}
    for kind in kinds or sorted(os.listdir(folder)):
        inside = os.path.join(folder, kind)
        try:
            case = read(inside)
            answer = answers(inside, case)
            found[kind] = None if answer is None else difference(answer, case)
        except Exception as error:  # each consumer has its own
            found[kind] = f"{type(error).__name__}: {first_line(str(error))}"
    return found


def first_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0][:300] if lines else ""
