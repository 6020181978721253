"""Format strings that take more or fewer values than they are given."""

from __future__ import annotations

import pytest

from estimator2strategy.tools.check.checking import check_text
from estimator2strategy.tools.check.settings import Settings


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("'%d of %d' % (len(x)), x", ["this format takes 2 values and gets 1"]),
        ("'%d of %d' % (x, x, x)", ["this format takes 2 values and gets 3"]),
        ("'%s' % (x, x)", ["this format takes 1 value and gets 2"]),
        ("'%*d %%' % (x,)", ["this format takes 2 values and gets 1"]),
        ("'none' % 1", ["this format takes 0 values and gets 1"]),
        ("'{} {}'.format(x)", ["this format takes 2 values and gets 1"]),
        ("'{0} {2}'.format(x, x)", ["this format takes 3 values and gets 2"]),
        ("'%d of %d' % x", []),
        ("'%d of %d' % (*x,)", []),
        ("'%(a)s %(b)s' % {'a': 1}", []),
        ("'%5.2f%% of %-3s' % (x, x)", []),
        ("'{a} {{}} {}'.format(x, a=1)", []),
        ("'{} {}'.format(*x)", []),
        ("'{}'.format(x, x)", []),
        ("x.format(1) % 2", []),
        ("b'%d %d' % (1, 2)", []),
    ],
)
def test_a_format_takes_as_many_values_as_it_has_places(line, found):
    findings = check_text(f"def main(x):\n    print({line})\n", Settings()).findings
    assert [f.message for f in findings if f.rule == "E2S022"] == found
