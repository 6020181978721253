"""Every name that `tf.contrib` of TF 1.15 had works, or is refused with a way out."""

import contrib_names
import pytest

from estimator2strategy.engine.names import tables
from estimator2strategy.tf1.facade import namespace
from estimator2strategy.tf1.facade.refused import Refused

NAMES = [f"{m}.{n}" for m, names in contrib_names.read().items() for n in names]


def test_the_list_is_that_of_tf_1_15():
    assert len(NAMES) == 5393
    assert {"tf.contrib.layers.conv2d", "tf.contrib.crf.crf_decode"} <= set(NAMES)


@pytest.mark.oldest
def test_every_name_works_or_is_refused_as_the_table_says():
    wrong = []
    for name in NAMES:
        if name in tables.contrib().modules:
            continue
        try:
            value = namespace.resolve(name)
        except ModuleNotFoundError as error:
            assert "pip install" in str(error), name  # noqa: PT017 - an optional library
        except AttributeError as error:
            wrong.append(f"{name}: {error}")
        else:
            row = tables.served(name)
            if (row is None) or (row.status == "refused") != isinstance(value, Refused):
                wrong.append(f"{name}: {value!r}, and the table says {row}")
    assert wrong == []


def test_every_refused_name_has_a_way_out():
    served = {name: tables.served(name) for name in NAMES}
    refused = {name: row.advice for name, row in served.items() if row and row.status == "refused"}
    assert [name for name, text in refused.items() if not text or "Not carried over" in text] == []
