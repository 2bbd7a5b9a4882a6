"""An authority of our own and its certificates, for `--tls` (docs/security.md): for the operator, the chart, tests.

    authority = new_authority("joinery orders")
    files = leaf(authority, NAME)                      # of a process of the service: may serve, and show it
    files = leaf(authority, "shop-7", serves=False)    # of a client: pushes rows, reads results

What is made are PEM texts by file name, as a Secret of type kubernetes.io/tls with ca.crt has them. Whoever has the
authority's key can make more of them: it belongs in a Secret that no pod of the query mounts.

    below = authority_below(authority, "shop/orders")  # always the same key: nobody needs to keep it
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS: Final = 3650
LEAF_DAYS: Final = 365
_BEFORE: Final = timedelta(minutes=5)
"""Clocks of machines differ."""
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Of the group of the curve P-256: a private key is a number from 1 to below it."""


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate that signs others, and its key; both as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def new_authority(name: str, *, days: float = AUTHORITY_DAYS, now: datetime | None = None) -> Authority:
    """One that trusts nobody yet."""
    return _rooted(ec.generate_private_key(ec.SECP256R1()), name, days, now)


def authority_below(
    authority: Authority, name: str, *, days: float = AUTHORITY_DAYS, now: datetime | None = None
) -> Authority:
    """One for a part of what an authority is for. Its key follows from the other's and the name, and not back.

    It stands for itself: what it signs is trusted by who trusts it, and by nobody who trusts the other one.
    """
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    secret = _loaded(authority).private_bytes(serialization.Encoding.DER, form, plain)
    derived = HKDF(hashes.SHA256(), 48, None, f"joinery authority {name}".encode()).derive(secret)
    number = int.from_bytes(derived, "big") % (_ORDER - 1) + 1  # 16 bytes more than needed: as good as even
    return _rooted(ec.derive_private_key(number, ec.SECP256R1()), name, days, now)


def signs_for(authority: Authority, certificate: bytes) -> bool:
    """Whether a certificate is this authority's own: of its key, whenever it was written."""
    ours, theirs = (x509.load_pem_x509_certificate(one) for one in (authority.certificate, certificate))
    return (ours.subject, ours.public_key()) == (theirs.subject, theirs.public_key())


def leaf(
    authority: Authority, name: str, *, serves: bool = True, days: float = LEAF_DAYS, now: datetime | None = None
) -> dict[str, bytes]:
    """ca.crt, tls.crt and tls.key of one who is called so; one that does not serve cannot be taken for a server."""
    signer = x509.load_pem_x509_certificate(authority.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if serves else [])]
    signing = _loaded(authority)
    made = (
        _begun(_named(name), signer.subject, key.public_key(), days, now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()),
            critical=False,
        )
        .sign(signing, hashes.SHA256())
    )
    return {"ca.crt": authority.certificate, "tls.crt": _pem(made), "tls.key": _pem_key(key)}


def _rooted(key: ec.EllipticCurvePrivateKey, name: str, days: float, now: datetime | None) -> Authority:
    subject = _named(name)
    made = (
        _begun(subject, subject, key.public_key(), days, now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(_pem(made), _pem_key(key))


def _loaded(authority: Authority) -> ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey:
    found = serialization.load_pem_private_key(authority.key, None)
    if not isinstance(found, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):  # Helm and cert-manager make RSA
        raise TypeError(f"found a key of {type(found).__name__}, wanted an elliptic curve or RSA")
    return found


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: float, now: datetime | None
) -> x509.CertificateBuilder:
    begin = (now or datetime.now(UTC)) - _BEFORE
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + _BEFORE + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        content_commitment=False, key_encipherment=False, data_encipherment=False, key_agreement=False,
        encipher_only=False, decipher_only=False,
    )  # fmt: skip


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _pem_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
