"""The table of evidence in `migration_guide/tpu.md`, made of the marks on tests.

    @pytest.mark.evidence("training", "rehearsed")
    @pytest.mark.evidence("training", "compiled", "v2 v3")      # and for which TPUs

    python -m tests.evidence            # writes the table into the page
    python -m tests.evidence --list     # the tests behind each number

Marks are read, not run: source is parsed, and TensorFlow is not imported.
"""

from __future__ import annotations

import ast
import collections
import dataclasses
import re
import sys
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "migration_guide" / "tpu.md"
BEGIN, END = "<!-- evidence: python -m tests.evidence -->\n", "<!-- end of evidence -->\n"
GENERATIONS = ("v2", "v3", "v4", "v5e", "v5p", "v6e")


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of evidence: a column.

    Attributes:
        title: Its head.
        uses: What a test file of that kind has in it.
    """

    title: str
    uses: str


# What each means is said below the table, in the page.
KINDS = {
    "traced": Kind("traced for a TPU", r"tpu_strategy|tpu_program|tpu_traced"),
    "compiled": Kind("compiled by the TPU compiler", r"TpuCompiler|tpu_compiled|compiled_for"),
    "cpu": Kind("executed on CPU", r"emulate|for_cpu|mirrored"),
    "rehearsed": Kind("rehearsed", r"rehearsal|rehearsed"),
    "xla": Kind("executed as XLA program", r"xla_cpu|step_on_xla"),
    "jax": Kind("JAX on CPU", r"jax_devices|run\.py"),
}

# Feature -> how the table calls it. One that no test shows is in the table too.
FEATURES = {
    "door": "finding, connecting to and starting the TPU",
    "strategies": "a `TPUStrategy` of the program, `train_distribute`",
    "training": "`train`: the step of all cores, and its loop",
    "inputs": "all five input pipelines",
    "evaluation": "`evaluate`",
    "prediction": "`predict`, with a padded last batch",
    "turns": "`train_and_evaluate`",
    "host_call": "`host_call`, and summaries in it",
    "hooks": "hooks, once per block",
    "nan": "NaN in the middle of a block",
    "checkpoints": "checkpoints, continued by a CPU and back",
    "warm_start": "`warm_start_from`, several Estimators in one process",
    "export": "SavedModels of what a TPU trained",
    "tpu_graphs": "the graphs for TPUs in SavedModels",
    "branches": "`tf.cond` and sums over cores in a branch",
    "embeddings": "`embedding_config_spec`, by dense lookups",
    "partitions": "`num_cores_per_replica` above 1",
    "refusals": "the user's line where a TPU would refuse",
    "profile": "`--profile-dir`",
    "hosts": "several hosts: a pod",
    "preemption": "a TPU that is lost, and the training that goes on",
    "adapt": "`adapt`: the steps in a loop of one's own",
    "legacy_model": "`LegacyModel`: `fit`, `evaluate`, `predict`",
    "mnist": "the MNIST example, a whole program",
    "bert": "BERT of google-research, a whole program",
    "flowers": "the flowers example, a whole program",
    "resnet": "a ResNet with batch norm and momentum",
    "speed": "speed, memory in use, bfloat16 products",
}


# Feature -> the part of it that ran on a card, by benchmarks/device/measure.py.
ON_AN_H200 = {
    "training": "exported steps, one card",
    "mnist": "exported step",
    "bert": "exported step",
    "resnet": "exported step",
    "speed": "exported steps",
}


@dataclasses.dataclass(frozen=True)
class Mark:
    """A mark on a test.

    Attributes:
        test: Its file and name, as pytest has them.
        arguments: The mark's: feature, kind, generations of TPUs.
    """

    test: str
    arguments: tuple[str, ...]

    @property
    def feature(self) -> str:
        return self.arguments[0]

    @property
    def kind(self) -> str:
        return self.arguments[1]

    @property
    def generations(self) -> list[str]:
        return " ".join(self.arguments[2:]).split()


def marks(tests: Path = TESTS) -> list[Mark]:
    """The marks of all tests, in the order of files."""
    return [mark for path in sorted(tests.rglob("test_*.py")) for mark in marks_in(path, tests)]


def marks_in(path: Path, tests: Path = TESTS) -> list[Mark]:
    """The marks of a file.

    Raises:
        ValueError: A mark that is not a decorator of a test.
    """
    text = path.read_text(encoding="utf-8")
    if "mark.evidence" not in text:
        return []
    tree = ast.parse(text)
    name = path.relative_to(tests).as_posix()
    found = list(_of_functions(tree, name))
    everywhere = sum(map(_is_mark, ast.walk(tree)))
    if everywhere != len(found):
        raise ValueError(f"{name}: a mark of evidence has to be a decorator of a test function")
    return found


def _of_functions(parent: ast.Module | ast.ClassDef, name: str) -> Iterator[Mark]:
    for node in parent.body:
        if isinstance(node, ast.ClassDef):
            yield from _of_functions(node, f"{name}::{node.name}")
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            for decorator in node.decorator_list:
                if _is_mark(decorator):
                    arguments = tuple(map(ast.literal_eval, decorator.args))
                    yield Mark(f"{name}::{node.name}", arguments)


def _is_mark(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.evidence"


def table(found: list[Mark]) -> str:
    """The table, as Markdown: numbers of test functions, or the TPUs that were compiled for."""
    cells = collections.defaultdict(list)
    for mark in found:
        cells[mark.feature, mark.kind].append(mark)
    titles = [kind.title for kind in KINDS.values()]
    heads = ["feature", *titles, "on an H200", "on a TPU"]
    lines = [f"| {' | '.join(heads)} |", "| --- " * len(heads) + "|"]
    for feature, text in FEATURES.items():
        row = [_cell(cells[feature, kind]) for kind in KINDS]
        row.append(ON_AN_H200.get(feature, "never"))
        lines.append(f"| {' | '.join([text, *row, 'never'])} |")
    return "\n".join(lines) + "\n"


def _cell(of_cell: list[Mark]) -> str:
    generations = {generation for mark in of_cell for generation in mark.generations}
    if generations:
        return ", ".join(sorted(generations, key=GENERATIONS.index))
    return str(len({mark.test for mark in of_cell}) or "")


def page(text: str, found: list[Mark]) -> str:
    """The page with the table of today."""
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + table(found) + END + rest.partition(END)[2]


def uses_its_kind(mark: Mark) -> bool:
    """True if the file of a test mentions the machinery that its kind stands for."""
    text = (TESTS / mark.test.partition("::")[0]).read_text(encoding="utf-8")
    return re.search(KINDS[mark.kind].uses, text) is not None


def main(argv: list[str]) -> None:
    if argv == ["--list"]:
        for mark in sorted(marks(), key=lambda mark: (mark.feature, mark.kind)):
            sys.stdout.write(f"{mark.feature:12} {mark.kind:10} {mark.test}\n")
        return
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), marks()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
