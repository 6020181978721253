"""Programs under test define absl flags when they are imported, some of the same names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from absl import flags


@pytest.fixture(scope="module")
def imported() -> Iterator[Callable[[Callable[[], ModuleType]], ModuleType]]:
    """`imported(function)` imports a program; its flags and modules go when the tests end."""
    modules, names = set(sys.modules), set(flags.FLAGS)

    def run(function: Callable[[], ModuleType]) -> ModuleType:
        module = function()
        flags.FLAGS.mark_as_parsed()
        return module

    yield run
    for name in set(flags.FLAGS) - names:
        delattr(flags.FLAGS, name)
    for name in set(sys.modules) - modules:
        if name.partition(".")[0] in ("bert", "mnist_tpu"):
            del sys.modules[name]
