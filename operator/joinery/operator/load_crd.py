"""The CustomResourceDefinition of LoadTest, made from the models of its spec.

python -m joinery.operator.load_crd > charts/joinery/files/loadtests.yaml
"""

import sys
from typing import Any, Final

from joinery.model.spec_load import LoadTestSpec
from joinery.operator.crd import GROUP, RULES, VERSION, Schema, column, one_of, rule, structural, text_of
from joinery.operator.crd_status import CONDITION, count_of, fields_of, listed, schema_of, time_of

PLURAL: Final = "loadtests"
_A_NEW_ONE: Final = "a load test runs once: make a new one"

STATUS: Final = fields_of(
    "What the operator saw last.",
    observedGeneration=count_of(""),
    phase=schema_of("string", "Pending, Starting, Running, Succeeded, Failed or Stalled."),
    conditions=listed("Running, Complete, Failed, Stalled.", CONDITION, "type"),
    producers=schema_of("integer", "Producers of all streams."),
    executors=schema_of("integer", "Executor pods that run."),
    recorded=count_of("Rows that the query has recorded since the load was started, whoever sent them."),
    rowsBefore=count_of("Rows that it had before."),
    sent=count_of("Rows that were sent, at the end."),
    acknowledged=count_of("Rows that the query has recorded, at the end."),
    rate=schema_of("number", "Rows per second: of the whole load at its end; before, what the query records now."),
    seconds=schema_of("number", "From the first row's moment to the last acknowledgement."),
    behindSeconds=schema_of("number", "How much later than the profile says the last row was recorded."),
    delayP50=schema_of("string", "Of the query's results so far, whoever sent the rows: half are faster."),
    delayP99=schema_of("string", "The same: 99 of 100 are faster."),
    workers=schema_of("integer", "Ready workers of the query."),
    peakWorkers=schema_of("integer", "The most that were seen during the load."),
    startedAt=time_of("When the driver was started."),
    finishedAt=time_of("When its end was seen."),
)


def spec_schema() -> Schema:
    """The schema of `spec`, with what the API server checks itself."""
    whole = LoadTestSpec.model_json_schema(by_alias=True)
    made = structural(whole, whole["$defs"])
    fields = made["properties"]
    fields["query"]["maxLength"] = 52
    fields["streams"] |= {"x-kubernetes-list-type": "set"}
    fields["streams"]["items"]["maxLength"] = 63
    fields["profile"][RULES] = [one_of(list(fields["profile"]["properties"]))]
    profile = fields["profile"]["properties"]
    goes_on = "more than 0: the next row must come some day"
    for kind, name in (("step", "after"), ("ramp", "after"), ("sine", "mean")):
        profile[kind][RULES] = [rule(f"self.{name} > 0.0", goes_on, f".{name}")]
    profile["sine"][RULES].append(rule("self.amplitude <= self.mean", "at most mean", ".amplitude"))
    base = "has(self.every) ? (self.base > 0.0 || self.burst > 0.0) : self.base > 0.0"
    profile["burst"][RULES] = [rule(base, goes_on, ".base")]
    made[RULES] = [rule("self == oldSelf", _A_NEW_ONE, reason="FieldValueForbidden")]
    return made


def definition() -> Schema:
    """The whole CustomResourceDefinition."""
    schema: dict[str, Any] = {
        "type": "object",
        "description": "Generated rows for a JoinQuery, sent once by a Spark application.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 40}}},
            "spec": spec_schema(),
            "status": STATUS,
        },
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": COLUMNS,
        "subresources": {"status": {}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "plural": PLURAL, "singular": "loadtest", "kind": "LoadTest", "listKind": "LoadTestList",
                "shortNames": ["loadt"], "categories": ["all", "joinery"],
            },
            "versions": [version],
        },
    }  # fmt: skip


COLUMNS: Final = [
    column("Query", ".spec.query"),
    column("Phase", ".status.phase"),
    column("Executors", ".status.executors", "integer"),
    column("Recorded", ".status.recorded", "integer"),
    column("Acknowledged", ".status.acknowledged", "integer"),
    column("Rate", ".status.rate", "number"),
    column("P99", ".status.delayP99"),
    column("Peak", ".status.peakWorkers", "integer", priority=1),
    column("Behind", ".status.behindSeconds", "number", priority=1),
    column("Age", ".metadata.creationTimestamp", "date"),
]


def text() -> str:
    """The definition as YAML, the same every time."""
    return text_of(definition(), "joinery.operator.load_crd")


if __name__ == "__main__":
    sys.stdout.write(text())
