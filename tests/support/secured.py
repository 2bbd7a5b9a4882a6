"""Folders of certificates as `--tls` wants them, for tests."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from joinery.adapters.certificates import Authority, leaf, new_authority
from joinery.adapters.security import NAME


def write(folder: Path, files: dict[str, bytes]) -> Path:
    """One folder of files; its path."""
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


class Shelf:
    """An authority and who has certificates of it: service, client; and others who have not: foreign, expired."""

    def __init__(self, folder: Path) -> None:
        self.authority = new_authority("joinery test")
        self.service = write(folder / "service", leaf(self.authority, NAME))
        self.client = write(folder / "client", leaf(self.authority, "shop-7", serves=False))
        self.posing = write(folder / "posing", leaf(self.authority, NAME, serves=False))
        self.expired = write(
            folder / "expired", leaf(self.authority, NAME, days=1, now=datetime.now(UTC) - timedelta(days=9))
        )
        other: Authority = new_authority("somebody else")
        self.foreign = write(folder / "foreign", leaf(other, NAME))
        own_root = {**leaf(other, NAME), "ca.crt": self.authority.certificate}
        self.unsigned = write(folder / "unsigned", own_root)
        """Trusts the authority, which has not signed it."""
