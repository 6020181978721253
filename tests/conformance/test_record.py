"""Is each program recorded as one graph, with one input and a step that counts?"""

from __future__ import annotations

from estimator2strategy.engine.mode_keys import ModeKeys
from estimator2strategy.engine.plan.graph import RecordedGraph
from estimator2strategy.estimator.estimator_recording import record_for, recording_graph
from tests.conformance.programs import estimator_of, every_program, program


@every_program
def test_a_step_takes_one_batch_and_counts_itself(name, tmp_path):
    legacy = program(name, tmp_path)
    model = estimator_of(legacy, tmp_path / "model")
    with recording_graph(model) as graph:
        recording = record_for(model, ModeKeys.TRAIN, legacy.input_fn)
        recorded = RecordedGraph(graph)
    step = [recording.spec.train_op.name, recording.spec.loss.op.name]
    assert recorded.only_next_batch(step)
    assert "global_step" in recorded.variables_written(step)
