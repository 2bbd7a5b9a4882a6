"""docs/metrics.md lists the metrics as they are; names keep to the conventions."""

import re

from joinery.adapters.metrics import METRICS
from tests.support.metrics_docs import PAGE, page_of


def test_the_page_lists_the_metrics_as_they_are() -> None:
    page = PAGE.read_text()
    assert page_of(page) == page, "the tables are old: python -m tests.support.metrics_docs"
    assert all(f"`{name}`" in page for name in METRICS)


def test_names_follow_the_conventions() -> None:
    for name, metric in METRICS.items():
        assert re.fullmatch(r"(joinery_(gateway|worker|collector|process)|process)_[a-z_]+", name), name
        assert (metric.kind == "counter") == name.endswith("_total"), name
        assert metric.kind != "histogram" or name.endswith("_seconds"), name
        assert not re.search(r"_(ms|us|ns|milliseconds|kb|mb)(_|$)", name), name
        assert "partition_group" not in metric.labels or metric.kind == "gauge", name
        assert metric.about.endswith("."), name
