"""Codemods. Each is a function in `codemods/` that registers itself:

Example:

    @codemod("no-such-thing", stage=2, tier=SafetyTier.SAFE)
    def find(module):
        for call in module.calls("tf.no_such_thing"):
            yield module.replace(call.node, "tf.thing()")

`codemods/samples/no-such-thing.md` says what it does, why, and what proves it. It has programs
that change, each before and after, and programs that stay as they are. Where a codemod cannot
decide, it yields a `Todo`. It is called again on its own result until it finds nothing more, so it
must not find code that it has made itself.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from estimator2strategy.tools.check.rule import blocks, sections
from estimator2strategy.tools.migrate import codemods as package
from estimator2strategy.tools.migrate.change import Change, SafetyTier, Todo

# Stage -> what it does. 0 and 1 change no file.
STAGES = {
    0: "look",
    1: "run it unchanged",
    2: "change the import, and the names that are only spelled otherwise",
    3: "metrics to Keras",
    4: "inputs to dataset functions",
    5: "optimizer and learning rate to Keras",
    6: "layers to keras.layers",
    7: "a strategy, callbacks and a Keras training loop",
    8: "do without this package",
}

# Stage -> the command that is all of it.
WITHOUT_CHANGES = {0: "e2s check PATH", 1: "e2s run PROGRAM"}


if TYPE_CHECKING:
    from estimator2strategy.tools.migrate.module import Module

__all__ = ["Change", "Codemod", "SafetyTier", "Sample", "Todo", "codemod", "codemods"]


@dataclasses.dataclass(frozen=True)
class Sample:
    """A program before and after the codemod (and the marks that it leaves)."""

    before: str
    after: str


@dataclasses.dataclass(frozen=True)
class Codemod:
    """A codemod.

    Attributes:
        name: Its name on the command line: "metrics-to-keras".
        stage: The rung of the ladder that it belongs to.
        tier: The certainty of its changes, unless a change has its own.
        find: Finds its cases in a file.
        settles: Codemods whose marks say nothing any more in a file that it has changed.
        words: A file without any of these words has nothing for it; without words, each may have.
        is_of_program: True if it changes files together: `module.program` has the others.
    """

    name: str
    stage: int
    tier: SafetyTier
    find: Callable[[Module], Iterable[Change | Todo]]
    settles: tuple[str, ...] = ()
    words: tuple[str, ...] = ()
    is_of_program: bool = False

    def may_find(self, text: str) -> bool:
        """True if a file may have something for it, or a mark of it."""
        if not self.words or any(word in text for word in self.words):
            return True
        return f"# TODO(e2s): {self.name}:" in text

    @property
    def title(self) -> str:
        """Its effect, in one line."""
        return _flat(self._page.partition("## ")[0].partition("\n")[2])

    @property
    def why(self) -> str:
        """The facts that it relies on, and the cases that it leaves alone."""
        return _flat(self._sections["Why"])

    @property
    def proof(self) -> str:
        """The evidence that the program does the same (or, for review, what may differ)."""
        return _flat(self._sections["Proof"])

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Programs that it changes, before and after."""
        programs = blocks(self._sections["Changed"])
        return tuple(map(Sample, programs[::2], programs[1::2]))

    @property
    def unchanged(self) -> list[str]:
        """Programs that it must leave as they are."""
        return blocks(self._sections["Unchanged"])

    @functools.cached_property
    def _page(self) -> str:
        path = Path(package.__path__[0]) / "samples" / f"{self.name}.md"
        return path.read_text(encoding="utf-8")

    @property
    def _sections(self) -> dict[str, str]:
        return sections(self._page)


def _flat(text: str) -> str:
    return " ".join(text.split())


_REGISTRY: dict[str, Codemod] = {}
# Rules of one stage go in this order; those that are not named come after them, by name.
_FIRST = (
    *("imports", "contrib", "estimator-names"),
    *("hooks-to-callbacks", "host-call-to-summaries", "model-fn-to-keras"),
)


def codemod(name: str, *, stage: int, **about: Any) -> Callable[..., Any]:
    """Registers the function below it as a codemod, with these fields of `Codemod`."""

    def register(find: Callable[..., Any]) -> Callable[..., Any]:
        if name in _REGISTRY or stage not in STAGES:
            raise ValueError(f"{name}: registered twice, or for a stage that is none")
        _REGISTRY[name] = Codemod(name, stage, find=find, **about)
        return find

    return register


@functools.cache
def codemods() -> dict[str, Codemod]:
    """All codemods, in the order in which they are applied."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")

    def order(codemod: Codemod) -> tuple[int, int, str]:
        place = _FIRST.index(codemod.name) if codemod.name in _FIRST else len(_FIRST)
        return codemod.stage, place, codemod.name

    return {one.name: one for one in sorted(_REGISTRY.values(), key=order)}
