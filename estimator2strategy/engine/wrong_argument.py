"""The one form of the message that refuses a wrong argument.

    raise wrong_argument("steps must be an int > 0", "10", "Pass a number, or None.", TypeError)

    TypeError: steps must be an int > 0, given: '10'
      At train.py:12: model.train(input_fn, steps="10")
      Pass a number, or None.

It says what is wrong, the value that was given, the file and line of the call, and what to pass.

    @checked({"steps": ArgumentRule(callable, "must be a function", "Pass a function.")})
    def train(steps): ...

gives all messages about the arguments of `train` this form: that of a rule, of a call that does not
fit the signature, and of an error that the function raises itself and that names an argument.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import linecache
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, ParamSpec, TypeVar

from estimator2strategy.engine.spelling import did_you_mean
from estimator2strategy.engine.user_code import is_user_file
from estimator2strategy.errors import RecordingError

P = ParamSpec("P")
T = TypeVar("T")
_Error = TypeVar("_Error", bound=Exception)
_LONGEST = 160  # characters of a value in a message
_PACKAGE = __name__.partition(".")[0]
# Of these the repr says what they are.
_PLAIN = (str, bytes, int, float, bool, list, tuple, dict, set, type, type(None))
_AT = "\n  At "
_OURS = (TypeError, ValueError, RuntimeError, RecordingError)
# How messages of the original tell the value.
_TELLS_THE_VALUE = re.compile(r"(?i)\b(given|received|got|but provided)\b")


class ArgumentRule(NamedTuple):
    """A condition on an argument.

    Attributes:
        holds: True for a value that is taken.
        must: Follows the argument's name in the message; or the message, if it marks the name by
            backquotes, as some of the original's do.
        instead: The advice, as a sentence.
        error: The class of the error; programs catch the original's.
    """

    holds: Callable[[Any], bool]
    must: str
    instead: str
    error: type[Exception] = TypeError


def wrong_argument(
    what: str,
    value: Any,
    instead: str,
    error: type[_Error] = ValueError,  # type: ignore[assignment]
    at: str | None = None,
) -> _Error:
    """The error for an argument that is refused.

    Args:
        what: The argument's name, and what is wrong with it; the given value follows.
        value: The value that was given.
        instead: The advice, as a sentence.
        error: The exception's class: the original's, where programs catch it.
        at: The user's line, `file.py:12: source`, if it is not on the stack now.
    """
    given = " Given" if what.endswith(".") else ", given"
    return error(f"{what}{given}: {shown(value)}{_AT}{at or calling_line()}\n  {instead}")


def is_refusal(error: BaseException) -> bool:
    """True if an error refuses an argument, and so says where and what to do."""
    return isinstance(error, _OURS) and _AT in str(error)


def check(rules: Mapping[str, ArgumentRule], given: Mapping[str, Any]) -> None:
    """Raises the error of the first rule that a given argument breaks.

    Args:
        rules: Argument -> its rule.
        given: Argument -> its value; those without a rule are not looked at.
    """
    for name, value in given.items():
        if name in rules and not rules[name].holds(value):
            rule = rules[name]
            what = rule.must if "`" in rule.must else f"{name} {rule.must}"
            raise wrong_argument(what, value, rule.instead, rule.error)


def checked(rules: Mapping[str, ArgumentRule]) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Makes a decorator that gives all messages about a function's arguments the one form.

    Args:
        rules: Argument -> its rule.
    """

    def decorator(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def at_the_edge(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise _misfit(function, signature, args, kwargs, error) from None
            check(rules, _given(bound))
            with _completing(function, rules, bound):
                result = function(*args, **kwargs)
                if inspect.isgenerator(result):  # predict: what it raises, it raises later
                    return _each(result, _completing(function, rules, bound))  # type: ignore
                return result

        # `getfullargspec`, by which programs look at constructors, reads this and not __wrapped__.
        at_the_edge.__signature__ = signature  # type: ignore[attr-defined]
        return at_the_edge

    return decorator


def _misfit(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    error: TypeError,
) -> TypeError:
    """The error for a call that does not fit the signature."""
    parameters = signature.parameters
    called, takes = function.__qualname__, f"{function.__qualname__} takes {_listed(parameters)}."
    positions = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    unknown = [] if takes_all else [name for name in kwargs if name not in parameters]
    for name in positions[: len(args)]:
        if name in kwargs:  # `self`, of which nobody speaks, has the first position
            place = [n for n in positions if n not in _UNSPOKEN].index(name) + 1
            what = f"{called} got multiple values for argument {name!r}"
            instead = f"Pass it once: argument {place} by position is {name}, too."
            return wrong_argument(what, kwargs[name], f"{instead} {takes}", TypeError)
    if unknown:
        what = f"{called} got an unexpected keyword argument {unknown[0]!r}"
        instead = did_you_mean(unknown[0], _names(parameters), "Leave it out.")
        return wrong_argument(what, kwargs[unknown[0]], f"{instead} {takes}", TypeError)
    by_position = len(args) - len([name for name in positions[:1] if name in _UNSPOKEN])
    given = _Text(f"{by_position} by position, {len(kwargs)} by name")
    return wrong_argument(f"{called}: {error}", given, f"Pass what it takes: {takes}", TypeError)


_UNSPOKEN = ("self", "cls")


def _names(parameters: Mapping[str, inspect.Parameter]) -> list[str]:
    """The names of arguments that a call may give."""
    return [
        name
        for name, parameter in parameters.items()
        if name not in _UNSPOKEN and parameter.kind is not parameter.VAR_KEYWORD
    ]


def _listed(parameters: Mapping[str, inspect.Parameter]) -> str:
    """The arguments of a function: `size, color, **others`."""
    others = [f"**{name}" for name, p in parameters.items() if p.kind is p.VAR_KEYWORD]
    return ", ".join([*_names(parameters), *others])


def checked_init(rules: Mapping[str, ArgumentRule]) -> Callable[[type[T]], type[T]]:
    """Makes a class decorator that checks the constructor, as `checked` checks a function."""

    def decorator(cls: type[T]) -> type[T]:
        cls.__init__ = checked(rules)(cls.__init__)  # type: ignore[method-assign]
        return cls

    return decorator


class _Text(str):
    """Is shown without quotes."""

    __repr__ = str.__str__


def _given(bound: inspect.BoundArguments) -> dict[str, Any]:
    """Argument -> value, also those that a `**kwargs` takes."""
    named = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            named.update(named.pop(name, {}))
    return named


@contextlib.contextmanager
def _completing(
    function: Callable[..., Any], rules: Mapping[str, ArgumentRule], bound: inspect.BoundArguments
) -> Iterator[None]:
    """Gives an error of our own that names an argument the one form, if it has none."""
    try:
        yield
    except (TypeError, ValueError, RuntimeError) as error:
        message: Any = error.args[0] if len(error.args) == 1 else None
        raiser = _raiser(error)
        is_ours = raiser is not None and type(error) in _OURS
        if is_ours and isinstance(message, str) and _AT not in message:
            bound.apply_defaults()
            given = _given(bound)
            name = _named(message, list(given), ours=_is_ours(raiser))
            if name:
                if name.lower() not in message.lower():
                    message = f"`{name}`: {message}"
                instead = f"See help({function.__qualname__})."
                instead = rules[name].instead if name in rules else instead
                error.args = (
                    f"{_with_value(message, given[name])}{_AT}{calling_line()}\n  {instead}",
                )
        raise


def _each(results: Iterator[T], completing: contextlib.AbstractContextManager[None]) -> Iterator[T]:
    with completing:
        yield from results


def _named(message: str, names: list[str], ours: bool) -> str | None:
    """The argument that a message is about; of others than us it must be marked as one."""
    form = r"(?i)\b{}\b" if ours else "`{}`"
    # Messages of the original say "receiver_tensor" of one of receiver_tensors.
    words = {n: f"{n[:-1]}s?" if n.endswith("s") and not n.endswith("ss") else n for n in names}
    matches = {name: re.search(form.format(word), message) for name, word in words.items()}
    places = {name: match.start() for name, match in matches.items() if match}
    return min(places, key=places.__getitem__) if places else None


def _with_value(message: str, value: Any) -> str:
    message = message.rstrip()
    if _TELLS_THE_VALUE.search(message):
        return message
    return f"{message.rstrip('.')}, given: {shown(value)}"


def _raiser(error: Exception) -> Any:
    """The frame that raised an error; None if code of the user was in between."""
    traceback, frame = error.__traceback__, None
    while traceback is not None:
        frame = traceback.tb_frame
        if _is_the_users(frame):
            return None
        traceback = traceback.tb_next
    return frame


def shown(value: Any) -> str:
    """`value` on one line of bounded length; its type, too, where the text alone tells little."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # a repr of the user's own, which may do anything
        text = "?"
    if len(text) > _LONGEST:
        text = text[: _LONGEST - 4] + " ..."
    if isinstance(value, _PLAIN):
        return text
    name = type(value).__name__
    if not text:  # protocol buffers without a field
        return f"{name}()"
    return text if name in text else f"{text} ({name})"


def calling_line() -> str:
    """`file.py:12: source` of the innermost frame of the user's own on the stack."""
    frame = sys._getframe(1)
    while frame is not None and not _is_the_users(frame):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return "unknown line"
    filename, line = frame.f_code.co_filename, frame.f_lineno
    return f"{filename}:{line}: {linecache.getline(filename, line).strip()}".rstrip(" :")


def _is_the_users(frame: Any) -> bool:
    return not _is_ours(frame) and is_user_file(frame.f_code.co_filename)


def _is_ours(frame: Any) -> bool:
    # Python makes code for dataclasses and named tuples, whose file has no name: their module has.
    module = frame.f_globals.get("__name__") or ""
    return module.partition(".")[0] == _PACKAGE
