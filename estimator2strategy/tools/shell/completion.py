"""<TAB> in a shell, after `e2s`: argcomplete's work, on the parsers of the commands.

eval "$(register-python-argcomplete e2s)"       # in ~/.bashrc or ~/.zshrc
"""

from __future__ import annotations

import argparse
import importlib
import os
from collections.abc import Mapping


def complete(commands: Mapping[str, tuple[str, str]]) -> None:
    """Answers the shell that asks for completions, and ends the process.

    Args:
        commands: Command -> the module with its `parser()`, and what it does.
    """
    import argcomplete

    written = os.environ.get("COMP_LINE", "").split()
    e2s = argparse.ArgumentParser(prog="e2s")
    parts = e2s.add_subparsers()
    for name, (module, _) in commands.items():
        # Only the command at hand is imported: a shell waits for this.
        asked = name in written
        parents = [importlib.import_module(module).parser()] if asked else []
        parts.add_parser(name, parents=parents, add_help=not asked, conflict_handler="resolve")
    argcomplete.autocomplete(e2s)
