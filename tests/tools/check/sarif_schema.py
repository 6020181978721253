"""The parts of the SARIF 2.1.0 schema that `e2s check` writes, and a check against them.

As in the schema, no object may have a property that is not listed.
"""

from __future__ import annotations

from typing import Any

MESSAGE = {"text!": str}
LEVEL = {"none", "note", "warning", "error"}
NOTIFICATION = {"message!": MESSAGE, "level": LEVEL}
RULE = {
    "id!": str,
    "name": str,
    "shortDescription": {"text!": str},
    "fullDescription": {"text!": str},
    "helpUri": str,
    "help": {"text!": str},
    "defaultConfiguration": {"level": LEVEL},
}
REGION = {"startLine": range(1, 10**9), "startColumn": range(1, 10**9)}
RESULT = {
    "ruleId": str,
    "ruleIndex": range(-1, 10**9),
    "level": LEVEL,
    "message!": MESSAGE,
    "locations": [{"physicalLocation": {"artifactLocation": {"uri": str}, "region": REGION}}],
    "partialFingerprints": dict,
    "properties": dict,
}
RUN = {
    "tool!": {
        "driver!": {
            "name!": str,
            "version": str,
            "semanticVersion": str,
            "informationUri": str,
            "rules": [RULE],
        },
    },
    "columnKind": {"utf16CodeUnits", "unicodeCodePoints"},
    "results": [RESULT],
    "invocations": [
        {"executionSuccessful!": bool, "toolExecutionNotifications": [NOTIFICATION]},
    ],
    "properties": dict,
}
LOG = {"$schema": str, "version!": {"2.1.0"}, "runs!": [RUN]}


def violations(value: Any, schema: Any = None, where: str = "log") -> list[str]:
    """Where a document does not follow the schema, by default that of a log."""
    schema = LOG if schema is None else schema
    if isinstance(schema, list):
        if not isinstance(value, list):
            return [f"{where} is no array"]
        return [
            v for i, item in enumerate(value) for v in violations(item, schema[0], f"{where}[{i}]")
        ]
    if isinstance(schema, (set, range)):
        return [] if value in schema else [f"{where} is {value!r}"]
    if isinstance(schema, type):
        return [] if isinstance(value, schema) else [f"{where} is {value!r}"]
    if not isinstance(value, dict):
        return [f"{where} is no object"]
    known = {name.rstrip("!"): rest for name, rest in schema.items()}
    found = [f"{where}.{n} is missing" for n in schema if n[-1] == "!" and n[:-1] not in value]
    for name, item in value.items():
        if name in known:
            found += violations(item, known[name], f"{where}.{name}")
        else:
            found.append(f"{where}.{name} is not known")
    return found
