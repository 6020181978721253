"""Archives that would become much larger than they are."""

from __future__ import annotations

import os
import zipfile

# An archive of this size or less is no bomb, however small it was packed.
_HARMLESS = 1 << 30
# How many times its own size another one may have.
_MOST_TIMES = 100


class BombError(ValueError):
    """An archive that is small, and holds more than a machine has."""


def check_is_no_bomb(archive: zipfile.ZipFile, path: str) -> None:
    """Refuses an archive by the sizes that its table of contents states.

    Raises:
        BombError: It would become much larger than it is.
    """
    whole = sum(part.file_size for part in archive.infolist())
    if whole > max(_HARMLESS, _MOST_TIMES * os.path.getsize(path)):
        raise BombError(
            f"it would unpack to {whole / 1e9:.1f} GB, out of {os.path.getsize(path):,} bytes"
        )
