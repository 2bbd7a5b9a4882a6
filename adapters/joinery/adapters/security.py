"""Who may talk to whom: TLS with certificates on both sides, the token of producers and subscribers (docs/security.md).

Rule 1: `--tls DIR` holds `ca.crt`, `tls.crt`, `tls.key` (PEM). Every server then asks for a certificate of that
        authority, every client shows one. They are read once: a new certificate needs a new process.
Rule 2: a certificate with the name `joinery` is a process of the service: it may serve, and hold the conversations
        between processes. One without it is a client: it may push rows and read results.
Rule 3: with a token (`JOINERY_TOKEN`) whoever pushes or reads must show it, with or without TLS.
Rule 4: gRPC tells a client little of why a connection failed. `diagnosis` tries it by hand, and says what it found.
"""

import hmac
import socket
import ssl
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import grpc

from joinery.model.errors import UserMustAct

TOKEN: Final = "JOINERY_TOKEN"  # noqa: S105 - the name of a variable
"""Variable of the environment."""
NAME: Final = "joinery"
"""In the certificates of the service; whatever names its pods have."""
FILES: Final = ("ca.crt", "tls.crt", "tls.key")
_TRY_S: Final = 3.0
_AGAIN_S: Final = 0.3
_HEADER: Final = "authorization"


@dataclass(frozen=True, slots=True)
class Certificates:
    """The files of `--tls`, as they were when they were read."""

    folder: Path
    authority: bytes
    chain: bytes
    key: bytes = field(repr=False)

    @staticmethod
    def read(folder: Path) -> "Certificates":
        """Checked: that they are there, can be read, and belong together."""
        missing = [name for name in FILES if not (folder / name).is_file()]
        if missing:
            raise UserMustAct(
                f"--tls: found no {', '.join(missing)} in {folder}, wanted {', '.join(FILES)}; put them there, "
                "or mount the Secret that holds them"
            )
        try:
            found = Certificates(folder, *((folder / name).read_bytes() for name in FILES))
            found.context(verifies=True)
        except (OSError, ValueError) as error:
            raise UserMustAct(
                f"--tls: found {folder} that cannot be used ({error}), wanted PEM files of an authority, a certificate "
                "and its key; make them anew"
            ) from error
        return found

    def context(self, *, verifies: bool) -> ssl.SSLContext:
        """For a connection by hand."""
        made = _context(verifies=verifies)
        made.load_cert_chain(self.folder / FILES[1], self.folder / FILES[2])
        if verifies:
            made.load_verify_locations(cadata=self.authority.decode())
        return made


@dataclass(frozen=True, slots=True)
class Security:
    """What one process shows and asks for; without anything: plain text, and everybody is welcome."""

    certificates: Certificates | None = None
    token: str = field(default="", repr=False)

    @staticmethod
    def read(tls: Path | str | None, token: str | None) -> "Security":
        """As flags and environment say; a line's end in a Secret is not part of the token."""
        token = (token or "").strip()
        if not (token.isascii() and token.isprintable()):
            raise UserMustAct(f"{TOKEN}: found characters beyond ASCII in the token, wanted none; choose another")
        return Security(Certificates.read(Path(tls)) if tls else None, token)

    # --- as a client

    def channel(self, address: str, options: Any) -> grpc.Channel:
        """To a server; not connected yet."""
        if (files := self.certificates) is None:
            return grpc.insecure_channel(address, options=options)
        credentials = grpc.ssl_channel_credentials(files.authority, files.key, files.chain)
        named = (("grpc.ssl_target_name_override", NAME), ("grpc.default_authority", NAME))
        return grpc.secure_channel(address, credentials, options=(*options, *named))

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What is said with a call (rule 3)."""
        return ((_HEADER, f"Bearer {self.token}"),) if self.token else ()

    # --- as a server

    def add_port(self, server: grpc.Server, address: str) -> int:
        """Let the server listen there; RuntimeError: it cannot."""
        if (files := self.certificates) is None:
            return int(server.add_insecure_port(address))
        pair = [(files.key, files.chain)]
        credentials = grpc.ssl_server_credentials(pair, files.authority, require_client_auth=True)
        return int(server.add_secure_port(address, credentials))

    def admit(self, context: Any, *, is_for_clients: bool) -> None:
        """Ends the call if who is there may not have this conversation (rules 2 and 3)."""
        if is_for_clients:
            if self.token:
                self._check_token(context)
        elif self.certificates is not None:
            names = context.auth_context().get("x509_subject_alternative_name", [])
            if NAME.encode() not in names:
                found = ", ".join(name.decode(errors="replace") for name in names) or "no name"
                context.abort(
                    grpc.StatusCode.PERMISSION_DENIED,
                    f"found a certificate for {found}, wanted one for {NAME}: this conversation is between processes "
                    "of the service; push rows and read results with this one",
                )

    def _check_token(self, context: Any) -> None:
        shown = dict(context.invocation_metadata()).get(_HEADER, "")
        if not hmac.compare_digest(shown.encode(), f"Bearer {self.token}".encode()):
            context.abort(
                grpc.StatusCode.UNAUTHENTICATED,
                f"found {'another' if shown else 'no'} token, wanted the query's; set {TOKEN} for the commands, or "
                "pass token= to joinery.client.connect",
            )


PLAIN: Final = Security()


def diagnosis(address: str, security: Security) -> str | None:
    """What keeps us from a server that can be reached; None: nothing that could be found out here (rule 4).

    It is tried twice: a server that just ends hangs up, too.
    """
    first = _tried(address, security)
    if first is None:
        return None
    time.sleep(_AGAIN_S)
    return _tried(address, security)


def _tried(address: str, security: Security) -> str | None:
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_TRY_S) as line:
            return _shaken(line, security.certificates)
    except (OSError, ValueError):
        return None  # nobody is there: that is another story


def _shaken(line: socket.socket, files: Certificates | None) -> str | None:
    if files is None:
        try:
            _context(verifies=False).wrap_socket(line, server_hostname=NAME).close()
        except OSError as error:
            if "ALERT" not in (getattr(error, "reason", None) or ""):
                return None  # plain text, as ours
        return "found a server that wants TLS, wanted plain text; connect with --tls DIR (tls= in Python)"
    try:
        with files.context(verifies=True).wrap_socket(line, server_hostname=NAME) as secure:
            secure.settimeout(_TRY_S)
            said = secure.recv(1)  # with TLS 1.3 the server looks at our certificate after the handshake
            return None if said else _refusal("it hangs up after the handshake", files)
    except ConnectionResetError:
        return _refusal("it hangs up", files)
    except ssl.SSLCertVerificationError as error:
        return (
            f"found a server whose certificate does not fit {files.folder / FILES[0]} ({error.verify_message}), wanted "
            f"one for {NAME} of that authority; take the query's own ca.crt, or renew the server's certificate"
        )
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).lower().replace("_", " ")
        if any(word in reason for word in ("alert", "certificate", "eof")):
            return _refusal(reason, files)
        plain = f"found a server that answers in plain text ({reason}), wanted TLS"
        return f"{plain}; connect without --tls, or start it with it"
    except OSError:
        return None


def _refusal(reason: str, files: Certificates) -> str:
    return (
        f"found that the server refuses the certificate {files.folder / FILES[1]} ({reason}), wanted one of its "
        "authority that has not expired; take one of the query's own"
    )


def _context(*, verifies: bool) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    made.set_alpn_protocols(["h2"])
    if not verifies:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made
