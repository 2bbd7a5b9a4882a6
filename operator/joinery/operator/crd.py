"""The CustomResourceDefinition of JoinQuery, made from the models of the spec: one source for files and for objects.

    python -m joinery.operator.crd > charts/joinery/files/joinqueries.yaml

The API server wants a structural schema: every field has one type.

Rule 1: references are put in place; `null` is left out (a field that is present but empty counts as left out).
Rule 2: where the spec takes a text or a mapping (window, a key), the type is left open, with the pattern for texts; the
        operator checks the rest, and says so in the `Stalled` condition.
Rule 3: kubectl and Helm read YAML 1.1, where a bare `on` is `true`: the schema knows both names.
Rule 4: what a running query cannot change is refused by CEL, where CEL can see it.
"""

import sys
from typing import Any, Final

import yaml

from joinery.model.spec import JoinQuerySpec
from joinery.model.sql_terms import MAX_SQL
from joinery.operator.crd_status import STATUS

GROUP: Final = "joinery.dev"
VERSION: Final = "v1alpha1"
PLURAL: Final = "joinqueries"

Schema = dict[str, Any]

_KEPT: Final[tuple[str, ...]] = (
    "type", "description", "default", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength", "minItems",
    "maxItems", "minProperties", "maxProperties", "required",
)  # fmt: skip
_OPEN: Final = "x-kubernetes-preserve-unknown-fields"
RULES: Final = "x-kubernetes-validations"
_LIES: Final = "lies on a volume: add volume: {claim: my-claim} or {configMap: my-files}"
_A_NEW_QUERY: Final = "cannot change while the query runs: make a new query"


def structural(schema: Schema, named: dict[str, Schema]) -> Schema:
    """A JSON schema of pydantic as the API server takes it."""
    schema = {**named[schema["$ref"].rsplit("/", 1)[1]], **schema} if "$ref" in schema else schema
    if "anyOf" in schema:
        return _of_several(schema, named)
    made: Schema = {key: schema[key] for key in _KEPT if key in schema}
    if made.get("type") == "array":
        made |= {key.replace("Length", "Items"): made.pop(key) for key in ("minLength", "maxLength") if key in made}
        made["items"] = structural(schema["items"], named)
    for bound in ("Minimum", "Maximum"):
        if abs(schema.get(f"exclusive{bound}", 2**63)) < 2**63:  # more is none: the API server reads it as below zero
            made |= {bound.lower(): schema[f"exclusive{bound}"], f"exclusive{bound}": True}
    if "properties" in schema:
        made["properties"] = {name: structural(held, named) for name, held in schema["properties"].items()}
    elif isinstance(schema.get("additionalProperties"), dict):
        made["additionalProperties"] = structural(schema["additionalProperties"], named)
    return made


def _of_several(schema: Schema, named: dict[str, Schema]) -> Schema:
    """Rules 1 and 2."""
    about: Schema = {key: schema[key] for key in ("description", "default") if key in schema}
    kinds = [structural(kind, named) for kind in schema["anyOf"] if kind.get("type") != "null"]
    if len(kinds) == 1:
        return {**kinds[0], **about}
    texts = [kind for kind in kinds if kind["type"] == "string"]
    limits = {key: value for text in texts for key, value in text.items() if key in ("pattern", "minLength")}
    return {_OPEN: True, **limits, **about}


def spec_schema() -> Schema:
    """The schema of `spec`, with what only an API server can check or needs to know."""
    whole = JoinQuerySpec.model_json_schema(by_alias=True)
    made = structural(whole, whole["$defs"])
    fields = made["properties"]
    fields["streams"] |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}
    stream = fields["streams"]["items"]["properties"]
    stream["name"]["maxLength"] = 63
    quoted = "found a column true or false: to kubectl a bare y, n, yes, no, on, off is one; write it in quotes"
    stream["schema"][RULES] = [rule("!('true' in self) && !('false' in self)", quoted)]
    for section in _open_quantities(fields):
        section["additionalProperties"] = {"x-kubernetes-int-or-string": True}
    join = fields["join"]
    join["properties"]["true"] = {**join["properties"]["on"], "description": "What YAML 1.1 makes of a bare `on`."}
    join["required"] = [name for name in join["required"] if name != "on"]
    join["oneOf"] = [{"required": ["on"]}, {"required": ["true"]}]  # CEL cannot see a field whose type is open
    fields["scaling"][RULES] = [
        rule("self.min <= self.max", "at most max", ".min"),
        rule("self.consumerThreshold < self.supplierThreshold", "less than supplierThreshold", ".consumerThreshold"),
    ]
    fields["output"][RULES] = [rule("self.order == 'time' || self.disorder == 0", "0 with order none", ".disorder")]
    _allow_sql(made, fields)
    made[RULES] = [
        rule("has(self.sql) != has(self.join)", "exactly one of join, sql"),
        rule(
            "!has(self.join) || self.join.type == 'inner' || size(self.streams) == 2",
            "all but inner take exactly two streams",
            ".join.type", reason="FieldValueForbidden",
        ),
    ]  # fmt: skip
    _exactly_one(fields)
    table = fields["streams"]["items"]["properties"]["table"]
    table[RULES] = [rule("has(self.volume) || self.path.contains('://')", f"in a cluster a table {_LIES}")]
    table["properties"]["volume"][RULES] = [one_of(list(table["properties"]["volume"]["properties"]))]
    _freeze(fields)
    return made


def _allow_sql(made: Schema, fields: dict[str, Schema]) -> None:
    """`sql` stands for join, filter, select and windows; the operator writes it out, as `joinery run` does."""
    fields["sql"] = {
        "type": "string", "minLength": 1, "maxLength": MAX_SQL,
        "description": "A SELECT with JOINs, instead of join, filter, select and the windows.",
    }  # fmt: skip
    made["required"] = [name for name in made["required"] if name != "join"]
    stream = fields["streams"]["items"]
    stream["required"] = [name for name in stream["required"] if name != "window"]


def _exactly_one(fields: dict[str, Schema]) -> None:
    """A source, a sink and a volume are one thing each; a file needs a volume here, since a pod has no folder."""
    sinks = [fields["sinks"]["items"], fields["late"]["properties"]["sink"]]
    source = fields["streams"]["items"]["properties"]["source"]
    for one in (*sinks, source):
        names = [name for name in one["properties"] if name != "pace"]
        one[RULES] = [one_of(names)]
        file = one["properties"]["file"]
        file[RULES] = [rule("has(self.volume)", f"in a cluster a file {_LIES}")]
        names = list(file["properties"]["volume"]["properties"])
        file["properties"]["volume"][RULES] = [one_of(names)]


def one_of(names: list[str]) -> Schema:
    """Exactly one of these fields is there."""
    counted = f"[{', '.join(f'has(self.{name})' for name in names)}].filter(one, one).size() == 1"
    return rule(counted, f"exactly one of {', '.join(names)}")


def _open_quantities(fields: dict[str, Schema]) -> list[Schema]:
    pods = fields["pods"]["properties"]
    owners = (fields["worker"], pods["gateway"], pods["collector"])
    return [owner["properties"]["resources"]["properties"][kind] for owner in owners for kind in ("requests", "limits")]


def _freeze(fields: dict[str, Schema]) -> None:
    """Rule 4."""
    checkpoint, join = fields["checkpoint"]["properties"], fields["join"]["properties"]
    for field in (fields["partitions"], fields["engine"], checkpoint["durability"], join["type"], join["method"]):
        field[RULES] = [rule("self == oldSelf", _A_NEW_QUERY, reason="FieldValueForbidden")]
    fields["streams"][RULES] = [
        rule("size(self) == size(oldSelf)", f"streams {_A_NEW_QUERY}", reason="FieldValueForbidden"),
        rule("self.all(s, oldSelf.exists(o, o.name == s.name))", f"names {_A_NEW_QUERY}", reason="FieldValueForbidden"),
    ]


def rule(rule: str, message: str, field: str = "", reason: str = "FieldValueInvalid") -> Schema:
    """A rule of CEL, as a schema carries it."""
    made = {"rule": rule, "message": message, "reason": reason}
    return {**made, "fieldPath": field} if field else made


def definition() -> Schema:
    """The whole CustomResourceDefinition."""
    schema = {
        "type": "object",
        "description": "A join of two or more streams, kept running with as many workers as its load needs.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 45}}},
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
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
                "labelSelectorPath": ".status.selector",
            },
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {
                "plural": PLURAL, "singular": "joinquery", "kind": "JoinQuery", "listKind": "JoinQueryList",
                "shortNames": ["joinq"], "categories": ["all", "joinery"],
            },
            "versions": [version],
        },
    }  # fmt: skip


def column(name: str, path: str, kind: str = "string", **more: object) -> Schema:
    """A column of `kubectl get`."""
    return {"name": name, "type": kind, "jsonPath": path, **more}


COLUMNS: Final = [
    column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
    column("Phase", ".status.phase"),
    column("Workers", ".status.replicas", "integer"),
    column("Desired", ".status.desiredReplicas", "integer"),
    column("Sup", ".status.scaling.nSup", "integer"),
    column("Con", ".status.scaling.nCon", "integer"),
    column("Lag", ".status.lag"),
    column("Results", ".status.results", "integer"),
    column("Pause-P99", ".status.pauseP99", priority=1),
    column("Why", ".status.scaling.lastDecision.because", priority=1),
    column("Age", ".metadata.creationTimestamp", "date"),
]


class _Plain(yaml.SafeDumper):
    """Writes equal things twice rather than as references, which people cannot read."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def text_of(made: Schema, module: str) -> str:
    """A definition as YAML."""
    head = f"# Made by python -m {module} from the models of the spec; do not edit.\n"
    return head + yaml.dump(made, Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)


def text() -> str:
    """The definition as YAML, the same every time."""
    return text_of(definition(), "joinery.operator.crd")


if __name__ == "__main__":
    sys.stdout.write(text())
