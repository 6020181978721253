"""A folder that is written whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from estimator2strategy.tools.artifact import step_loader


@contextlib.contextmanager
def replaced_at_once(folder: Path) -> Iterator[Path]:
    """A new folder to write into, which takes the place of `folder` at the end.

    An error leaves all as it was.

    Raises:
        FileExistsError: `folder` is there, and is no exported step.
    """
    _check_is_ours(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        made = scratch / "new"
        made.mkdir()
        yield made
        if folder.exists():
            os.rename(folder, scratch / "old")
        os.rename(made, folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _check_is_ours(folder: Path) -> None:
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    try:
        step_loader.described(str(folder))
    except step_loader.RefusedStepError as refused:
        raise FileExistsError(
            f"{folder} is there, and is no exported step ({refused}): name another folder"
        ) from refused
