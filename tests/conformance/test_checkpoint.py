"""Does each program go on from its checkpoint as if it had not been interrupted?"""

from __future__ import annotations

import numpy as np

from tests.conformance.programs import estimator_of, every_program, program, variables


@every_program
def test_a_new_estimator_goes_on_where_the_last_one_ended(name, tmp_path):
    legacy = program(name, tmp_path)

    def same_batch(params):
        return legacy.input_fn(params).take(1).repeat()

    at_once = estimator_of(legacy, tmp_path / "at_once").train(same_batch, steps=4)
    for _ in range(2):
        in_two = estimator_of(legacy, tmp_path / "in_two").train(same_batch, steps=2)
    expected, found = variables(at_once), variables(in_two)
    assert found.keys() == expected.keys()
    for variable, value in expected.items():
        np.testing.assert_array_equal(found[variable], value, err_msg=variable)
    results = [m.evaluate(same_batch, steps=1) for m in (at_once, in_two)]
    assert results[0] == results[1]
