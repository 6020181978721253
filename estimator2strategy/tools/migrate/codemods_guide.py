"""Writes the page of the migration guide about the codemods, from the codemods.

python -m estimator2strategy.tools.migrate.codemods_guide        # into migration_guide/codemods.md

The numbers beside Keras's come from `replacements.json`, which `python -m benchmarks.replacements`
measures.
"""

from __future__ import annotations

import difflib
import sys
import textwrap
from pathlib import Path

from estimator2strategy.tools.migrate import replacements_guide
from estimator2strategy.tools.migrate.codemod import Codemod, Sample, codemods
from estimator2strategy.tools.migrate.stages import STAGES, WITHOUT_CHANGES

_PAGE = Path(__file__).resolve().parents[3] / "migration_guide" / "codemods.md"

_INTRODUCTION = """\
# Codemods: `e2s migrate`

<!-- Made by `python -m estimator2strategy.tools.migrate.codemods_guide`. -->

For you if the program runs here and you want to leave TensorFlow 1's API. `e2s migrate` rewrites it
towards TensorFlow 2 in small steps, and after each step the program runs. [The ladder](ladder.md)
leads through the stages; this page says what each codemod changes.

```sh
e2s migrate trainer/                          # the diff of the next stage; nothing is written
e2s migrate --stage 2 trainer/ --write        # do it, in a clean git tree
e2s migrate --list                            # all codemods
```

- **A dry run is the default.** `--write` refuses a git tree with changes that are not committed
  (`--allow-dirty`), and a file that is not what the last dry run showed. Files are written in one
  step, or not at all.
- **There are two tiers.** `safe` (the default) makes only changes that are proven to do the same: the
  same function under another name, or equal numbers in a test. `--tier review` also makes changes
  that may mean something else, in the ways that the codemod's section names. The summary counts
  both.
- **Where it cannot decide, it changes nothing.** It writes a comment `# TODO(e2s): codemod: what to do`
  above the line, and lists file and line. The next run removes a comment when its reason is gone.
- **It skips files that it cannot read**, and says so: Python 2, or a wrong declaration of the
  encoding. It lists names that a program makes up when it runs (`getattr(tf, name)`) as not seen
  into.
- **A second run changes nothing.** Exit code 0: nothing is left; 1: changes (in a dry run), or
  places left to you; 2: it could not be done. So `e2s migrate --stage 2 --quiet trainer/` checks in
  CI that nobody goes back.

[A table](#keras-beside-tensorflow-115) says of optimizers, schedules, losses, batch norm, feature
columns and metrics to which digit Keras is equal to TensorFlow 1.15, and what to write where it is
not.

After each stage run the program's tests, and compare a short run with the one before: the same seed
and the same checkpoint give the same losses after each safe stage.
"""

# Measured with `e2s migrate --stage N --tier review --write`, stage after stage.
_PROGRAMS = """\
## On three public programs

As they were published, stage after stage with `--tier review`. A cell is the number of changes, how
many of them are safe, and the places that are marked for the user, earlier ones included.

| stage | mnist_tpu.py (tensorflow/tpu) | BERT run_classifier, 4 files | tf_ner, lstm_crf |
| --- | --- | --- | --- |
| 2 | 2, 2 safe | 71, 44 safe | 16, 16 safe, 1 marked |
| 3 | 1, 1 safe | 2, 0 safe | 0, 2 marked |
| 4 | none needed | none needed | none needed |
| 5 | 4, 1 safe | 2, 1 safe, 1 marked | 3, 0 safe, 2 marked |
| 6 | 8, 3 safe | 0, 8 marked | 3, 0 safe, 2 marked |
| 7 | 3, 0 safe, 1 marked | 3, 0 safe, 10 marked | 0, 4 marked |
| 8 | 6, 6 safe, 3 marked | 35, 32 safe, 12 marked | 5, 5 safe, 5 marked |

Against the program under `e2s run`, on the CPU, both with `tf_random_seed=7`:

- mnist_tpu.py, 30 steps: after the safe changes up to stage 5 every loss and the evaluation are
  equal to the last bit. After stage 7 with review it trains, but from other first values: Keras
  layers draw with seeds of their own (accuracy 0.52 for 0.43 after 30 steps, on 128 digits).
- BERT, 20 steps from a pre-trained checkpoint: after the safe changes up to stages 5 and 8, and
  with review up to stage 7, the evaluation and all 124 variables of the checkpoint are equal to the
  last bit, Adam's slots included.
- tf_ner, 12 steps with dropout, Keras's seed fixed too (its LSTM cells draw their first weights
  from it): after the safe changes up to stage 8 losses, evaluation and predicted tags are equal to
  the last bit; with review up to stage 5 losses differ by 1.3e-6 at most, the tags not at all.

Those runs were without estimator-to-fit. With it mnist_tpu.py and BERT train, evaluate and predict
by Keras's `fit`; after 20 steps BERT's evaluation has loss 0.685 for 0.689 (dropout draws other
numbers) and the same accuracy. tf_ner keeps its Estimator: it stops early by an evaluation.

What needs hands: the model of stage 7; optimizers of the program's own (BERT's Adam with weight
decay); layers whose variables `tf.train.init_from_checkpoint` looks up by name (BERT); metrics
whose pairs are read for summaries (tf_ner).
"""


def page() -> str:
    """The text of the page."""
    parts = [_INTRODUCTION, _table()]
    for stage, what in STAGES.items():
        if stage not in WITHOUT_CHANGES:
            parts.append(f"## Stage {stage}: {what}\n")
            parts += [
                _section(codemod) for codemod in codemods().values() if codemod.stage == stage
            ]
    return "\n".join([*parts, replacements_guide.section(), _PROGRAMS])


def _table() -> str:
    lines = ["| stage | codemod | tier | does |", "| --- | --- | --- | --- |"]
    for stage, what in STAGES.items():
        if stage in WITHOUT_CHANGES:
            lines.append(f"| {stage} | | | {what}: `{WITHOUT_CHANGES[stage]}` |")
        lines += [
            f"| {stage} | [{codemod.name}](#{codemod.name}) | {codemod.tier} | {codemod.title} |"
            for codemod in codemods().values()
            if codemod.stage == stage
        ]
    return "\n".join(lines) + "\n"


def _section(codemod: Codemod) -> str:
    lines = [f"### {codemod.name}", "", f"{codemod.title}. ({codemod.tier})", ""]
    lines += [textwrap.fill(codemod.why, 100, break_long_words=False), ""]
    what = "Proof" if str(codemod.tier) == "safe" else "To review"
    lines += [textwrap.fill(f"**{what}.** {codemod.proof}", 100, break_long_words=False), ""]
    for sample in codemod.samples:
        lines += ["```diff", *_diff(sample), "```", ""]
    return "\n".join(lines)


def _diff(sample: Sample) -> list[str]:
    before, after = sample.before.splitlines(), sample.after.splitlines()
    return [
        line.rstrip()
        for line in difflib.ndiff(before, after, charjunk=None)
        if not line.startswith("?")
    ]


def write() -> None:
    """Writes the page."""
    _PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    write()
    sys.stdout.write(f"{_PAGE}\n")
