"""Makes notebooks, laid out as Jupyter writes them."""

from __future__ import annotations

import json


def notebook(*cells, language="python"):
    """The text of a notebook with these code cells, behind a cell of Markdown."""
    made = [{"cell_type": "markdown", "metadata": {}, "source": ["# Title"]}]
    made += [
        {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {},
            "outputs": [{"name": "stdout", "output_type": "stream", "text": ["é\n"]}],
            "source": cell.splitlines(keepends=True),
        }
        for cell in cells
    ]
    metadata = {"kernelspec": {"language": language, "name": "x"}}
    whole = {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def sources(text):
    """The code cells of a notebook."""
    cells = json.loads(text)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
