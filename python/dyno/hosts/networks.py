"""Networks of nodes on one machine: a namespace a node, and a switch whose links can be cut and made slow.

The switch is a bridge in a namespace of its own, so that neither the machine's own network nor its firewall has a part
in it: nobody but the nodes and their client is on it, and its addresses are those of nobody else, whoever else may use
the same. Whatever is made goes with dyno, however that ends (see `namespaces`); processes in it are in the undo journal
as all others.

    switch                      n1
      bridge -- node1 --------- eth0 10.213.0.11
             -- node2 --------- ...
             -- slow3 relay3 ~ node3 -- eth0        a slow link: `relay` passes frames on between relay3 and node3
"""

from __future__ import annotations

import ipaddress
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from dyno.hosts import relay
from dyno.hosts.namespaces import Namespace
from dyno.model.base import RunError

CLIENT = "client"
"""The name of the one from which nodes are reached."""

_SUBNET = ipaddress.ip_network("10.213.0.0/24")
_FIRST_NODE, _FIRST_VIRTUAL, _FIRST_UNUSED = 11, 101, 201
_CLIENT_NUMBER = 2
_BRIDGE, _INTERFACE = "bridge", "eth0"
_NOBODY = "02:64:79:6e:6f:00"
"""A hardware address that nobody has: what is sent to it arrives nowhere, and nobody is told."""
_ETH_P_ARP = 0x0806
_READY_LIMIT_S = 10.0

T = TypeVar("T")


class Networks:
    """Makes those of a session."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """`environment` is that of the processes which pass frames on, with the session's token."""
        self._environment = dict(environment)

    def make(self, nodes: Sequence[str]) -> Network:
        """A network of these nodes and one named `client`, all within reach of each other. Raises RunError."""
        names = [*nodes, CLIENT]
        if len(set(names)) != len(names):
            raise RunError(f"nodes need names of their own, and {CLIENT} is the client's: {', '.join(nodes)}")
        if len(nodes) > (most := _FIRST_VIRTUAL - _FIRST_NODE):
            raise RunError(f"a network has {most} nodes at most, not {len(nodes)}")
        return Network(nodes, self._environment)


class _Relay:
    """The process that makes a link slow, within the switch's namespace."""

    def __init__(
        self, switch: Namespace, here: str, there: str, *, delay: float, rate: float, environment: Mapping[str, str]
    ) -> None:
        words = [sys.executable, "-I", "-S", str(Path(relay.__file__)), here, there, f"{delay:.9f}", f"{rate:.3f}"]
        self._process = switch.within(
            lambda: subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(environment),
                start_new_session=True,
            )
        )
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], _READY_LIMIT_S)
        if not readable or self._process.stdout.readline() != b"ready\n":
            raise RunError(f"the relay of a slow link does not start: {self.end() or 'it said nothing'}")

    def end(self) -> str | None:
        """End it; what it said where it had ended before, which it does not by itself."""
        ended = self._process.poll() is not None
        self._process.kill()
        _, said = self._process.communicate()
        return (said.decode(errors="replace").strip() or f"status {self._process.returncode}") if ended else None


@dataclass
class _Node:
    """How one is tied to the switch now."""

    name: str
    number: int
    namespace: Namespace
    is_cut: bool = False
    relay: _Relay | None = None
    unreachable: frozenset[str] = frozenset()
    """Addresses to which all that it sends goes nowhere."""

    @property
    def address(self) -> str:
        """Its own."""
        return str(_SUBNET[self.number])

    @property
    def hardware(self) -> str:
        """Of its interface; locally administered, and that of no other node."""
        return f"02:64:79:6e:6f:{self.number:02x}"

    @property
    def port(self) -> str:
        """The other end of its link, in the switch."""
        return f"node{self.number}"

    @property
    def before_relay(self) -> str:
        """Where the relay of a slow link passes on what comes from `port`; its peer is `slow`."""
        return f"relay{self.number}"

    @property
    def slow(self) -> str:
        """What is on the bridge in place of `port` while the link is slow."""
        return f"slow{self.number}"

    @property
    def on_bridge(self) -> str:
        """What of its link is on the bridge, where it is not cut."""
        return self.port if self.relay is None else self.slow


class Network:
    """Nodes by their names, of which one is `client`. It may be used by several threads.

    Cuts are silent, as in a switch that fails: links stay up, nobody is told, and what was on its way is lost.
    """

    def __init__(self, nodes: Sequence[str], environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._lock = threading.RLock()
        self._holders: dict[str, str] = {}
        self._ways: set[tuple[str, str]] = set()
        self._nodes: dict[str, _Node] = {}
        self._switch = Namespace()
        try:
            self._switch.configure([f"link add name {_BRIDGE} type bridge mcast_snooping 0", f"link set {_BRIDGE} up"])
            numbers = [*range(_FIRST_NODE, _FIRST_NODE + len(nodes)), _CLIENT_NUMBER]
            for name, number in zip((*nodes, CLIENT), numbers, strict=True):
                self._nodes[name] = _Node(name, number, Namespace())
                self._plug_in(self._nodes[name])
        except BaseException:
            self.destroy()
            raise

    def _plug_in(self, node: _Node) -> None:
        peer = f"name {_INTERFACE} address {node.hardware} netns {node.namespace.path}"
        self._switch.configure(
            [
                f"link add name {node.port} type veth peer {peer}",
                f"link set {node.port} master {_BRIDGE}",
                f"link set {node.port} up",
            ]
        )
        node.namespace.configure(
            [f"address add {node.address}/{_SUBNET.prefixlen} dev {_INTERFACE}", f"link set {_INTERFACE} up"]
        )

    def address(self, node: str) -> str:
        """The IPv4 address that it has for as long as the network is there."""
        return self._node(node).address

    def virtual(self, number: int) -> str:
        """An address of the subnet that no node has, of those numbered from 0 to 99."""
        if not 0 <= number < _FIRST_UNUSED - _FIRST_VIRTUAL:
            raise RunError(f"there are {_FIRST_UNUSED - _FIRST_VIRTUAL} virtual addresses, from 0 on; not one {number}")
        return str(_SUBNET[_FIRST_VIRTUAL + number])

    def path(self, node: str) -> Path:
        """Its namespace as a file, for as long as the network is there; for root alone."""
        return self._node(node).namespace.path

    def words(self, node: str) -> tuple[str, ...]:
        """Put before a command: it then runs there, as a child of whoever starts it. Root alone may.

        A server with an account of its own is started with these words as `under` of its `Confinement`, or before the
        words that take the account on.
        """
        return self._node(node).namespace.words

    def within(self, node: str, do: Callable[[], T]) -> T:
        """What a function gives that is carried out there: sockets that it opens are the node's."""
        return self._node(node).namespace.within(do)

    def take(self, address: str, node: str) -> None:
        """Have a virtual address on that node and on no other, as fencing would, and tell all. Raises RunError."""
        with self._lock:
            at = self._node(node)
            if address not in {self.virtual(number) for number in range(_FIRST_UNUSED - _FIRST_VIRTUAL)}:
                raise RunError(f"{address} is no virtual address of this network, such as {self.virtual(0)}")
            holder = self._holders.get(address)
            if holder not in (None, node):
                self.give_up(address, str(holder))
            at.namespace.configure([f"address replace {address}/32 dev {_INTERFACE}"])
            self._holders[address] = node
            self._steer()
            at.namespace.within(lambda: _announce(address, at.hardware))

    def give_up(self, address: str, node: str) -> None:
        """Take a virtual address from a node; nothing happens where it does not have it. Raises RunError."""
        with self._lock:
            at = self._node(node)
            if self._holders.get(address) == node:
                at.namespace.configure([f"address del {address}/32 dev {_INTERFACE}"])
                del self._holders[address]
                self._steer()

    def cut(self, node: str) -> None:
        """Lose all of its traffic with everybody else. Raises RunError."""
        with self._lock:
            at = self._node(node)
            self._switch.configure([f"link set {at.on_bridge} nomaster"])
            at.is_cut = True

    def cut_between(self, a: str, b: str) -> None:
        """Lose what the two send each other; everybody else still reaches both. Raises RunError."""
        self._lose({(a, b), (b, a)})

    def cut_outgoing(self, source: str) -> None:
        """Lose all that it sends, and nothing that others send to it. Raises RunError."""
        with self._lock:
            self._node(source)
            self._lose({(source, target) for target in self._nodes if target != source})

    def slow(self, node: str, rate: float | None = None, delay: float | None = None) -> None:
        """Have its link pass `rate` bytes a second each way, and each frame `delay` seconds later each way.

        What it was before does not count; with neither it is as fast as before. A user-space process passes the frames
        on (`relay`), which costs CPU time while the link is slow. Raises RunError.
        """
        if (rate is not None and rate <= 0) or (delay is not None and delay < 0):
            raise RunError(f"a link of {rate} bytes a second and a delay of {delay} s cannot be had")
        with self._lock:
            at = self._node(node)
            self._quicken(at)
            if rate is None and not delay:
                return
            self._switch.configure(
                [
                    f"link set {at.port} nomaster",
                    f"link add name {at.before_relay} type veth peer name {at.slow}",
                    f"link set {at.before_relay} up",
                    f"link set {at.slow} up",
                ]
            )
            try:
                at.relay = _Relay(
                    self._switch,
                    at.port,
                    at.before_relay,
                    delay=delay or 0.0,
                    rate=rate or 0.0,
                    environment=self._environment,
                )
            except RunError:
                self._switch.configure([f"link delete {at.before_relay}"])
                self._tie(at)
                raise
            self._tie(at)

    def heal(self) -> None:
        """Take back all cuts and slow links. Raises RunError where a slow link had not been what was asked for."""
        with self._lock:
            self._ways.clear()
            self._steer()
            wrong = []
            for node in self._nodes.values():
                node.is_cut = False
                try:
                    self._quicken(node)
                except RunError as error:
                    wrong.append(str(error))
                self._tie(node)
            if wrong:
                raise RunError("; ".join(wrong))

    def traffic(self) -> dict[str, tuple[int, int]]:
        """Bytes that each has received and sent since the network was made, by node.

        With the headers of Ethernet; what the kernel passes on in one piece and a real network would have in several
        has them once.
        """
        text = self._switch.within(lambda: Path("/proc/thread-self/net/dev").read_text())
        # What the switch has sent on a link is what the node at its end has received.
        counted = bytes_by_interface(text)
        return {node.name: (counted[node.port][1], counted[node.port][0]) for node in self._nodes.values()}

    def destroy(self) -> None:
        """Let all of it go; namespaces in which there still is a process stay until it ends. May be called twice."""
        with self._lock:
            for node in self._nodes.values():
                if node.relay is not None:
                    node.relay.end()
                node.namespace.close()
            self._nodes.clear()
            self._switch.close()

    def _node(self, name: str) -> _Node:
        if (node := self._nodes.get(name)) is None:
            raise RunError(f"there is no node {name} in this network; there are {', '.join(self._nodes) or 'none'}")
        return node

    def _lose(self, ways: Iterable[tuple[str, str]]) -> None:
        with self._lock:
            for way in ways:
                for name in way:
                    self._node(name)
                self._ways.add(way)
            self._steer()

    def _steer(self) -> None:
        """Have each send what goes nowhere to a neighbour that nobody is."""
        held = {name: {node.address} for name, node in self._nodes.items()}
        for address, holder in self._holders.items():
            held[holder].add(address)
        for node in self._nodes.values():
            wanted = frozenset(each for source, target in self._ways if source == node.name for each in held[target])
            commands = [
                f"neighbour replace {each} lladdr {_NOBODY} dev {_INTERFACE} nud permanent"
                for each in sorted(wanted - node.unreachable)
            ]
            commands += [f"neighbour del {each} dev {_INTERFACE}" for each in sorted(node.unreachable - wanted)]
            if commands:
                node.namespace.configure(commands)
            node.unreachable = wanted

    def _tie(self, node: _Node) -> None:
        if not node.is_cut:
            self._switch.configure([f"link set {node.on_bridge} master {_BRIDGE}"])

    def _quicken(self, node: _Node) -> None:
        """Take its relay away. Raises RunError where that had ended by itself."""
        if node.relay is None:
            return
        said = node.relay.end()
        node.relay = None
        self._switch.configure([f"link delete {node.before_relay}"])
        self._tie(node)
        if said is not None:
            raise RunError(f"the link of {node.name} was cut instead of slow, since its relay ended: {said}")


def bytes_by_interface(text: str) -> dict[str, tuple[int, int]]:
    """Of /proc/net/dev: bytes that each interface has received and sent."""
    found = {}
    for line in text.splitlines()[2:]:
        name, _, counters = line.partition(":")
        words = counters.split()
        found[name.strip()] = int(words[0]), int(words[8])
    return found


def _announce(address: str, hardware: str) -> None:
    """Gratuitous ARP, as a request and as a reply, since neighbours may listen to one of them alone."""
    own, mac = ipaddress.IPv4Address(address).packed, bytes.fromhex(hardware.replace(":", ""))
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as link:
        link.bind((_INTERFACE, _ETH_P_ARP))
        for operation, target in ((1, bytes(6)), (2, mac)):
            # RFC 826: Ethernet, IPv4, lengths of both addresses, operation; then sender and target, by both.
            arp = struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + mac + own + target + own
            link.send(b"\xff" * 6 + mac + struct.pack("!H", _ETH_P_ARP) + arp)
