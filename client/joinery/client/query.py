"""What both faces know of a query: where it is, what its streams want, and which producers are open."""

from typing import Final

from joinery.adapters.security import PLAIN, Security
from joinery.client.errors import Unreachable
from joinery.client.talks import NoGateway, ProducerTalk, ResultsTalk, describe
from joinery.machine.messages import Description
from joinery.model.complaints import did_you_mean
from joinery.model.errors import UserMustAct
from joinery.partition.format import StreamFormat

PATIENCE_S: Final = 30.0
"""How long a connection that broke may stay down before that is an error."""


class QueryTalk:
    """A query that was found at an address."""

    def __init__(self, address: str, description: Description, patience_s: float, security: Security) -> None:
        self.address, self.description, self._patience_s = address, description, patience_s
        self._security = security
        self.producers: dict[str, ProducerTalk] = {}
        """Those of `push`, by stream."""
        self._open: list[ProducerTalk | ResultsTalk] = []
        self._reserved: ResultsTalk | None = None
        """Opened before the first end, so that the query does not end before its results are asked for."""

    @staticmethod
    def at(address: str, timeout_s: float, patience_s: float, security: Security = PLAIN) -> "QueryTalk":
        """The query whose gateway is there; `Unreachable` if there is none."""
        try:
            return QueryTalk(address, describe(address, timeout_s, security), patience_s, security)
        except NoGateway as error:
            remedy = "name the gateway's address, which joinery run prints"
            raise Unreachable(address, "somebody who takes no rows", remedy) from error

    def form(self, stream: str) -> StreamFormat:
        """What a stream wants."""
        names = [form.name for form in self.description.formats]
        if stream not in names:
            hint = did_you_mean(stream, names) or f"name one of {', '.join(names)}"
            raise UserMustAct(f"found no stream {stream!r} in this query, wanted one of {', '.join(names)}; {hint}")
        return self.description.formats[names.index(stream)]

    def producer(self, stream: str, name: str | None) -> ProducerTalk:
        """A new producer."""
        talk = ProducerTalk(self.address, self.form(stream), name, self._patience_s, self._security)
        self._open.append(talk)
        return talk

    def pushing(self, stream: str) -> ProducerTalk:
        """The producer of `push`: one for each stream, opened when it is used first."""
        if stream not in self.producers:
            self.producers[stream] = self.producer(stream, None)
        return self.producers[stream]

    def reserve(self) -> None:
        """An end is about to be pushed: whoever asks for results after it shall still get them."""
        if self._reserved is None and self.description.results_address is not None:
            self._reserved = self.results(None, follow=True)

    def results(self, token: str | None, *, follow: bool) -> ResultsTalk:
        """A new subscription, or the one that is reserved."""
        if token is None and follow and self._reserved is not None:
            talk, self._reserved = self._reserved, None
            return talk
        address = self.description.results_address
        if address is None:
            raise UserMustAct(
                f"found no address of results at {self.address}, wanted one; read them from the collector: "
                "joinery.client.Results.at(address)"
            )
        talk = ResultsTalk(address, token, self._patience_s, only_kept=not follow, security=self._security)
        self._open.append(talk)
        return talk

    def close(self) -> None:
        """Hang up everywhere."""
        for talk in self._open:
            talk.close()
        self._open.clear()
