"""Connections between simulated processes (the rules of docs/protocol.md, connections).

Rule 1: a connection is FIFO in each direction, `Connected` first; both sides hear of it at different times.
Rule 2: a broken connection loses what is under way and what is sent until its sides notice; they notice at different
        times. A side whose process ended or closed it may still deliver what it had sent before.
Rule 3: the side that listens names each connection anew (`worker-0#3`), so it may hear of a new connection before the
        older one is gone, and what was sent on the older one may still come. Only the operator keeps its name: its new
        connection takes the place of the older one, of which nothing more is heard.
Rule 4: the connecting side connects again by itself, to the newest instance of the other. A paused process keeps its
        connections until others give it up. A zombie dials again too, and waits longer each time.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from math import inf
from typing import Any, Final

import numpy as np

from joinery.machine.facts import Connected, Disconnected, Fact, Received
from joinery.machine.messages import Holdings, Message
from joinery.model.ids import OPERATOR, Peer
from joinery.simulate.charges import Charges
from joinery.simulate.process import Process
from joinery.simulate.schedule import Timing
from joinery.simulate.timeline import Dice, Timeline

CLIENT: Final = 0
"""The connecting side; messages of direction 0 come from it."""
SERVER: Final = 1
MARK: Final = "#"
"""Between the name of a process and the number of its connection."""


def caller(peer: Peer) -> Peer:
    """Whose connection this is."""
    return Peer(peer.partition(MARK)[0])


class Link:
    """One connection."""

    __slots__ = ("dice", "ends", "is_known", "is_up", "last", "names", "until")

    def __init__(self, client: Process, server: Process, seed: int, number: int) -> None:
        self.ends = (client, server)
        self.is_up = True
        self.is_known = [False, False]
        """Whether each side was told of it: a paused one may hear of it only when it is gone."""
        self.last = [0, 0]
        """When the newest message of each direction arrives."""
        self.until: list[float] = [inf, inf]
        """What arrives after this, in each direction, is lost."""
        mine = client.peer if client.peer == OPERATOR else Peer(f"{client.peer}{MARK}{number}")
        self.names = (mine, server.peer)
        """What the other side calls each."""
        name = f"{client.peer} {server.peer} {number}"
        self.dice = (Dice(seed, f"{name} there"), Dice(seed, f"{name} back"))

    def side_of(self, process: Process) -> int:
        return CLIENT if self.ends[CLIENT] is process else SERVER


class Network:
    """All connections of a run."""

    def __init__(
        self, timeline: Timeline, timing: Timing, seed: int, tell: Callable[[Process, Fact], None], counts: Counter[str]
    ) -> None:
        self._timeline, self._timing, self._seed, self._tell, self._counts = timeline, timing, seed, tell, counts
        self.charges: Charges | None = None
        """What messages cost; None: their delays are drawn."""
        self._servers: dict[Peer, Process] = {}
        self._waiting: dict[Peer, dict[Process, None]] = {}
        self._made: Counter[tuple[Peer, Peer]] = Counter()

    # --- up

    def serve(self, process: Process) -> None:
        """From now on connections to this peer come to this process."""
        older = self._servers.get(process.peer)
        self._servers[process.peer] = process
        for client in self._waiting.pop(process.peer, {}):
            self.dial(client, process.peer)
        if older is not None and older.is_alive:
            self.abandon(older)

    def abandon(self, older: Process) -> None:
        """The peers of a process that was replaced give it up: some soon, some only when it is back as a zombie."""
        for link in older.connections:
            dice, notice = link.dice[CLIENT], self._timing.notice_ns
            patience = dice.between(notice) if dice.draw() < 0.5 else dice.between((0, 20 * notice[1]))
            self._timeline.after(patience, self.cut, link)

    def dial(self, client: Process, target: Peer) -> None:
        """Connect soon; a zombie that is sent away again and again waits longer each time."""
        delay = client.dice.between(self._timing.reconnect_ns)
        if client.is_zombie:
            client.tries += 1
            delay *= client.tries
        self._timeline.after(delay, self._connect, client, target)

    def _connect(self, client: Process, target: Peer) -> None:
        if client.is_away(self._connect, client, target) or target in client.links:
            return
        server = self._servers.get(target)
        if server is None or not server.is_alive:
            self._waiting.setdefault(target, {})[client] = None
            return
        self._made[client.peer, target] += 1
        link = Link(client, server, self._seed, self._made[client.peer, target])
        client.connections[link] = server.connections[link] = None
        link.last[CLIENT] = self._timeline.now + link.dice[CLIENT].between(self._timing.message_ns)
        link.last[SERVER] = link.last[CLIENT] + link.dice[SERVER].between(self._timing.message_ns)
        self._timeline.at(link.last[CLIENT], self._accept, link)
        self._timeline.at(link.last[SERVER], self._established, link)

    def _accept(self, link: Link) -> None:
        client, server = link.ends
        if server.is_away(self._accept, link) or not link.is_up:
            return
        del client
        older = server.links.get(link.names[CLIENT])
        server.links[link.names[CLIENT]] = link
        link.is_known[SERVER] = True
        if older is not None:
            older.until[CLIENT] = min(older.until[CLIENT], self._timeline.now)
            if older.is_up:
                self._close(older, SERVER, sends_rest=False)
        self._tell(server, Connected(link.names[CLIENT]))

    def _established(self, link: Link) -> None:
        client, server = link.ends
        if client.is_away(self._established, link):
            return
        if not link.is_up:
            self.dial(client, server.peer)
            return
        client.links[server.peer] = link
        link.is_known[CLIENT] = True
        self._tell(client, Connected(server.peer))

    # --- messages

    def send(self, process: Process, to: Peer, message: Message) -> None:
        """Put a message on its way."""
        link = process.links.get(to)
        if link is None or not link.is_up:
            self._counts["messages lost"] += 1
            return
        side = link.side_of(process)
        if self.charges is None:
            arrives = self._timeline.now + link.dice[side].between(self._timing.message_ns)
        else:
            arrives = self.charges.arrives_ns(process, link.ends[1 - side], message, self._timeline.now)
        arrives = max(link.last[side], arrives)
        link.last[side] = arrives
        self._timeline.at(arrives, self._arrive, link, side, as_on_the_wire(message))

    def _arrive(self, link: Link, side: int, message: Message) -> None:
        if self._timeline.now >= link.until[side]:
            self._counts["messages lost"] += 1
        else:
            self._deliver(link, side, message)

    def _deliver(self, link: Link, side: int, message: Message) -> None:
        receiver = link.ends[1 - side]
        if receiver.is_away(self._deliver, link, side, message):
            return
        if link.is_known[1 - side]:
            self._tell(receiver, Received(link.names[side], message))

    # --- down

    def cut(self, link: Link) -> None:
        """The connection breaks; nobody knows yet."""
        if not link.is_up:
            return
        self._end(link)
        link.until = [self._timeline.now, self._timeline.now]
        for side in (CLIENT, SERVER):
            self._timeline.after(link.dice[side].between(self._timing.notice_ns), self._notice, link, side)

    def cut_between(self, one: str, other: str) -> bool:
        """Break the connection between two peers, if they have one."""
        for server in list(self._servers.values()):
            for link in list(server.connections):
                if link.ends[SERVER] is server and {one, other} == {str(end.peer) for end in link.ends}:
                    self.cut(link)
                    return True
        return False

    def close(self, process: Process, peer: Peer) -> None:
        """A process closes its connection to a peer: both hear of it."""
        link = process.links.get(peer)
        if link is not None and link.is_up:
            side = link.side_of(process)
            self._close(link, side, sends_rest=True)
            self._timeline.after(link.dice[side].between(self._timing.notice_ns), self._notice, link, side)

    def leave(self, process: Process, *, in_peace: bool) -> None:
        """A process ended. What it had sent arrives; after a crash only some of it."""
        for link in list(process.connections):
            side = link.side_of(process)
            self._close(link, side, sends_rest=in_peace or link.dice[side].draw() < 0.5)
        process.links.clear()
        for waiting in self._waiting.values():
            waiting.pop(process, None)

    def _close(self, link: Link, side: int, *, sends_rest: bool) -> None:
        """One side is gone; the other one notices."""
        self._end(link)
        now, other = self._timeline.now, 1 - side
        noticed = now + link.dice[other].between(self._timing.notice_ns)
        link.until[side] = noticed if sends_rest else now
        link.until[other] = now
        self._timeline.at(noticed, self._notice, link, other)

    def _end(self, link: Link) -> None:
        link.is_up = False
        for end in link.ends:
            end.connections.pop(link, None)

    def _notice(self, link: Link, side: int) -> None:
        process, peer = link.ends[side], link.names[1 - side]
        if process.is_away(self._notice, link, side) or process.links.get(peer) is not link:
            return
        del process.links[peer]
        if side == CLIENT:
            self.dial(process, peer)
        self._tell(process, Disconnected(peer))


def as_on_the_wire(message: Message) -> Message:
    """The message as it is now: what its sender does to its vectors afterwards does not reach the receiver."""
    return _copied(message)  # type: ignore[no-any-return]


def _copied(value: Any) -> Any:
    kind: Any = type(value)
    if kind is np.ndarray:
        return value.copy()
    names, vectors = _fields_of(kind)
    if not vectors:
        return value
    return kind(*[_copied(getattr(value, name)) if name in vectors else getattr(value, name) for name in names])


@cache
def _fields_of(kind: type) -> tuple[tuple[str, ...], frozenset[str]]:
    """The fields of a message, and those of them that are arrays or hold some."""
    known = fields(kind)
    vectors = [
        field.name for field in known if field.type is Holdings or getattr(field.type, "__origin__", None) is np.ndarray
    ]
    return tuple(field.name for field in known), frozenset(vectors)
