"""Certificates of queries, signed with the chart's CA: each query has one, kept in its Secret until it grows old."""

import base64
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509

from joinery.adapters.certificates import Authority, leaf
from joinery.adapters.security import NAME, PLAIN, Security
from joinery.model.errors import UserMustAct
from joinery.operator.kube import Kube
from joinery.operator.settings import OperatorSettings

RENEW: Final = timedelta(days=30)
"""A certificate that ends sooner is made anew; the pods are rolled then, since they read it at their start."""
_FILES: Final = ("ca.crt", "tls.crt", "tls.key")


class Signer:
    """Signs, if the chart says so."""

    def __init__(self, kube: Kube, settings: OperatorSettings) -> None:
        self._kube = kube
        self._authority = _read(kube, settings) if settings.tls else None
        self.security = self._own(settings.token)
        """What the operator shows to gateways."""

    def certificates(self, namespace: str, query: str) -> dict[str, str]:
        """Of one query: those that it has, if they are good for a while; nothing without TLS."""
        if self._authority is None:
            return {}
        held = self._kube.read("v1", "Secret", namespace, f"{query}-tls")
        if held is not None:
            files = {name: base64.b64decode(held.get("data", {}).get(name, "")) for name in _FILES}
            if is_good(files, self._authority, datetime.now(UTC)):
                return {name: text.decode() for name, text in files.items()}
        return {name: text.decode() for name, text in leaf(self._authority, NAME).items()}

    def _own(self, token: str) -> Security:
        if self._authority is None:
            return Security(token=token) if token else PLAIN
        folder = Path(tempfile.mkdtemp(prefix="joinery-tls-"))
        for name, text in leaf(self._authority, NAME).items():
            (folder / name).write_bytes(text)
            (folder / name).chmod(0o600)
        return Security.read(folder, token)


def is_good(files: dict[str, bytes], authority: Authority, now: datetime) -> bool:
    """Whether a certificate is of this authority, and not about to end."""
    if not all(files.values()) or files["ca.crt"].strip() != authority.certificate.strip():
        return False
    return x509.load_pem_x509_certificate(files["tls.crt"]).not_valid_after_utc > now + RENEW


def _read(kube: Kube, settings: OperatorSettings) -> Authority:
    found = kube.read("v1", "Secret", settings.own_namespace, settings.ca_secret)
    data = (found or {}).get("data", {})
    if not {"tls.crt", "tls.key"} <= set(data):
        place = f"{settings.own_namespace}/{settings.ca_secret}"
        raise UserMustAct(f"tls: found no tls.crt and tls.key in the Secret {place}, wanted a CA; see tls.mode")
    return Authority(base64.b64decode(data["tls.crt"]), base64.b64decode(data["tls.key"]))
