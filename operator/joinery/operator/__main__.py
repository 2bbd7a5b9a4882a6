"""`python -m joinery.operator`: runs until it is told to end."""

import logging
import sys
from typing import Final

import kopf

from joinery.adapters.http_probes import Answer, Probes
from joinery.adapters.logs import begin
from joinery.operator.handlers import Operator, register
from joinery.operator.kube import Kube
from joinery.operator.settings import OperatorSettings

STUCK_S: Final = 60.0
LISTEN: Final = "0.0.0.0:8080"


def main() -> int:
    """The operator, and its health on a port of its own."""
    begin("operator", usual="info")
    logging.getLogger("kopf").setLevel(logging.WARNING)
    settings = OperatorSettings.read()
    operator = Operator(settings, Kube())
    probes = Probes(LISTEN)

    def healthz() -> Answer:
        stuck = operator.stuck(STUCK_S)
        return Answer(200, "ok") if stuck is None else Answer(503, stuck)

    def metrics() -> Answer:
        return Answer(200, operator.metrics.text(), "text/plain; version=0.0.4; charset=utf-8")

    probes.pages |= {"/healthz": healthz, "/livez": healthz, "/readyz": healthz, "/metrics": metrics}
    registry = kopf.OperatorRegistry()
    register(operator, registry)
    try:
        kopf.run(
            registry=registry, standalone=True, clusterwide=not settings.namespaces, namespaces=settings.namespaces
        )
    finally:
        probes.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
