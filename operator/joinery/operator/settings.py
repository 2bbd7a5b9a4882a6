"""What the operator is told at its start: the chart sets these as environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from joinery.adapters.logs import FORMAT, LEVEL

HOLD_S: Final = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSettings:
    """The chart's settings that concern every query."""

    image: str = "joinery:dev"
    """The image of a query's pods; it is the operator's own."""
    pull_policy: str = "IfNotPresent"
    pull_secrets: tuple[str, ...] = ()
    redis_url: str = ""
    """The Redis of queries that name none."""
    namespaces: tuple[str, ...] = ()
    """Namespaces that are watched; empty: all."""
    hold_s: float = HOLD_S
    """How long a number of workers that a person asked for is kept."""
    delete_s: float = 60.0
    """How long the end of a deleted query may take before its finalizer is let go."""
    tls: bool = False
    """Whether the processes of a query talk to each other only with certificates."""
    ca_secret: str = ""
    """Secret with the CA (tls.crt, tls.key) that signs a query's certificate."""
    token: str = field(default="", repr=False)
    """What producers and subscribers must show; empty: nothing."""
    own_namespace: str = "default"
    logs: tuple[tuple[str, str], ...] = ()
    """How a query's processes log: as the operator does."""
    spark_image: str = ""
    """The image of drivers and executors; empty: LoadTests and stored tables are refused."""
    spark_pull_policy: str = "IfNotPresent"
    spark_role: str = ""
    """Kind/name of the role that the drivers of Spark are given."""

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> "OperatorSettings":
        """From JOINERY_... variables."""

        def text(name: str, default: str = "") -> str:
            return environment.get(f"JOINERY_{name}", default)

        def names(name: str) -> tuple[str, ...]:
            return tuple(one.strip() for one in text(name).split(",") if one.strip())

        return cls(
            image=text("IMAGE", "joinery:dev"),
            pull_policy=text("PULL_POLICY", "IfNotPresent"),
            pull_secrets=names("PULL_SECRETS"),
            redis_url=text("REDIS_URL"),
            namespaces=names("NAMESPACES"),
            hold_s=float(text("HOLD_SECONDS", str(HOLD_S))),
            delete_s=float(text("DELETE_SECONDS", "60")),
            tls=text("TLS") == "true",
            ca_secret=text("CA_SECRET"),
            token=text("TOKEN"),
            own_namespace=text("NAMESPACE", "default"),
            logs=tuple((name, environment[name]) for name in (FORMAT, LEVEL) if environment.get(name)),
            spark_image=text("SPARK_IMAGE"),
            spark_pull_policy=text("SPARK_PULL_POLICY", "IfNotPresent"),
            spark_role=text("SPARK_ROLE"),
        )
