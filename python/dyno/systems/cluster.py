"""What every cluster can do besides what every system can: say how its nodes are, be struck by a fault, be mended.

How nodes are started, and what one is told that joins the others, is said in the module of each kind.
"""

from __future__ import annotations

import random
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

from dyno.model.base import Frozen, RunError
from dyno.model.faults import Fault, FaultKind, Struck
from dyno.systems.base import System

if TYPE_CHECKING:
    from dyno.hosts.networks import Network

O = TypeVar("O", bound=Frozen)  # noqa: E741 - the options of one kind

Role = Literal["primary", "secondary", "none"]


@dataclass(frozen=True)
class NodeState:
    """One node. `role` and `state` are as the cluster itself says; `pid` is None where its server does not run."""

    name: str
    address: str
    pid: int | None
    role: Role
    state: str


class Cluster(System[O]):
    """Several nodes that keep the same data. Where several may be written to, each of these is a primary.

    A fault is struck while the cluster is driven, from another thread than the one that drives it, and mended from
    there too. Its life is that of every system otherwise: what was struck and not mended, `stop` mends.
    """

    _network: Network | None = None
    """That of its nodes, between start and stop."""

    def sent_bytes(self) -> int | None:
        """Of all nodes and their client."""
        return None if self._network is None else sum(sent for _, sent in self._network.traffic().values())

    @classmethod
    def why_not_struck(cls, options: O, kind: FaultKind) -> str | None:  # noqa: ARG003 - kinds that cannot read them
        """Why a fault of that kind cannot be had with these options; None where it can."""
        return None

    @abstractmethod
    def nodes(self) -> tuple[NodeState, ...]:
        """Every node as it is now, those that were struck too. Takes a few seconds at most."""

    @abstractmethod
    def strike(self, fault: Fault, rng: random.Random) -> Struck:
        """Carry it out now; returns as soon as it is in force. Raises RunError where no node is as it asks."""

    @abstractmethod
    def mend(self, struck: Struck, limit: float) -> None:
        """End it: start again what was ended, take back what was cut, slow or full, and have the node join again.

        Whether the cluster is `whole` then is another question. Raises RunError, also past `limit` seconds.
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
