"""`python -m tests.support.metrics_docs`: the tables of docs/metrics.md, from the lists in the code."""

import re
from pathlib import Path

from joinery.adapters.metrics import METRICS
from joinery.operator.metrics import Metrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
BEGIN, END = "<!-- metrics, made by tests/support/metrics_docs.py -->\n", "<!-- end of metrics -->\n"


def tables() -> str:
    """One table for each role."""
    parts: dict[str, list[str]] = {}
    for metric in METRICS.values():
        role = metric.name.split("_")[1] if metric.name.startswith("joinery_") else "process"
        labels = ", ".join(f"`{label}`" for label in metric.labels if label != "joinquery")
        parts.setdefault(role, []).append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.about} |")
    parts["operator"] = [*_of_operator()]
    head = "| metric | kind | labels | what it is |\n|---|---|---|---|"
    return "\n".join(f"## {role.capitalize()}\n\n{head}\n" + "\n".join(rows) + "\n" for role, rows in parts.items())


def _of_operator() -> list[str]:
    metrics = Metrics()
    metrics.told("x")
    text = metrics.text()
    rows = []
    for name, about in re.findall(r"# HELP (\S+) (.*)", text):
        kind = re.search(rf"# TYPE {name} (\w+)", text)
        labels = re.search(rf"^{name}\{{(\w+)=", text, re.MULTILINE)
        rows.append(f"| `{name}` | {kind[1] if kind else ''} | {f'`{labels[1]}`' if labels else ''} | {about} |")
    return rows


def page_of(page: str) -> str:
    """The page with the tables as they are now."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(page_of(PAGE.read_text()))
