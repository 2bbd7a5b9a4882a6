"""What `.option(...)` says, read once; a wrong one is an error with what was found and wanted."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from joinery.adapters.security import TOKEN, Security
from joinery.client import Query, connect
from joinery.client.numbered import Place
from joinery.model.complaints import did_you_mean
from joinery.model.errors import UserMustAct

KNOWN: Final = (
    "gateway", "stream", "producer", "producers", "end", "tls", "token", "patience", "start", "maxBytesPerTrigger",
)  # fmt: skip
_FROM_SPARK: Final = ("path", "checkpointlocation", "queryname")
"""Spark gives its own options along."""
_MAX_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True)
class Options:
    """Where the query is, and what is wanted of it."""

    gateway: str
    stream: str | None
    producer: str | None
    """The name under which repeated rows are known; None: Spark's id of the query."""
    producers: int
    """Partitions of the frame, each a producer of its own."""
    end: bool
    tls: str | None
    token: str | None = field(repr=False)
    patience_s: float
    start: str
    """Where a first read begins: a token, or `oldest`."""
    max_bytes: int
    """Results of one micro-batch, about."""
    checkpoint: str | None

    @staticmethod
    def read(given: Mapping[str, str]) -> "Options":
        """As Spark hands them over: names in small letters."""
        named = {key.lower(): value for key, value in given.items()}
        known = {name.lower(): name for name in KNOWN}
        for key in named:
            if key not in known and key not in _FROM_SPARK:
                hint = did_you_mean(key, list(known.values())) or f"the options are {', '.join(KNOWN)}"
                raise UserMustAct(f"found the option {key!r}, wanted one that is known; {hint}")
        if "gateway" not in named:
            raise UserMustAct("found no option gateway, wanted host:port; joinery run prints it")
        return Options(
            named["gateway"], named.get("stream"), named.get("producer"), _number(named, "producers", 1),
            _truth(named, "end"), named.get("tls"), named.get("token") or os.environ.get(TOKEN),
            _number(named, "patience", 30), named.get("start", "1:0"),
            _number(named, "maxbytespertrigger", _MAX_BYTES), named.get("checkpointlocation"),
        )  # fmt: skip

    @property
    def place(self) -> Place:
        """The gateway."""
        return Place(self.gateway, Security.read(self.tls, self.token), self.patience_s)

    def connect(self) -> Query:
        """The running query."""
        return connect(self.gateway, timeout=self.patience_s, patience=self.patience_s, tls=self.tls, token=self.token)


def _number(named: Mapping[str, str], key: str, default: int) -> int:
    text = named.get(key, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise UserMustAct(f"found the option {key}={text!r}, wanted a whole number from 1; correct it")
    return int(text)


def _truth(named: Mapping[str, str], key: str) -> bool:
    text = named.get(key, "false").lower()
    if text not in ("true", "false"):
        raise UserMustAct(f"found the option {key}={text!r}, wanted true or false; correct it")
    return text == "true"
