"""How far a check is, as a bar on a terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def bar_of_files(total: int) -> Iterator[Callable[..., object]]:
    """Gives a function that moves a bar by one of `total` files; shown after two seconds.

    The check reads source with nothing installed but this package (`pip install --no-deps`, in CI).
    Without tqdm, and where nobody looks at a terminal, there is no bar.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    try:
        from tqdm import tqdm
    except ModuleNotFoundError:
        yield lambda: None
        return
    with tqdm(total=total, unit="file", delay=2, leave=False) as bar:
        yield bar.update
