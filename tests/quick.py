"""The tests of `make quick`: what needs little of TensorFlow, and one program of each kind.

A file belongs here if its tests take less than five seconds of processor time together. Tests that
are marked `slow` are left out.
"""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent

# Files, or folders with all files below them.
QUICK = (
    # The package as a whole, and its pages.
    "test_contract_guide.py",
    "test_synopses.py",
    "engine/test_tf_switches.py",
    # From a recorded graph to a plan, its replay, and a training.
    "engine/plan",
    "engine/metrics/test_metrics_table.py",
    "engine/replay/test_state.py",
    "engine/replay/test_side_effects.py",
    "engine/runtime/test_agreement.py",
    "engine/runtime/test_evaluation.py",
    "engine/runtime/test_sharded_saving.py",
    # Estimators: what they are told, what they refuse, one on the host and one on cores.
    "estimator/test_checkpoint_step.py",
    "estimator/test_export_outputs.py",
    "estimator/test_exporters.py",
    "estimator/test_extenders.py",
    "estimator/test_run_config.py",
    "estimator/test_specs.py",
    "estimator/test_subclasses.py",
    "estimator/test_tpu_config.py",
    "estimator/test_tpu_estimator.py",
    "estimator/test_tpu_partition.py",
    "estimator/test_tpu_refusals.py",
    # TF 1.15's `tensorflow`.
    "legacy/test_forks.py",
    "legacy/test_removed_names.py",
    "tf1/contrib/test_contrib_learn_data.py",
    "tf1/contrib/test_contrib_predictor.py",
    "tf1/facade/test_convolutions.py",
    "tf1/facade/test_facade_modes.py",
    "tf1/facade/test_private_names.py",
    "tf1/test_cluster_resolver.py",
    "tf1/test_rewritten.py",
    # The tools that read programs, graphs and checkpoints.
    "tools/check/test_baseline.py",
    "tools/check/test_command.py",
    "tools/check/test_explain.py",
    "tools/check/test_formats.py",
    "tools/check/test_guide.py",
    "tools/check/test_mutations.py",
    "tools/check/test_names.py",
    "tools/check/test_rules.py",
    "tools/checkpoint",
    "tools/migrate/test_codemods.py",
    "tools/migrate/test_migrate_command.py",
    "engine/xla/test_core_program.py",
    "engine/xla/test_kernels.py",
)


_QUICK = frozenset(map(Path, QUICK))


def is_quick(path: Path) -> bool:
    """True if `make quick` runs the tests of this file."""
    inside = path.relative_to(TESTS)
    return any(folder in _QUICK for folder in (inside, *inside.parents))
