"""How each command of the documents is held to what it says: run, rendered, asked of make, or run by a named test.

A command that fits none of these fails `test_commands.py`. The first line that fits counts.
"""

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final


class Way(Enum):
    """What is done with a command."""

    RUN = "run here, one after the other, in a folder with the files of the README"
    MAKE = "`make -n`, and the program that make would start says --help"
    HELM = "the chart is rendered with the same flags; on a cluster by tests/cluster/test_documents.py"
    CLUSTER = "run on a cluster by tests/cluster/test_documents.py"
    TEST = "run by another test, which is named"


@dataclass(frozen=True, slots=True)
class Held:
    """Commands that fit a pattern, on pages that fit one."""

    pattern: str
    way: Way
    pages: str = ""
    tests: tuple[str, ...] = ()
    """`file::function`; the name of a file alone if all of it does."""
    why: str = ""


HELD: Final = (
    Held(
        r"\.venv/bin/joinery run examples/08-\S+ --port|jupyter lab ", Way.TEST, r"examples/08",
        ("tests/spark/test_notebook.py",), "the query with its streams pushed, and the cells of the notebook",
    ),
    Held(
        r"\.venv/bin/joinery run examples/0[2-9]\S+/query\.yaml --verify", Way.TEST, r"examples/0[2-9]",
        ("tests/integration/test_examples.py",), "the same command, on a copy of the folder",
    ),
    Held(r"\.venv/bin/python examples/00-core-join/join\.py", Way.RUN, r"examples/00"),
    Held(
        r"joinery (run query\.yaml --engine spark|load)", Way.TEST, r"docs/spark\.md|README",
        ("tests/spark/test_engine.py", "tests/spark/test_load.py"), "Spark's start alone takes ten seconds",
    ),
    Held(
        r"\.venv/bin/joinery ", Way.TEST, r"docs/cli\.md", ("tests/unit/cli/test_looking_commands.py",),
        "looks at a run and at what it recorded, with runs of its own",
    ),
    Held(r"make ", Way.MAKE),
    Held(r"helm (install|upgrade) ", Way.HELM),
    Held(r"helm test ", Way.TEST, "", ("tests/cluster/test_release.py::test_the_charts_own_test_passes",)),
    Held(
        r"helm rollback ", Way.TEST, "",
        ("tests/cluster/test_release.py::test_an_upgrade_and_its_rollback_roll_every_pod_and_keep_the_queries_exact",),
    ),
    Held(r"kubectl |curl -s http://127\.0\.0\.1:8080/", Way.CLUSTER),
    Held(
        r"docker (build|push) ", Way.TEST, "", ("tests/cluster/images.py",),
        "the same Containerfile, by buildah: every test of tests/cluster runs in that image",
    ),
    Held(r"(\.venv/bin/)?joinery ", Way.RUN),
    Held(r"zcat |curl -s http://127\.0\.0\.1:7480/", Way.RUN),
)  # fmt: skip


def held(page: str, command: str) -> Held | None:
    """How this command of this page is held; None: nobody has said."""
    return next((one for one in HELD if re.match(one.pattern, command) and re.search(one.pages, page)), None)


PYTHON: Final = {
    "README.md": ("tests/integration/test_readme.py",),
    "docs/client.md": ("tests/integration/test_client.py",),
    "docs/spark.md": ("tests/spark/test_data_source.py",),
}
"""Pages with blocks of Python, and the tests that run them."""
