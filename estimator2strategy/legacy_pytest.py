"""A pytest plugin: the tests of a legacy project run on TF 1.15's `tensorflow`.

    pytest_plugins = ["estimator2strategy.legacy_pytest"]       # in the project's conftest.py

or, without a change to the project: `pytest -p estimator2strategy.legacy_pytest`. What is imported
is as under `e2s run`. Flags that no command line has given have their defaults, where
`tf.test.main()` would have parsed them.
"""

from __future__ import annotations

from absl import flags

from estimator2strategy.legacy import importing

importing.install()


def pytest_runtest_setup() -> None:
    """Before each test, since a test module defines its flags when it is imported."""
    if not flags.FLAGS.is_parsed():
        flags.FLAGS.mark_as_parsed()
