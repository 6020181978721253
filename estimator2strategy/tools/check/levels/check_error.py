"""Why a level could not be reached; the message is for the user."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from estimator2strategy.engine.user_code import is_user_file


class CheckError(Exception):
    """A level cannot do its job for this model; the message says why, and what to do."""


def user_traceback(error: BaseException) -> str:
    """The traceback of an error in the program, from the program's first frame on."""
    report = traceback.TracebackException(type(error), error, error.__traceback__)
    part: traceback.TracebackException | None = report
    while part is not None:
        part.stack[:] = [frame for frame in part.stack if is_user_file(frame.filename)]
        part = part.__cause__ or (None if part.__suppress_context__ else part.__context__)
    return "".join(report.format()).rstrip()


def raised_by_user(error: BaseException) -> bool:
    """True if code of the program is in the traceback of an error."""
    return any(is_user_file(frame.filename) for frame in traceback.extract_tb(error.__traceback__))


def of_program(what: str, error: BaseException) -> CheckError:
    """The CheckError for an error that ended code of the program.

    Args:
        what: The code that was running: "model_fn of trainer.model, in train".
    """
    if isinstance(error, CheckError):
        return error
    if isinstance(error, SystemExit):
        where = _last_user_line(error)
        return CheckError(
            f"{what} ended the process itself, with sys.exit({error.code!r}){where}.\n"
            "  Call the function with what it needs (--params, or the program's own flags after "
            "--program FILE.py)."
        )
    return CheckError(f"{what} raised an error of its own:\n{user_traceback(error)}")


def _last_user_line(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_user_file(frame.filename)]
    return f" at {own[-1].filename}:{own[-1].lineno}" if own else ""


def attempted(what: str, function: Callable[[], Any]) -> Any:
    """The result of `function`, which is code of the program.

    Raises:
        CheckError: It raised an error, or ended the process.
    """
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise of_program(what, error) from error


def relative(path: str, root: Path) -> str:
    """A path as findings show it: relative to `root` where it is inside."""
    absolute = Path(os.path.abspath(path))
    try:
        return absolute.relative_to(os.path.abspath(root)).as_posix()
    except ValueError:
        return absolute.as_posix()
