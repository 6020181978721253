"""Options for Sessions."""

from estimator2strategy.tools.check.rule import Hit
from estimator2strategy.tools.reader.project import is_tf


def find(source, context):
    for call in source.calls:
        if is_tf(call.name, "RunConfig") and ".learn." not in call.name:
            given = call.argument("session_config")
            if given is not None and source.constant(given, call.scope) is not None:
                yield Hit(
                    given,
                    "only some fields of a session_config have a meaning: there is no Session",
                )
