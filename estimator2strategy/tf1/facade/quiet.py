"""Keeps TensorFlow from telling a program's reader to change what the program need not change.

A legacy program calls layers, feature columns and cells that newer releases call deprecated. Each
first call logs a notice of two or three lines. Here they work, and their replacements do not fit a
program of TensorFlow 1, so that one line stands for all notices.
"""

from __future__ import annotations

import functools
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

from estimator2strategy.engine import patches

VARIABLE = "E2S_DEPRECATIONS"

# Lines of `tensorflow/python/util/deprecation.py` begin with the place of a call; the cells of
# TensorFlow 1 log a notice of their own.
_LOGGED = re.compile(
    r"From %s: .* deprecated|`tf\.nn\.rnn_cell\.\w+` is deprecated|Please fix your imports\. Module"
)
# Warnings of tf-keras when it makes a layer or a cell of TensorFlow 1.
_WARNED = re.compile(
    r"`(tf\.layers|tf\.nn\.rnn_cell|[Ll]ayer)\..*` is deprecated and will be removed"
)


class _Notices(logging.Filter):
    """Holds back notices of deprecation; all other records pass.

    Args:
        is_legacy: Says of the code that calls what is deprecated now if its notices are held back.
    """

    def __init__(self, is_legacy: Callable[[], bool]):
        super().__init__()
        self._is_legacy = is_legacy

    def filter(self, record: logging.LogRecord) -> bool:
        if not (isinstance(record.msg, str) and _LOGGED.match(record.msg)) or not self._is_legacy():
            return True
        _say_so()
        return False


@functools.cache
def install() -> None:
    """Holds back notices of deprecation in this process, unless E2S_DEPRECATIONS is set."""
    if _are_wanted():
        return
    patches.noted("notices of deprecation")
    logging.getLogger("tensorflow").addFilter(_Notices(lambda: True))
    shown = warnings.showwarning

    def show(message: Any, category: Any, *place: Any, **options: Any) -> None:
        if _WARNED.match(str(message)):
            _say_so()
        else:
            shown(message, category, *place, **options)

    patches.put("notices of deprecation", warnings, "showwarning", show)


@functools.cache
def install_for(is_legacy: Callable[[], bool]) -> None:
    """As `install`, for logged notices about the code that `is_legacy` answers for alone."""
    if not _are_wanted():
        patches.noted("notices of deprecation")
        logging.getLogger("tensorflow").addFilter(_Notices(is_legacy))


def _are_wanted() -> bool:
    return os.environ.get(VARIABLE, "0") not in ("", "0")


@functools.cache
def _say_so() -> None:
    sys.stderr.write(
        "e2s: TensorFlow's notices of deprecation are not shown: this program need not change. "
        f"To see them: {VARIABLE}=1\n"
    )
