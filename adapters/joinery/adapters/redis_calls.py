"""What all Redis stores share: the names of a query's keys, and what a failed call means.

Rule 1: all keys of a query have one hash tag, so that one script may touch them together, in a Redis Cluster too.
Rule 2: a call that got no answer may have been carried out. All our calls may be made again, so it is `TryAgain`;
        the shell repeats it. The client itself never does: whoever waits should know.
"""

import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, cast
from urllib.parse import quote

from redis import Redis
from redis import exceptions as failures
from redis.sentinel import MasterNotFoundError

from joinery.model.errors import TryAgain, UserMustAct

_PASSING: Final = (
    failures.ConnectionError,
    failures.TimeoutError,
    failures.InvalidResponse,  # somebody else answers at this address
    failures.TryAgainError,
    failures.ClusterDownError,
    failures.MasterDownError,
)
_UNABLE: Final = (failures.OutOfMemoryError, failures.ReadOnlyError)
_UNABLE_TEXTS: Final = re.compile(r"(?:^|caused error: |: -)(?:MISCONF|NOREPLICAS|BUSY|OOM|READONLY|MASTERDOWN)\b")
"""Refusals that the client knows no class for, or not in a pipeline or script: the disk or the memory is full, replicas
are missing, a script is running. The first write of a script is what is refused, so nothing of it was done."""
_NO_DATABASE: Final = "DB index is out of range"
_REFUSED: Final = (failures.AuthenticationError, failures.AuthorizationError, failures.NoPermissionError)


def prefix_of(query: str) -> str:
    """What every key of a query begins with; a brace in its name would end the hash tag."""
    return f"joinery:{{{quote(query, safe='')}}}:"


def run_of(client: Redis, query: str) -> str:
    """A name for what lies outside Redis: drawn once, it stands for as long as the query's keys do, no longer."""
    key = f"{prefix_of(query)}run"
    with calling():
        client.set(key, uuid.uuid4().hex[:12], nx=True)
        return cast("bytes", client.get(key)).decode()


@contextmanager
def calling() -> Iterator[None]:
    """Around calls to Redis: their errors as ours, by who must act."""
    try:
        yield
    except _REFUSED as error:
        message = f"found Redis refusing us ({error}), wanted its leave; check user and password of the url"
        raise UserMustAct(message) from error
    except _UNABLE as error:
        raise TryAgain(f"found Redis unable to write ({error}), wanted an answer; it is asked again") from error
    except MasterNotFoundError as error:
        told = str(error).partition(" : ")[0]  # the rest shows every option of every Sentinel's connection
        raise TryAgain(f"found no answer from Sentinel ({told}), wanted one; it is asked again") from error
    except _PASSING as error:
        raise TryAgain(f"found no answer from Redis ({error}), wanted one; it is asked again") from error
    except failures.ResponseError as error:
        if _NO_DATABASE in str(error):
            message = f"found Redis without that database ({error}), wanted one that it has; mend the number in the url"
            raise UserMustAct(message) from error
        if _UNABLE_TEXTS.search(str(error)) is None:
            raise
        raise TryAgain(f"found Redis unable to write ({error}), wanted an answer; it is asked again") from error
