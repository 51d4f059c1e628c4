"""What the manager of a replicated disk does, and mending, on nodes that are made up, which fail when asked to."""

from __future__ import annotations

import random
import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dyno.hosts.replication import Mirroring
from dyno.model.base import RunError
from dyno.model.faults import Fault, Struck
from dyno.systems import replicated_disk
from dyno.systems.base import Place
from dyno.systems.manager import Manager
from dyno.systems.replicated_disk import ReplicatedDiskSystem
from tests.making import until


class Program:
    """One that has its place on a node."""

    def __init__(self, told: list[str], name: str) -> None:
        self.told, self.name = told, name

    def send(self, number: signal.Signals) -> None:
        self.told.append(f"{self.name}: {number.name}")


class Side:
    """A half of the disk, that keeps what it is and what it was told."""

    def __init__(self, cluster: Cluster, node: str) -> None:
        self.cluster, self.node = cluster, node
        self.serves, self.device, self.sends_to = False, None, ""
        self.now = Mirroring(ready=True, behind=0)
        self.processes: tuple[Program, ...] = ()

    def open(self, _until: Any) -> Path:
        assert not self.serves, "it is written to by the other"
        assert self.device is None, "it is open"
        self.cluster.step("open")
        self.device = Path("/dev/loop9")
        self.processes = (Program(self.cluster.told, f"{self.node} anew"),)
        return self.device

    def serve(self, *_words: Any, **_more: Any) -> None:
        assert self.device is None
        self.serves = True
        self.cluster.told.append(f"{self.node} serves")

    def unserve(self) -> None:
        self.serves = False

    def mirror(self, address: str, **_more: Any) -> None:
        assert self.device is not None
        assert self.cluster.system._nodes[address].side.serves
        self.sends_to = address

    def mirroring(self) -> Mirroring | None:
        return self.now if self.sends_to else None

    def let_go(self) -> None:
        self.sends_to = ""

    def synced(self, _until: Any) -> None:
        pass

    def send(self, number: signal.Signals) -> None:
        for program in self.processes:
            program.send(number)

    def close(self) -> None:
        self.serves, self.device, self.sends_to, self.processes = False, None, "", ()

    @property
    def pids(self) -> dict[str, int]:
        return {"server": 1} if self.serves else {}


class Server:
    """One that ends once it was told to, and is let go on."""

    def __init__(self, cluster: Cluster, node: str) -> None:
        self.cluster, self.node, self.running, self.pid = cluster, node, self, 1
        self.dead = threading.Event()
        self.ends = threading.Event()
        self.ends.set()

    def lives(self) -> bool:
        return not self.dead.is_set()

    def ready(self, _limit: float) -> None:
        self.cluster.step("ready")

    def signal(self, number: signal.Signals) -> None:
        self.cluster.told.append(f"server of {self.node}: {number.name}")
        if number == signal.SIGKILL:
            self.dead.set()

    def wait(self, limit: float) -> int | None:
        if self.ends.wait(limit):
            self.dead.set()
            self.cluster.told.append(f"server of {self.node} has ended")
            return 0
        return None

    def stop(self, _limit: float) -> None:
        if self.dead.is_set():
            raise RunError("it had ended")
        self.dead.set()


class Cluster:
    """Two nodes of which n1 has the disk, and the system that has them."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.told: list[str] = []
        self.fails: dict[str, int] = {}
        """Which step fails, and how often from now on."""
        self.unreached: set[str] = set()
        self.holder = "n1"
        self.held_at: dict[str, str] = {}
        """Who had the address at each step."""
        host = SimpleNamespace(expect_mounts=lambda point: point, unmount=lambda _: None, run=self.run)
        place = Place(host=host, data=folder, logs=folder, core="")  # type: ignore[arg-type]
        kind = ReplicatedDiskSystem
        self.system = kind(kind.Options.model_validate({"silent_for": "1 s", **options}), place)
        self.system._network = SimpleNamespace(  # type: ignore[assignment]
            address=lambda name: name,
            virtual=lambda _: "v",
            take=self.take,
            give_up=self.give_up,
            heal=self.unreached.clear,
        )
        self.system._answers = self.answers  # type: ignore[method-assign]
        self.system._takes = lambda node: node.side.serves and not self.unreached  # type: ignore[method-assign]
        self.system._reaches_clients = lambda node: node.side.node not in self.unreached  # type: ignore[method-assign]
        self.system._start_server = self.start_server  # type: ignore[method-assign,assignment]
        self.system._manager = Manager(self.system._look, 1.0)
        for name in ("n1", "n2"):
            side: Any = Side(self, name)
            self.system._nodes[name] = replicated_disk._Node(side, SimpleNamespace(), folder / name)  # type: ignore[arg-type]
        first, second = self.system._nodes.values()
        second.side.serve()
        self.system._open(first, SimpleNamespace(left=1.0, log=folder), alike=second)  # type: ignore[arg-type]
        self.start_server(first)
        first.side.processes = (Program(self.told, "n1 as it was"),)  # type: ignore[misc,assignment]

    def step(self, name: str) -> None:
        self.held_at[name] = self.holder
        if self.fails.get(name, 0) > 0:
            self.fails[name] -= 1
            raise RunError(f"{name} failed")

    def run(self, words: list[str], **_more: Any) -> None:
        self.step(words[0])

    def give_up(self, _address: str, node: str) -> None:
        if self.holder == node:
            self.holder = ""

    def take(self, _address: str, node: str) -> None:
        self.holder = ""
        self.step("take")
        self.holder = node

    def answers(self, node: Any) -> bool:
        return node.server is not None and node.server.lives() and node.side.node not in self.unreached

    def start_server(self, node: Any, *_more: Any) -> None:
        node.server = Server(self, node.side.node)
        self.step("start")

    def is_silent(self, name: str) -> None:
        """For longer than is borne."""
        self.unreached.add(name)
        self.system._heard[name] -= 10

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            try:
                self.system._look()
            except RunError as error:
                self.system._tell(f"could not go on: {error}")

    def node(self, name: str) -> Any:
        return self.system._nodes[name]


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


STEPS = ("open", "mount", "start", "ready", "take")


@pytest.mark.parametrize("step", STEPS)
def test_a_take_over_that_fails_is_gone_on_with_at_the_next_looks(cluster: Cluster, step: str) -> None:
    # It had let go of its disk before, so that it counted as one that could not take over, for ever.
    cluster.fails[step] = 2
    cluster.is_silent("n1")
    cluster.look(2)
    assert cluster.system._active == "n1"
    assert not cluster.system.whole()
    cluster.look()
    assert cluster.system._active == cluster.system.primary() == cluster.holder == "n2"
    cluster.system.mend(Struck("cut", ("n1",), 0), 10.0)
    assert cluster.node("n2").side.sends_to == "n1"
    assert cluster.system.whole()


@pytest.mark.parametrize("step", STEPS)
def test_a_node_that_answers_before_the_other_has_taken_over_keeps_the_disk(cluster: Cluster, step: str) -> None:
    cluster.fails[step] = 100
    cluster.is_silent("n1")
    cluster.look(2)
    cluster.fails.clear()
    cluster.unreached.clear()
    cluster.look(3)
    assert cluster.system._active == cluster.holder == "n1"
    assert cluster.node("n2").server is cluster.node("n2").side.device is None
    assert cluster.node("n1").side.sends_to == ""
    cluster.system.mend(Struck("cut", ("n1",), 0), 10.0)
    assert cluster.node("n1").side.sends_to == "n2"
    assert cluster.system.whole()


@pytest.mark.parametrize("kind", ["cut", "kill"])
def test_a_node_that_is_mended_before_the_other_has_taken_over_keeps_the_disk(cluster: Cluster, kind: Any) -> None:
    cluster.fails["mount"] = 1
    struck = Struck(kind, ("n1",), 0)
    if kind == "kill":
        cluster.node("n1").off = True
        cluster.node("n1").server.signal(signal.SIGKILL)
    cluster.is_silent("n1")
    cluster.look()
    cluster.system.mend(struck, 10.0)
    assert cluster.system._active == cluster.system.primary() == cluster.holder == "n1"
    assert cluster.node("n1").side.sends_to == "n2"
    assert cluster.system.whole()
    cluster.look(2)
    assert cluster.system._active == "n1"


def shut_down(cluster: Cluster) -> Struck:
    """n1, whose server takes its time."""
    cluster.node("n1").server.ends.clear()
    return cluster.system.strike(Fault(kind="shutdown", node="primary"), random.Random(1))


def test_a_node_that_goes_down_is_not_whole_and_is_mended_only_when_it_is_down(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It was called whole, mended while it went down, and what was started anew was sent the signal.
    synced: list[Path] = []
    monkeypatch.setattr(replicated_disk, "sync_file_system", synced.append, raising=False)
    monkeypatch.setattr("os.sync", lambda: pytest.fail("the whole machine was synced, which others measure on"))
    server, mounted = cluster.node("n1").server, cluster.node("n1").mounted
    struck = shut_down(cluster)
    assert not cluster.system.whole()
    with pytest.raises(RunError, match="n1 did not shut down in time"):
        cluster.system.mend(struck, 0.05)
    server.ends.set()
    cluster.system.mend(struck, 10.0)
    assert synced == [mounted]
    assert "n1 as it was: SIGTERM" in cluster.told
    assert "n1 anew: SIGTERM" not in cluster.told
    assert cluster.system.primary() == "n1"
    assert cluster.system.whole()


def test_programs_that_are_started_while_a_node_goes_down_are_not_ended_with_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replicated_disk, "sync_file_system", lambda _: None, raising=False)
    monkeypatch.setattr("os.sync", lambda: None)
    server = cluster.node("n1").server
    shut_down(cluster)
    cluster.node("n1").side.processes = (Program(cluster.told, "n1 anew"),)
    server.ends.set()
    until(lambda: any("n1" in each and "SIGTERM" in each and "server" not in each for each in cluster.told))
    assert "n1 as it was: SIGTERM" in cluster.told
    assert "n1 anew: SIGTERM" not in cluster.told


@pytest.mark.parametrize(("protocol", "at_once"), [("A", False), ("B", True), ("C", True)])
def test_a_disk_that_is_behind_is_not_the_same_where_writes_do_not_wait_for_it(
    tmp_path: Path, protocol: str, at_once: bool
) -> None:
    # With A megabytes may be on their way long after the copy counts as ready.
    cluster = Cluster(tmp_path, protocol=protocol)
    side = cluster.node("n1").side
    side.now = Mirroring(ready=True, behind=5_000_000)
    assert cluster.system.whole() is at_once
    side.now = Mirroring(ready=True, behind=0)
    assert cluster.system.whole()
    side.now = Mirroring(ready=True, behind=4096)
    assert cluster.system.whole(), "it had all, and what is written since is on its way"
    cluster.system.mend(Struck("cut-client", ("n1",), 0), 10.0)
    assert cluster.system.whole() is at_once
    side.now = Mirroring(ready=False, behind=0)
    assert not cluster.system.whole()


def test_a_node_that_was_given_up_begins_anew_though_what_was_killed_of_it_has_not_ended_yet(cluster: Cluster) -> None:
    # What served its disk still seemed to do so for a moment, was not started anew, and hung up.
    node = cluster.node("n2")
    node.frozen = True
    cluster.system._alone = True
    cluster.told.clear()
    cluster.system.mend(Struck("freeze", ("n2",), 0), 10.0)
    assert "n2 serves" in cluster.told
    assert cluster.system.whole()


def test_what_the_manager_did_is_in_the_notes(cluster: Cluster) -> None:
    cluster.is_silent("n1")
    cluster.look()
    assert any("n2 has taken over" in text for _, text in cluster.system.events())


def test_a_node_that_is_cut_off_does_not_go_on_alone_though_it_missed_the_other_first(cluster: Cluster) -> None:
    # What it acknowledged by itself was lost when the other took over.
    cluster.unreached.add("n1")
    cluster.system._heard["n2"] -= 10
    cluster.look()
    assert cluster.node("n1").side.sends_to == "n2", "it would acknowledge what the other has not"
    cluster.system._heard["n1"] -= 10
    cluster.look()
    assert cluster.system.primary() == cluster.holder == "n2"


def test_a_node_whose_other_is_cut_off_goes_on_alone(cluster: Cluster) -> None:
    cluster.is_silent("n2")
    cluster.look()
    assert cluster.node("n1").side.sends_to == ""
    assert cluster.system.primary() == cluster.holder == "n1"


@pytest.mark.parametrize("lacks", ["what was written since", "what is copied still"])
def test_a_disk_that_lacks_something_takes_nothing_over(cluster: Cluster, lacks: str) -> None:
    if lacks == "what was written since":
        cluster.is_silent("n2")
        cluster.look()
        cluster.unreached.clear()
    else:
        cluster.node("n1").side.now = Mirroring(ready=False, behind=5_000_000)
        cluster.node("n2").off = True
        cluster.system.mend(Struck("kill", ("n2",), 0), 10.0)
    cluster.is_silent("n1")
    cluster.look(3)
    assert cluster.system._active == cluster.holder == "n1"
    if lacks == "what is copied still":
        cluster.unreached.clear()
        cluster.node("n1").side.now = Mirroring(ready=True, behind=0)
        cluster.look()
        cluster.is_silent("n1")
        cluster.look()
        assert cluster.system.primary() == cluster.holder == "n2"


def test_clients_are_told_nothing_by_one_whose_disk_the_other_takes_over(cluster: Cluster) -> None:
    # It may live, and acknowledges by itself once the other takes nothing from it any more: that was lost.
    cluster.held_at.clear()
    cluster.is_silent("n1")
    cluster.look()
    assert cluster.held_at == {"open": "", "mount": "", "start": "", "ready": "", "take": ""}
    assert cluster.holder == "n2"
