"""What the chart gives to Prometheus and Grafana is off unless asked for, and asks only for metrics that there are."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from joinery.adapters.metrics import METRICS
from joinery.operator.children import QUERY_LABEL
from joinery.operator.metrics import Metrics
from tests.unit.chart.rendering import CHART, DEFAULT, FULL, NAMESPACED, Object, of_kind, rendered, the

OF_PROMETHEUS = {"namespace", "pod", "le"}
"""Labels that it adds, or that every histogram has."""
USE = re.compile(r"((?:joinery|process)_\w+)(?:\{([^}]*)\})?")


def known() -> dict[str, set[str]]:
    """Names of series -> labels, of queries' processes and of the operator."""
    found: dict[str, set[str]] = {}
    for metric in METRICS.values():
        endings = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
        found |= {metric.name + ending: set(metric.labels) for ending in endings}
    operator = Metrics()
    operator.told("Created")
    operator.reconciled(0.1, failed=True)
    for line in operator.text().splitlines():
        if line[0] != "#":
            name, _, labels = line.rpartition(" ")[0].partition("{")
            found[name] = set(re.findall(r'(\w+)="', labels))
    return found


def alerts() -> list[Object]:
    (group,) = the(rendered(FULL), "PrometheusRule")["spec"]["groups"]
    return list(group["rules"])


def board() -> Object:
    for one in of_kind(rendered(FULL), "ConfigMap"):
        if "joinery.json" in one["data"]:
            return dict(json.loads(one["data"]["joinery.json"]))
    raise AssertionError("no dashboard")


def asked() -> Iterator[tuple[str, str]]:
    """Where, and what is asked."""
    for rule in alerts():
        yield rule["alert"], rule["expr"]
    for panel in board()["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for variable in board()["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]


@pytest.mark.parametrize(("where", "text"), [pytest.param(*one, id=f"{n}-{one[0]}") for n, one in enumerate(asked())])
def test_only_metrics_and_labels_that_there_are_are_asked_for(where: str, text: str) -> None:
    series, uses = known(), USE.findall(text)
    assert uses, f"{where} asks for nothing of ours"
    for name, chosen in uses:
        assert name in series, f"{where}: {name} is not a metric; see adapters/joinery/adapters/metrics.py"
        labels = set(re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", chosen))
        assert labels <= series[name] | OF_PROMETHEUS, f"{where}: {name} has no label {labels - series[name]}"


def test_a_metric_that_is_not_there_would_be_found() -> None:
    assert "joinery_gateway_nothing_total" not in known()
    assert [("joinery_x", 'a="b"'), ("joinery_y", "")] == USE.findall('sum(joinery_x{a="b"}) / joinery_y')


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    for rule in alerts():
        assert rule["labels"]["severity"] in ("warning", "critical"), rule["alert"]
        assert rule["annotations"]["summary"], rule["alert"]
        assert rule["annotations"]["description"], rule["alert"]
        for label in re.findall(r"\$labels\.(\w+)", rule["annotations"]["summary"]):
            names = [name for name, _ in USE.findall(rule["expr"])]
            assert any(label in known()[name] | OF_PROMETHEUS for name in names), (rule["alert"], label)


def test_the_limit_of_the_delay_is_a_value() -> None:
    (delay,) = [rule for rule in alerts() if rule["alert"] == "JoineryDelayHigh"]
    assert delay["expr"].endswith("> 5")
    assert not [rule for rule in alerts() if "<" + "delaySeconds>" in rule["expr"]]


def test_the_files_are_sound_as_they_stand() -> None:
    assert yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())
    ids = [panel["id"] for panel in json.loads((CHART / "files" / "grafana.json").read_text())["panels"]]
    assert sorted(set(ids)) == ids


@pytest.mark.parametrize("kind", ["PodMonitor", "PrometheusRule", "ServiceMonitor"])
def test_nothing_of_it_is_made_unless_asked_for(kind: str) -> None:
    assert [] == of_kind(rendered(DEFAULT), kind)
    assert [] == [one for one in of_kind(rendered(DEFAULT), "ConfigMap") if "dashboard" in one["metadata"]["name"]]


@pytest.mark.parametrize(("values", "names"), [(FULL, None), (NAMESPACED, ["team-a", "team-b"])])
def test_the_pods_of_queries_are_chosen_where_the_operator_looks(values: Path, names: list[str] | None) -> None:
    monitor = the(rendered(values, "metrics.podMonitor.enabled=true"), "PodMonitor")["spec"]
    assert [{"key": QUERY_LABEL, "operator": "Exists"}] == monitor["selector"]["matchExpressions"]
    assert monitor["namespaceSelector"] == ({"any": True} if names is None else {"matchNames": names})
    assert "http" == monitor["podMetricsEndpoints"][0]["port"]
