"""Writes dropped.csv: the names of libraries that their newest releases lack.

    python -m tests.engine.libraries.dropped_names

Both releases of a library are read, not imported: the names that its `__init__.py` binds, and the
modules beside it. Only those that do not begin with an underscore count.
"""

from __future__ import annotations

import ast
import csv
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from estimator2strategy.engine.libraries import table

TARGET = Path(table.__file__).parent / "dropped.csv"
# Module -> the release without the names.
NEWEST = {
    "opennmt": "OpenNMT-tf==2.32.0",
    "sonnet": "dm-sonnet==2.0.2",
    "tensorflow_hub": "tensorflow-hub==0.16.1",
    "tensorflow_lattice": "tensorflow-lattice==2.1.1",
    "tensorflow_model_analysis": "tensorflow-model-analysis==0.52.0",
}


def names_of(package: Path) -> set[str]:
    """The public names of an installed package."""
    code = ast.parse((package / "__init__.py").read_text())
    modules = {path.stem for path in package.iterdir() if path.suffix == ".py" or path.is_dir()}
    return {name for name in {*modules, *_bound(code)} if not name.startswith("_")}


def _bound(code: ast.Module) -> Iterator[str]:
    for node in ast.walk(code):
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            yield from (name.asname or name.name for name in node.names)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name


def released(requirement: str, module: str) -> set[str]:
    """The public names of a release."""
    with TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "-qq", "--no-deps", "--target", folder]
        subprocess.run([*pip, requirement], check=True)
        return names_of(Path(folder, module))


def main() -> None:
    with TARGET.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["module", "names"])
        for module, newest in NEWEST.items():
            row = table.known(module)[-1]
            before = released(f"{row.distribution}=={row.release}", module)
            rows.writerow([module, " ".join(sorted(before - released(newest, module)))])


if __name__ == "__main__":
    main()
