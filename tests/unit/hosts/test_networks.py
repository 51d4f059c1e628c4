"""Networks of nodes are real: what is cut arrives nowhere, what is slow comes late, and nothing of it outlives dyno."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.hosts import LocalHost, bridges, undo
from dyno.hosts.accounts import Account
from dyno.hosts.confinement import Confinement
from dyno.hosts.networks import CLIENT, Network, bytes_by_interface
from dyno.model.base import RunError
from tests.making import until
from tests.unit.hosts.rights import needs_root, without_root

LIMIT_S = 30
PORT = 999
QUIET_S = 0.03
"""So long nothing more arrives of what does not."""
NOBODY = Account("nobody", 65534, 65534, ())
MIB = 2**20


@pytest.fixture
def network(host: LocalHost) -> Iterator[Network]:
    made = host.networks.make(["n1", "n2", "n3"])
    yield made
    made.destroy()


def inside(network: Network, node: str, make: Callable[[], socket.socket]) -> socket.socket:
    """A socket of a node's namespace, which it stays in whoever uses it."""
    return network._node(node).namespace.within(make)


class Probes:
    """A datagram socket in each node, to see who hears whom."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._round = itertools.count()
        self._sockets = {name: inside(network, name, self._open) for name in (*["n1", "n2", "n3"], CLIENT)}

    @staticmethod
    def _open() -> socket.socket:
        opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        opened.bind(("0.0.0.0", PORT))
        opened.settimeout(QUIET_S)
        return opened

    def close(self) -> None:
        for each in self._sockets.values():
            each.close()

    def heard(self, sent: set[tuple[str, str]], expected: set[tuple[str, str]]) -> set[tuple[str, str]]:
        """Of (node, address) by whom and whereto is sent, those (node, node) that were heard, by whom and where.

        Those that are expected are waited for, longer than a neighbour is looked for; what else comes, comes at once.
        """
        number = next(self._round)
        for source, address in sent:
            with contextlib.suppress(OSError):  # a neighbour that was looked for and not found
                self._sockets[source].sendto(f"{number} {source}".encode(), (address, PORT))
        found: set[tuple[str, str]] = set()
        deadline = time.monotonic() + 5
        while True:
            heard = self._hear(number)
            found |= heard
            if not heard and (found >= expected or time.monotonic() > deadline):
                return found

    def _hear(self, number: int) -> set[tuple[str, str]]:
        found = set()
        for target, each in self._sockets.items():
            with contextlib.suppress(TimeoutError):
                while True:
                    told, source = each.recv(100).decode().split()
                    if int(told) == number:  # what was on its way to a neighbour that was not there comes late
                        found.add((source, target))
        return found


@pytest.fixture
def probes(network: Network) -> Iterator[Probes]:
    made = Probes(network)
    yield made
    made.close()


NODES = ("n1", "n2", "n3", CLIENT)
PAIRS = set(itertools.permutations(NODES, 2))


def reached(network: Network, probes: Probes, expected: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Who reaches whom, each by the other's own address."""
    return probes.heard({(source, network.address(target)) for source, target in PAIRS}, expected)


def assert_reached(network: Network, probes: Probes, expected: set[tuple[str, str]]) -> None:
    assert reached(network, probes, expected) == expected


def without(*names: str) -> set[tuple[str, str]]:
    return {pair for pair in PAIRS if not set(pair) & set(names)}


def threads_are_in() -> set[Path]:
    """The namespaces of the network in which threads of this process are."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            found.add((task / "ns" / "net").readlink())
    return found


# --- as made ---


@needs_root
def test_all_nodes_and_the_client_reach_each_other(network: Network, probes: Probes) -> None:
    assert len({network.address(node) for node in NODES}) == 4
    assert_reached(network, probes, PAIRS)


@needs_root
def test_the_machines_own_network_has_nothing_of_it(host: LocalHost) -> None:
    network = host.networks.make(["n1"])
    try:
        inside = network._switch.within(bridges.interfaces) - {"lo"}
        assert inside >= {"bridge", "node11"}
        assert not bridges.interfaces() & inside
        assert "D50A" not in Path("/proc/net/route").read_text(), "10.213, as the kernel writes it"
        # A thread that was waited for is gone from Python's view a moment before it is from the kernel's.
        until(lambda: threads_are_in() == {Path("/proc/self/ns/net").readlink()})
    finally:
        network.destroy()


@needs_root
def test_a_command_after_the_words_of_a_node_runs_there_as_a_child(
    network: Network, host: LocalHost, tmp_path: Path
) -> None:
    said = host.run([*network.words("n2"), "ip", "-oneline", "address"], limit=LIMIT_S, log=tmp_path / "log")
    assert network.address("n2") in said
    process = host.start([*network.words("n2"), "sleep", "1000"], log=tmp_path / "sleep")
    until(lambda: Path(f"/proc/{process.pid}/comm").read_text().strip() == "sleep")
    assert Path(f"/proc/{process.pid}/ns/net").stat().st_ino == network.path("n2").stat().st_ino
    process.kill()


@needs_root
def test_a_server_with_an_account_of_its_own_is_started_in_a_node(
    network: Network, host: LocalHost, tmp_path: Path
) -> None:
    words, account = replace(Confinement(), under=network.words("n1")).around(["id", "-un"], NOBODY)
    assert host.run(words, limit=LIMIT_S, log=tmp_path / "id", account=account).strip() == "nobody"
    words, account = replace(Confinement(), under=network.words("n1")).around(["ip", "address"], NOBODY)
    assert network.address("n1") in host.run(words, limit=LIMIT_S, log=tmp_path / "ip", account=account)


@needs_root
def test_two_networks_know_nothing_of_each_other(host: LocalHost, network: Network, probes: Probes) -> None:
    other = host.networks.make(["n1", "n2"])
    try:
        assert other.address("n1") == network.address("n1")
        other.cut("n1")
        assert_reached(network, probes, PAIRS)
    finally:
        other.destroy()


# --- cuts ---


@needs_root
def test_a_node_that_is_cut_hears_nobody_and_is_heard_by_nobody_until_it_is_healed(
    network: Network, probes: Probes
) -> None:
    assert_reached(network, probes, PAIRS)
    network.cut("n1")
    assert_reached(network, probes, without("n1"))
    network.cut(CLIENT)
    assert_reached(network, probes, without("n1", CLIENT))
    network.heal()
    assert_reached(network, probes, PAIRS)


@needs_root
def test_a_cut_between_two_leaves_both_to_all_others(network: Network, probes: Probes) -> None:
    network.cut_between(CLIENT, "n1")
    assert_reached(network, probes, PAIRS - {(CLIENT, "n1"), ("n1", CLIENT)})
    network.heal()
    assert_reached(network, probes, PAIRS)


@needs_root
def test_a_cut_of_all_that_a_node_sends_leaves_what_it_is_sent(network: Network, probes: Probes) -> None:
    network.cut_outgoing("n1")
    assert_reached(network, probes, {(source, target) for source, target in PAIRS if source != "n1"})
    network.heal()
    assert_reached(network, probes, PAIRS)


@needs_root
def test_any_cuts_one_after_another_and_virtual_addresses_that_move_are_as_a_model_says(
    network: Network, probes: Probes
) -> None:
    dice = random.Random(7)
    cut: set[str] = set()
    ways: set[tuple[str, str]] = set()
    holders: dict[str, str] = {}
    addresses = [network.virtual(number) for number in range(2)]
    reached(network, probes, PAIRS)  # so that all know their neighbours
    for _ in range(8):
        match dice.choice(["cut", "between", "outgoing", "take", "take", "give up", "heal"]):
            case "cut":
                cut.add(node := dice.choice(NODES))
                network.cut(node)
            case "between":
                a, b = dice.sample(NODES, 2)
                ways |= {(a, b), (b, a)}
                network.cut_between(a, b)
            case "outgoing":
                node = dice.choice(NODES)
                ways |= {(node, other) for other in NODES if other != node}
                network.cut_outgoing(node)
            case "take":
                address, node = dice.choice(addresses), dice.choice(NODES)
                holders[address] = node
                network.take(address, node)
            case "give up":
                address, node = dice.choice(addresses), dice.choice(NODES)
                network.give_up(address, node)
                if holders.get(address) == node:
                    del holders[address]
            case "heal":
                cut.clear()
                ways.clear()
                network.heal()
        open_ways = {(a, b) for a, b in PAIRS if not {a, b} & cut and (a, b) not in ways}
        assert_reached(network, probes, open_ways)
        for address in addresses:
            sent = {(source, address) for source in NODES if source != holders.get(address)}
            expected = {(source, target) for source, target in open_ways if target == holders.get(address)}
            assert probes.heard(sent, expected) == expected, (address, holders, cut, ways)


def talk(network: Network, source: str, address: str) -> tuple[socket.socket, socket.socket]:
    """A connection from a node to an address: both of its ends."""
    node = next(name for name in NODES if network.address(name) == address)

    def listen() -> socket.socket:
        return socket.create_server((address, 0))

    with inside(network, node, listen) as listening:
        port = listening.getsockname()[1]
        here = inside(network, source, lambda: socket.create_connection((address, port), LIMIT_S))
        there, _ = listening.accept()
    for each in (here, there):
        each.settimeout(LIMIT_S)
    return here, there


@needs_root
def test_a_cut_is_silent_and_what_was_sent_meanwhile_arrives_once_it_is_healed(network: Network) -> None:
    here, there = talk(network, CLIENT, network.address("n1"))
    with here, there:
        network.cut("n1")
        here.sendall(b"sent into the dark")
        there.settimeout(0.05)
        with pytest.raises(TimeoutError):
            there.recv(100)
        network.heal()
        there.settimeout(LIMIT_S)
        assert there.recv(100) == b"sent into the dark"


# --- virtual addresses ---


@needs_root
def test_a_virtual_address_that_moves_is_told_to_those_who_knew_it_elsewhere(network: Network, probes: Probes) -> None:
    address = network.virtual(0)
    for holder in ("n1", "n2", "n3", "n1"):
        network.take(address, holder)
        # At once: a neighbour that is not told would be asked again after many seconds alone.
        begun = time.monotonic()
        others = [node for node in NODES if node != holder]
        expected = {(other, holder) for other in others}
        assert probes.heard({(other, address) for other in others}, expected) == expected
        assert time.monotonic() - begun < 1
    network.give_up(address, "n1")
    assert probes.heard({(CLIENT, address)}, set()) == set()


@needs_root
def test_a_cut_from_a_node_is_one_from_each_virtual_address_that_it_has_or_takes(
    network: Network, probes: Probes
) -> None:
    one, two = network.virtual(0), network.virtual(1)
    network.take(one, "n1")
    network.cut_between(CLIENT, "n1")
    network.take(two, "n1")
    sent = {(CLIENT, one), (CLIENT, two), ("n3", one), ("n3", two)}
    assert probes.heard(sent, {("n3", "n1")}) == {("n3", "n1")}
    network.take(one, "n2")
    expected = {("n3", "n1"), ("n3", "n2"), (CLIENT, "n2")}
    assert probes.heard(sent, expected) == expected
    network.heal()
    assert probes.heard(sent, expected | {(CLIENT, "n1")}) == expected | {(CLIENT, "n1")}


@needs_root
def test_an_address_of_a_node_or_of_nobody_here_cannot_be_taken(network: Network) -> None:
    for address in (network.address("n2"), "192.0.2.1", "10.213.0.250"):
        with pytest.raises(RunError, match=f"{address} is no virtual address of this network, such as 10.213"):
            network.take(address, "n1")
    with pytest.raises(RunError, match="there are 100 virtual addresses, from 0 on; not one 100"):
        network.virtual(100)


# --- slow links ---


def round_trip(here: socket.socket, there: socket.socket) -> float:
    begun = time.monotonic()
    here.sendall(b"x")
    there.recv(1)
    there.sendall(b"y")
    here.recv(1)
    return time.monotonic() - begun


@needs_root
def test_a_delay_is_in_each_way_and_goes_with_healing(network: Network) -> None:
    here, there = talk(network, "n1", network.address("n2"))
    with here, there:
        network.slow("n2", delay=0.05)
        slow = [round_trip(here, there) for _ in range(3)]
        assert min(slow) >= 0.1
        assert min(slow) < 0.15, "no more than what was asked for, if the machine is not busy all the time"
        network.slow("n2", delay=0.01)
        assert 0.02 <= min(round_trip(here, there) for _ in range(3)) < 0.1
        network.heal()
        assert min(round_trip(here, there) for _ in range(5)) < 0.02


@needs_root
def test_a_rate_holds_and_all_that_passes_is_whole(network: Network) -> None:
    here, there = talk(network, "n1", network.address("n2"))
    sent = random.Random(1).randbytes(MIB)
    with here, there:
        network.slow("n1", rate=2 * MIB)
        begun = time.monotonic()
        sending = threading.Thread(target=here.sendall, args=(sent,))
        sending.start()
        received = b""
        while len(received) < len(sent):
            received += there.recv(MIB)
        took = time.monotonic() - begun
        sending.join()
    assert hashlib.sha256(received).digest() == hashlib.sha256(sent).digest()
    assert 0.45 <= took < 2, "half a second at that rate"


@needs_root
def test_a_slow_link_can_be_cut_and_one_that_is_cut_can_become_slow(network: Network, probes: Probes) -> None:
    network.slow("n1", delay=0.001)
    network.cut("n1")
    assert_reached(network, probes, without("n1"))
    network.cut("n2")
    network.slow("n2", delay=0.001)
    assert_reached(network, probes, without("n1", "n2"))
    network.slow("n2")
    assert_reached(network, probes, without("n1", "n2"))
    network.heal()
    assert_reached(network, probes, PAIRS)


@needs_root
def test_a_relay_that_ended_by_itself_is_told_when_the_link_is_healed(network: Network, probes: Probes) -> None:
    network.slow("n1", delay=0.001)
    relay = network._node("n1").relay
    assert relay is not None
    os.kill(relay._process.pid, signal.SIGKILL)
    relay._process.wait(LIMIT_S)
    with pytest.raises(RunError, match="the link of n1 was cut instead of slow, since its relay ended: status -9"):
        network.heal()
    assert_reached(network, probes, PAIRS)


@needs_root
@pytest.mark.parametrize(("rate", "delay"), [(0, None), (-1, None), (None, -0.1)])
def test_a_link_that_cannot_be_is_refused(network: Network, rate: float | None, delay: float | None) -> None:
    with pytest.raises(RunError, match="cannot be had"):
        network.slow("n1", rate, delay)


# --- traffic ---


@needs_root
def test_bytes_are_counted_by_node_and_way_also_over_a_slow_link(network: Network) -> None:
    before = network.traffic()
    assert set(before) == set(NODES)
    network.slow("n2", delay=0.0001)
    here, there = talk(network, "n1", network.address("n2"))
    with here, there:
        sent = 200_000
        here.sendall(bytes(sent))
        left = sent
        while left:
            left -= len(there.recv(left))
    network.heal()
    after = network.traffic()
    received, passed = ({node: after[node][way] - before[node][way] for node in NODES} for way in (0, 1))
    for figure in (received["n2"], passed["n1"]):
        assert sent < figure < 1.2 * sent
    assert max(received["n1"], passed["n2"]) < 0.2 * sent
    assert max(received["n3"], passed["n3"], received[CLIENT], passed[CLIENT]) < 0.01 * sent


counters = st.integers(0, 2**64 - 1)


@given(
    st.dictionaries(
        st.text("abcdefghijklmnopqrstuvwxyz0123456789.-_@", min_size=1, max_size=15),
        st.lists(counters, min_size=16, max_size=16),
        max_size=5,
    )
)
def test_what_the_kernel_counts_is_read_as_it_writes_it(interfaces: dict[str, list[int]]) -> None:
    # net/core/net-procfs.c: names to the right of six columns; a counter may fill the column up to the colon.
    head = "Inter-|   Receive\n face |bytes\n"
    lines = []
    for name, (bytes_in, packets_in, *rest) in interfaces.items():
        figures = f"{bytes_in:8d} {packets_in:7d} " + " ".join(f"{figure:5d}" for figure in rest)
        lines.append(f"{name:>6}: {figures}\n")
    assert bytes_by_interface(head + "".join(lines)) == {
        name: (figures[0], figures[8]) for name, figures in interfaces.items()
    }


# --- its end, and errors ---

SESSION = """
import sys
from pathlib import Path
from dyno.hosts import LocalHost, UndoJournal
host = LocalHost(UndoJournal())
network = host.networks.make(["n1", "n2"])
network.slow("n1", delay=0.001)
network.take(network.virtual(0), "n1")
marker = "--marker=" + host._undo.token
words = [*network.words("n2"), "sh", "-c", "while :; do sleep 1000; done", "sh", marker]
server = host.start_server(words, log=Path(sys.argv[1]) / "server", marker=marker)
relay = network._node("n1").relay._process.pid
spaces = [network._switch.path, *(network.path(node) for node in ("n1", "n2", "client"))]
print(server.pid, relay, *(path.stat().st_ino for path in spaces), flush=True)
sys.stdin.read()
"""


def spaces_now() -> set[int]:
    """The namespaces of the network that some process or open file holds."""
    found = set()
    for path in itertools.chain(Path("/proc").glob("[0-9]*/ns/net"), Path("/proc").glob("[0-9]*/fd/*")):
        with contextlib.suppress(OSError):
            if str(path.readlink()).startswith("net:"):
                found.add(path.stat().st_ino)
    return found


@needs_root
def test_nothing_is_left_of_it_once_a_killed_session_is_cleaned_up(state: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", SESSION, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as session:
        assert session.stdout is not None
        server, relay, *spaces = map(int, session.stdout.readline().split())
        assert set(spaces) <= spaces_now()
        os.kill(session.pid, signal.SIGKILL)
        session.wait(LIMIT_S)
    assert [cleaned.stuck for cleaned in undo.clean()] in ([()], [])
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in (server, relay)))
    assert not set(spaces) & spaces_now()


@needs_root
def test_a_network_that_was_destroyed_is_gone(host: LocalHost) -> None:
    network = host.networks.make(["n1"])
    network.slow("n1", delay=0.001)
    relay = network._node("n1").relay
    assert relay is not None
    paths = [network.path("n1"), network.path(CLIENT), network._switch.path]
    spaces = {path.stat().st_ino for path in paths}
    assert spaces <= spaces_now()
    network.destroy()
    network.destroy()
    assert not spaces & spaces_now()
    assert relay._process.returncode == -signal.SIGKILL
    with pytest.raises(RunError, match="there is no node n1 in this network; there are none"):
        network.address("n1")


@needs_root
def test_a_network_that_cannot_be_made_leaves_nothing(host: LocalHost, monkeypatch: pytest.MonkeyPatch) -> None:
    before = spaces_now()
    plugged = []

    def plug_in(_network: Network, node: object) -> None:
        plugged.append(node)
        raise RunError("no more")

    monkeypatch.setattr(Network, "_plug_in", plug_in)
    with pytest.raises(RunError, match="no more"):
        host.networks.make(["n1", "n2"])
    assert len(plugged) == 1
    assert spaces_now() == before


@pytest.mark.parametrize("names", [["n1", "n1"], ["n1", CLIENT]])
def test_names_that_two_would_have_are_refused(host: LocalHost, names: list[str]) -> None:
    with pytest.raises(RunError, match="nodes need names of their own, and client is the client's"):
        host.networks.make(names)


@needs_root
def test_a_node_that_is_not_there_is_named_with_those_that_are(network: Network) -> None:
    for wrong in (network.address, network.words, network.path, network.cut, network.slow):
        with pytest.raises(RunError, match="there is no node n4 in this network; there are n1, n2, n3, client"):
            wrong("n4")
    with pytest.raises(RunError, match="there is no node n4"):
        network.cut_between("n1", "n4")


def test_without_root_it_is_said_that_a_network_needs_it(host: LocalHost) -> None:
    with without_root(), pytest.raises(RunError, match="a namespace of the network needs root"):
        host.networks.make(["n1"])


@needs_root
def test_what_ip_refuses_is_told_in_its_words(network: Network) -> None:
    with pytest.raises(RunError, match=r"cannot set up a network \(`ip link set nothing up`\): Cannot find device"):
        network._switch.configure(["link set nothing up"])


def test_a_missing_ip_is_named_with_its_package(host: LocalHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dyno.hosts.programs.find", lambda _name: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr("dyno.hosts.namespaces._open_new", lambda: os.open("/proc/self/ns/net", os.O_RDONLY))
    with pytest.raises(RunError, match="ip is missing: install Debian's iproute2"):
        host.networks.make(["n1"])
