"""Stand-ins for legacy names that cannot work: they import, and any use of one is an error."""

from __future__ import annotations

from typing import Any, NoReturn

from estimator2strategy.errors import UnsupportedError


class Refused:
    """Stands for a name that cannot work.

    Programs import at their top what they mostly never call, so that importing must not fail.

    Raises:
        UnsupportedError: It is called, subclassed or indexed; of a class, an attribute is read.
    """

    def __init__(self, name: str, advice: str):
        self.__dict__.update(_name=name, _advice=advice)

    def _refuse(self, *unused: Any, **unused_kwargs: Any) -> NoReturn:
        raise UnsupportedError(f"{self._name} is not supported. {self._advice}")

    __call__ = __iter__ = __getitem__ = __enter__ = __mro_entries__ = _refuse

    def __instancecheck__(self, instance: object) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._name.rpartition(".")[2][:1].isupper():
            self._refuse()  # of a class: ModeKeys.TRAIN would be compared with others
        return Refused(f"{self._name}.{name}", self._advice)  # of a module: it can be imported

    def __repr__(self) -> str:
        return f"<{self._name}, not supported>"
