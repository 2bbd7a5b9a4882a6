"""One logger for every process: lines for people, or JSON with who says it (component, query, worker, term).

JOINERY_LOG=json: a line of JSON for everything from level info on, as a cluster wants it (the chart sets it).
JOINERY_LOG=text, or nothing: `gateway: what is wrong`, warnings and errors only; people have tables and summaries.
JOINERY_LOG_LEVEL=debug, info, warning or error: another level.

Rule: nothing is logged per row, record or message; a line tells what a person may have to know or do.
"""

import json
import logging
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, TextIO

FORMAT: Final = "JOINERY_LOG"
LEVEL: Final = "JOINERY_LOG_LEVEL"
FORMATS: Final[tuple[str, ...]] = ("text", "json")
LEVELS: Final = {name: getattr(logging, name.upper()) for name in ("debug", "info", "warning", "error")}
log = logging.getLogger("joinery")


class _Who:
    """Whom the lines are of; the same for the whole process."""

    def __init__(self) -> None:
        self.component, self.query, self.worker = "", "", ""
        self.term: int | None = None
        self.is_json = False

    def named(self) -> dict[str, Any]:
        """What is known of it."""
        found = {"component": self.component, "query": self.query, "worker": self.worker, "term": self.term}
        return {key: value for key, value in found.items() if value not in ("", None)}


_who: Final = _Who()


class JsonFormatter(logging.Formatter):
    """A line of JSON for each record."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            **_who.named(),
            "message": record.getMessage(),
            **getattr(record, "told", {}),
        }
        if record.name not in ("joinery", "root"):
            told["logger"] = record.name
        if record.exc_info:
            told["error"] = self.formatException(record.exc_info)
        return json.dumps(told, default=str, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """`worker-0: what is wrong`."""

    def format(self, record: logging.LogRecord) -> str:
        text = f"{_who.worker or _who.component or 'joinery'}: {record.getMessage()}"
        return f"{text}\n{self.formatException(record.exc_info)}" if record.exc_info else text


class _Here(logging.Handler):
    """Writes to where standard error is now."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream

    def emit(self, record: logging.LogRecord) -> None:
        stream = self._stream or sys.stderr
        stream.write(self.format(record) + "\n")
        stream.flush()


def begin(
    component: str,
    *,
    query: str = "",
    worker: str = "",
    environment: Mapping[str, str] = os.environ,
    stream: TextIO | None = None,
    usual: str = "warning",
) -> None:
    """Log as the environment says; `usual`: from which level on text is written if nobody says.

    What it says wrong is told, and does not keep a process from its work.
    """
    shape, level = environment.get(FORMAT) or "text", (environment.get(LEVEL) or "").lower()
    wrong: list[tuple[str, str, tuple[str, ...]]] = [(FORMAT, shape, FORMATS)] if shape not in FORMATS else []
    wrong += [(LEVEL, level, tuple(LEVELS))] if level and level not in LEVELS else []
    _who.component, _who.query, _who.worker, _who.term = component, query, worker, None
    _who.is_json = shape == "json"
    handler, root = _Here(stream), logging.getLogger()
    handler.setFormatter(JsonFormatter() if _who.is_json else TextFormatter())
    for older in [one for one in root.handlers if isinstance(one, _Here)]:
        root.removeHandler(older)
    root.addHandler(handler)
    root.setLevel(LEVELS.get(level, logging.INFO if _who.is_json else LEVELS[usual]))
    for name, found, known in wrong:
        log.warning("%s: found %r, wanted one of %s; leave it out", name, found, ", ".join(known))


def is_json() -> bool:
    """Whether a machine reads it."""
    return _who.is_json


def of_term(term: int) -> None:
    """The process has its term."""
    _who.term = term


def tell(message: str, *, level: int = logging.INFO, **told: Any) -> None:
    """One line; what stands beside the message are fields of the JSON."""
    log.log(level, message, extra={"told": told})


def complain(name: str, text: str) -> None:
    """Something that a person must hear of, whoever reads the lines."""
    if _who.is_json:
        tell(text, level=logging.ERROR)
    else:
        sys.stderr.write(f"{name}: {text}\n")
        sys.stderr.flush()
