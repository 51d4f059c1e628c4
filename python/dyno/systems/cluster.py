"""What every cluster can do besides what every system can: say how its nodes are, be struck by a fault, be mended.

How nodes are started, and what one is told that joins the others, is said in the module of each kind.
"""

from __future__ import annotations

import random
import signal
import time
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal, Protocol, TypeVar

from dyno.deployments.base import Running
from dyno.deployments.native import NativeServer
from dyno.hosts.networks import CLIENT, Network
from dyno.hosts.processes import memory_bytes
from dyno.model.base import Frozen, InvalidRun, RunError, Scalar
from dyno.model.faults import Fault, FaultKind, Struck
from dyno.model.study import Machine
from dyno.systems.base import Place, System

O = TypeVar("O", bound=Frozen)  # noqa: E741 - the options of one kind

Role = Literal["primary", "secondary", "none"]

SLOW_RATE, SLOW_DELAY_S = 250_000.0, 0.05
"""Bytes a second, and seconds each way, of a node whose network is made slow."""


@dataclass(frozen=True)
class NodeState:
    """One node. `role` and `state` are as the cluster itself says; `pid` is None where its server does not run."""

    name: str
    address: str
    pid: int | None
    role: Role
    state: str


class OfNode:
    """What is alike in all servers that are on a node of a cluster. Comes before the kind of server among the bases."""

    node: str = "n1"
    program: ClassVar[str]
    running: Running | None

    @property
    def log_name(self) -> str:
        """Its own, since all nodes have one folder for logs."""
        return f"{self.node}-{self.program}"

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, and wait for nothing."""
        if isinstance(running := self.running, NativeServer):
            running.process.send(number)

    def lives(self) -> bool:
        """Whether its process is there."""
        running = self.running
        return running is not None and running.wait(0) is None


class Nodes(Protocol):
    """What options say of every node."""

    @property
    def nodes(self) -> int:
        """How many there are."""

    @property
    def node_cpus(self) -> float | None:
        """Seconds of CPU time a second."""

    @property
    def node_memory(self) -> int | None:
        """Bytes."""

    @property
    def node_disk(self) -> int | None:
        """Bytes."""


def facts_of_nodes(options: Nodes) -> dict[str, Scalar]:
    """How many there are, and what each has."""
    return {
        "nodes": options.nodes,
        "node.cpus": "none" if options.node_cpus is None else options.node_cpus,
        "node.memory": "none" if options.node_memory is None else options.node_memory,
        "node.disk": "shared" if options.node_disk is None else options.node_disk,
    }


def machine_of_node(options: Nodes) -> Machine:
    """What each may take of this machine."""
    memory = None if options.node_memory is None else f"{options.node_memory} B"
    return Machine.model_validate({"cpus": options.node_cpus, "memory": memory})


@contextmanager
def told_of(node: str) -> Iterator[None]:
    """Within, what goes wrong is told with the node's name."""
    try:
        yield
    except (RunError, InvalidRun) as error:
        error.args = (f"{node}: {error}",)
        raise


class Cluster(System[O]):
    """Several nodes that keep the same data. Where several may be written to, each of these is a primary.

    A fault is struck while the cluster is driven, from another thread than the one that drives it, and mended from
    there too. Its life is that of every system otherwise: what was struck and not mended, `stop` mends.
    """

    lone: ClassVar[bool] = False
    """Whether it is one server, for which nobody goes on."""
    forms_in_s: ClassVar[float] = 20.0
    """About how long it is from restored data until it is ready, as in docs/clusters.md; only for estimates."""
    rejoins_in_s: ClassVar[float] = 30.0
    """The same from when mending a killed node begins until it is whole."""

    _network: Network | None = None
    """That of its nodes, between start and stop."""
    _sent_before = 0
    """Bytes, when it was ready."""

    def __init__(self, options: O, place: Place) -> None:
        super().__init__(options, place)
        self._struck: list[Struck] = []
        self._is_mended = False
        """What was struck and not mended."""

    @property
    def network(self) -> Network:
        """That of its nodes. Raises RunError where there is none now."""
        if self._network is None:
            raise RunError(f"{self.kind} was not started")
        return self._network

    def costs(self, servers: int) -> dict[str, float]:
        """What all nodes and what is in front of them take together, for the status of a run."""
        return {
            "cluster.servers": float(servers),
            "cluster.memory_bytes": float(sum(memory_bytes(pid) for pid in self.processes().values())),
            "cluster.wire_bytes": float((self.sent_bytes() or 0) - self._sent_before),
        }

    def sent_bytes(self) -> int | None:
        """Of all nodes and their client."""
        return None if self._network is None else sum(sent for _, sent in self._network.traffic().values())

    @classmethod
    def why_not_struck(cls, options: O, kind: FaultKind) -> str | None:  # noqa: ARG003 - kinds that cannot read them
        """Why a fault of that kind cannot be had with these options; None where it can."""
        return None

    def processes(self) -> dict[str, int]:
        """Those that it has now, by subject: one that is started again is another. Waits for nothing."""
        return {}

    @abstractmethod
    def nodes(self) -> tuple[NodeState, ...]:
        """Every node as it is now, those that were struck too. Takes a few seconds at most."""

    def strike(self, fault: Fault, rng: random.Random) -> Struck:
        """Carry it out now; returns as soon as it is in force. Raises RunError where no node is as it asks."""
        if why := self.why_not_struck(self.options, fault.kind):
            raise RunError(why)
        node = choose(self.nodes(), fault, rng).name
        # Before it is done, so that whatever happens it is undone.
        struck = Struck(fault.kind, (node,), time.time_ns())
        self._struck.append(struck)
        self.carry_out(fault.kind, node)
        return struck

    @property
    def is_struck(self) -> bool:
        """Whether anything is left to be mended, or is being mended: a server that is to end may take its time."""
        return bool(self._struck) or self._is_mended

    def taken_back(self, struck: Struck) -> None:
        """Nothing is left to be undone of it."""
        if struck in self._struck:
            self._struck.remove(struck)

    @abstractmethod
    def carry_out(self, kind: FaultKind, node: str) -> None:
        """What a fault of that kind is to a node. Raises RunError."""

    def mend(self, struck: Struck, limit: float) -> None:
        """End it: start again what was ended, take back what was cut, slow or full, and have the node join again.

        Whether the cluster is `whole` then is another question. Raises RunError, also past `limit` seconds.
        """
        self._is_mended = True
        try:
            self.carry_back(struck, limit)
        finally:
            self._is_mended = False

    @abstractmethod
    def carry_back(self, struck: Struck, limit: float) -> None:
        """What mending is to a kind of cluster. Raises RunError, also past `limit` seconds."""

    def strike_network(self, kind: FaultKind, node: str) -> None:
        """One of the four faults that are of the node's network alone. Raises RunError."""
        match kind:
            case "cut":
                self.network.cut(node)
            case "cut-client":
                self.network.cut_between(CLIENT, node)
            case "cut-one-way":
                self.network.cut_outgoing(node)
            case "slow-network":
                self.network.slow(node, rate=SLOW_RATE, delay=SLOW_DELAY_S)
            case _:
                raise AssertionError(f"{kind} is no fault of a network")

    def give_up(self) -> None:
        """The user has ended the run: kill what mending waits for, so that it ends too. `stop` comes next.

        May be called again and again, from another thread than `mend`, and must wait for nothing.
        """

    @abstractmethod
    def whole(self) -> bool:
        """Whether every node is there and in step with the others, by the cluster's own view. Asked again and again."""


def choose(nodes: tuple[NodeState, ...], fault: Fault, rng: random.Random) -> NodeState:
    """Which node a fault strikes: one at random of those that run in the role that it names. Raises RunError."""
    able = [node for node in nodes if node.pid is not None and fault.node in ("any", node.role)]
    if not able:
        there = ", ".join(f"{node.name} is {node.role} ({node.state})" for node in nodes)
        raise RunError(f"fault {fault.kind}: there is no {fault.node} to be struck: {there}")
    return rng.choice(able)
