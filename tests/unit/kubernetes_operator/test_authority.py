"""An authority per query: its processes trust each other and the operator, and nobody of another query."""

import base64
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from joinery.adapters.certificates import Authority, authority_below, leaf, new_authority, signs_for
from joinery.adapters.security import NAME, PLAIN
from joinery.operator.authority import Signer, is_good
from joinery.operator.settings import OperatorSettings

RELEASE = new_authority("release")
SETTINGS = OperatorSettings(tls=True, ca_secret="ca", own_namespace="joinery", token="sesame")  # noqa: S106


class Secrets:
    """Those of a cluster, by namespace and name."""

    def __init__(self, authority: Authority = RELEASE) -> None:
        self.held: dict[tuple[str, str], dict[str, bytes]] = {
            ("joinery", "ca"): {"tls.crt": authority.certificate, "tls.key": authority.key}
        }

    def read(self, _version: str, _kind: str, namespace: str, name: str) -> Any:
        found = self.held.get((namespace, name))
        return found and {"data": {key: base64.b64encode(text).decode() for key, text in found.items()}}


def signer(secrets: Secrets | None = None) -> Signer:
    return Signer(secrets or Secrets(), SETTINGS)  # type: ignore[arg-type]


def written(folder: Path, files: dict[str, str]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def shaken(server: Path, client: Path) -> None:
    """A handshake in memory, each side with its certificate, and both are asked for."""
    contexts = [ssl.SSLContext(kind) for kind in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT)]
    for context, folder in zip(contexts, (server, client), strict=True):
        context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        context.load_verify_locations(folder / "ca.crt")
        context.verify_mode = ssl.CERT_REQUIRED
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        contexts[0].wrap_bio(to_server, to_client, server_side=True),
        contexts[1].wrap_bio(to_client, to_server, server_hostname=NAME),
    ]
    for _ in range(6):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue


def test_processes_and_operator_of_one_query_trust_each_other_and_no_other_query(tmp_path: Path) -> None:
    signs = signer()
    orders = written(tmp_path / "orders", signs.certificates("shop", "orders"))
    again = written(tmp_path / "again", signs.certificates("shop", "orders"))
    others = [signs.certificates("shop", "bids"), signs.certificates("shop2", "orders")]
    operator = signs.security("shop", "orders").certificates
    assert operator is not None
    shaken(orders, again)
    shaken(orders, operator.folder)
    for number, files in enumerate(others):
        other = written(tmp_path / f"other{number}", files)
        for pair in ((orders, other), (other, orders)):
            with pytest.raises(ssl.SSLError, match=r"certificate verify failed|unknown ca"):
                shaken(*pair)


def test_the_releases_own_authority_is_trusted_by_no_query(tmp_path: Path) -> None:
    orders = written(tmp_path / "orders", signer().certificates("shop", "orders"))
    release = {name: text.decode() for name, text in leaf(RELEASE, NAME).items()}
    with pytest.raises(ssl.SSLError, match="certificate verify failed"):
        shaken(orders, written(tmp_path / "release", release))


def test_an_operator_after_us_signs_with_the_same_authority_and_keeps_a_good_certificate() -> None:
    secrets = Secrets()
    made = signer(secrets).certificates("shop", "orders")
    secrets.held["shop", "orders-tls"] = {name: text.encode() for name, text in made.items()}
    assert made == signer(secrets).certificates("shop", "orders")


def test_a_certificate_of_the_release_from_an_older_version_is_replaced() -> None:
    secrets = Secrets()
    secrets.held["shop", "orders-tls"] = leaf(RELEASE, NAME)
    made = signer(secrets).certificates("shop", "orders")
    assert made["ca.crt"].encode() != RELEASE.certificate


@pytest.mark.parametrize("short", ["ca.crt", "tls.crt"])
def test_what_is_about_to_end_is_replaced(short: str) -> None:
    now = datetime.now(UTC)
    days = {"ca.crt": 3650.0, "tls.crt": 365.0} | {short: 20.0}
    authority = authority_below(RELEASE, "shop/orders", days=days["ca.crt"])
    files = leaf(authority, NAME, days=days["tls.crt"])
    assert not is_good(files, authority, now)
    assert is_good(files, authority, now - timedelta(days=15))


def test_the_key_follows_from_the_releases_key_and_the_name_only() -> None:
    one = authority_below(RELEASE, "shop/orders")
    assert signs_for(one, authority_below(RELEASE, "shop/orders", days=1).certificate)
    assert one.key == authority_below(Authority(b"renewed", RELEASE.key), "shop/orders").key
    for other in (authority_below(RELEASE, "shop/order"), authority_below(new_authority("release"), "shop/orders")):
        assert one.key != other.key
        assert not signs_for(one, other.certificate)


def test_an_authority_with_an_rsa_key_will_do() -> None:
    key = rsa.generate_private_key(65537, 2048)
    form, plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    release = Authority(RELEASE.certificate, key.private_bytes(serialization.Encoding.PEM, form, plain))
    made = leaf(authority_below(release, "shop/orders"), NAME)
    issuer, own = (x509.load_pem_x509_certificate(made[name]) for name in ("ca.crt", "tls.crt"))
    own.verify_directly_issued_by(issuer)


def test_without_tls_nothing_is_signed_and_the_token_is_shown() -> None:
    open_one = Signer(Secrets(), OperatorSettings())  # type: ignore[arg-type]
    assert {} == open_one.certificates("shop", "orders")
    assert open_one.security("shop", "orders") is PLAIN


def test_a_query_that_is_gone_leaves_no_key_with_the_operator() -> None:
    signs = signer()
    held = signs.security("shop", "orders").certificates
    assert held is not None
    assert (held.folder / "tls.key").stat().st_mode & 0o777 == 0o600
    signs.forget("shop", "orders")
    assert not held.folder.exists()
