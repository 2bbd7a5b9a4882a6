"""Certificates of queries. Each query has an authority of its own, so that none of its processes can speak as another
query's; the authority's key follows from the chart's CA and the query's name, and is kept nowhere. The certificate is
kept in the query's Secret until it grows old.
"""

import base64
import shutil
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509

from joinery.adapters.certificates import Authority, authority_below, leaf, signs_for
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
        self._kube, self._token = kube, settings.token
        self._authority = _read(kube, settings) if settings.tls else None
        self._folder = Path(tempfile.mkdtemp(prefix="joinery-tls-")) if settings.tls else None

    def certificates(self, namespace: str, query: str) -> dict[str, str]:
        """Of one query: those that it has, if they are good for a while; nothing without TLS."""
        if self._authority is None:
            return {}
        authority = authority_below(self._authority, f"{namespace}/{query}")
        held = self._kube.read("v1", "Secret", namespace, f"{query}-tls")
        if held is not None:
            files = {name: base64.b64decode(held.get("data", {}).get(name, "")) for name in _FILES}
            if is_good(files, authority, datetime.now(UTC)):
                return {name: text.decode() for name, text in files.items()}
        return {name: text.decode() for name, text in leaf(authority, NAME).items()}

    def security(self, namespace: str, query: str) -> Security:
        """What the operator shows to this query's gateway."""
        if self._authority is None or self._folder is None:
            return Security(token=self._token) if self._token else PLAIN
        folder = self._folder / namespace / query
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in leaf(authority_below(self._authority, f"{namespace}/{query}"), NAME).items():
            (folder / name).touch(0o600)
            (folder / name).write_bytes(text)
        return Security.read(folder, self._token)

    def forget(self, namespace: str, query: str) -> None:
        """The query is gone."""
        if self._folder is not None:
            shutil.rmtree(self._folder / namespace / query, ignore_errors=True)


def is_good(files: dict[str, bytes], authority: Authority, now: datetime) -> bool:
    """Whether certificates are of this authority, and not about to end."""
    if not all(files.values()) or not signs_for(authority, files["ca.crt"]):
        return False
    ends = [x509.load_pem_x509_certificate(files[name]).not_valid_after_utc for name in ("ca.crt", "tls.crt")]
    return min(ends) > now + RENEW


def _read(kube: Kube, settings: OperatorSettings) -> Authority:
    found = kube.read("v1", "Secret", settings.own_namespace, settings.ca_secret)
    data = (found or {}).get("data", {})
    if not {"tls.crt", "tls.key"} <= set(data):
        place = f"{settings.own_namespace}/{settings.ca_secret}"
        raise UserMustAct(f"tls: found no tls.crt and tls.key in the Secret {place}, wanted a CA; see tls.mode")
    return Authority(base64.b64decode(data["tls.crt"]), base64.b64decode(data["tls.key"]))
