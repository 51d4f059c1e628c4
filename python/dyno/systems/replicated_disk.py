"""A stand-in for DRBD on machines where it is too slow: a disk that is kept twice without a module of the kernel.

MySQL runs natively on one of two nodes, on a file system whose disk QEMU's storage daemon mirrors to the other node
(`dyno.hosts.replication`). When a write is answered is as with DRBD's protocols; all else is not DRBD: requests pass
three programs on their way, no order is kept by protocol A, and what a node missed is copied as a whole. It stands in
for what it costs to wait for another node's disk, and reports call it by its name.
"""

from __future__ import annotations

import os
import secrets
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from dyno.deployments.base import Running
from dyno.deployments.native import for_node
from dyno.hosts.confinement import Confinement
from dyno.hosts.files import sync_file_system
from dyno.hosts.leftovers import UndoError
from dyno.hosts.networks import CLIENT
from dyno.hosts.replication import NBD_GREETING, PROGRAMS, Side, greets, reaches
from dyno.hosts.replication import PORT as DISK_PORT
from dyno.hosts.vms import need
from dyno.hosts.volumes import Until
from dyno.model.base import RunError, Scalar
from dyno.model.endpoint import Endpoint
from dyno.model.faults import FaultKind, Struck
from dyno.model.units import Duration
from dyno.systems.base import Place
from dyno.systems.cluster import NodeState, Role, facts_of_nodes, machine_of_node
from dyno.systems.disk_cluster import FOLDER, NAMES, DiskCluster, DiskClusterOptions, DiskServer, other_of
from dyno.systems.manager import Line, Manager, held
from dyno.systems.members import PORT, SLOW_DISK
from dyno.systems.mysql import MysqlOptions
from dyno.systems.server import WHO

_LOOK_EVERY_S = 0.2
_ASK_S = 1.0
_TAKE_OVER_S = 120.0
_BALLAST: Final = "ballast"


class ReplicatedDiskOptions(DiskClusterOptions):
    """Of the disk that is kept twice."""

    protocol: Annotated[
        Literal["A", "B", "C"],
        Field(
            description="when a write is answered: once it is here (A), once the other node has taken it (B), once it "
            "is on the other node's disk (C)"
        ),
    ] = "C"
    delay: Annotated[
        Duration | None, Field(ge=0, le=10, description="of each write on its way to the other node, and of its answer")
    ] = None
    silent_for: Annotated[
        Duration, Field(ge=1, le=60, description="how long a node has to be silent before the other goes on alone")
    ] = 3.0


@dataclass
class _Node:
    """What there is of a node."""

    side: Side
    confinement: Confinement
    point: Path
    server: DiskServer | None = None
    mounted: Path | None = None
    frozen: bool = False
    off: bool = False
    """It was killed or shut down, and is not back."""
    leaving: threading.Thread | None = None
    """What shuts it down, once it was told to."""


class ReplicatedDiskSystem(DiskCluster[ReplicatedDiskOptions]):
    """Two nodes, of which one has the disk open."""

    kind = "replicated-disk"
    Options = ReplicatedDiskOptions
    forms_in_s = 8.0
    rejoins_in_s = 2.0

    def __init__(self, options: ReplicatedDiskOptions, place: Place) -> None:
        super().__init__(options, place)
        self._nodes: dict[str, _Node] = {}
        self._folder: Path | None = None
        self._manager: Manager | None = None
        self._endpoint: Endpoint | None = None
        self._active = NAMES[0]
        self._alone = False
        self._in_step = False
        """Whether the other disk was seen to have all, since it was last begun to be copied or a fault was mended."""
        self._complete = False
        """Whether the other disk has all that was there when it was begun to be copied: before, it is of no use."""
        self._taking_over_since: float | None = None
        """When the node that has the disk was given up (time.monotonic), and the other has not taken over yet."""
        self._turn = threading.RLock()
        """Of whoever changes who has the disk: the manager, or a fault that is mended."""
        self._heard: dict[str, float] = {}
        self._lines: dict[str, Line] = {}
        """To the server of each node, from the other one."""

    # The life

    def provision(self, limit: float) -> dict[str, str]:
        """Programs and rights."""
        if os.geteuid() != 0:
            raise RunError("a cluster needs root: each of its nodes has a network and a control group of its own")
        for program, package in PROGRAMS.items():
            need(program, package)
        versions = self.provision_server(limit)
        for program in ("qemu-storage-daemon", "nbdkit"):
            said = self.place.host.run([program, "--version"], limit=limit, log=self.place.logs / f"{program}-version")
            versions[program] = next((word for word in said.split() if word[:1].isdigit()), said.strip()[:40])
        return versions

    def start(self, run: int, limit: float) -> None:
        """One server by itself where it is loaded, else both disks, and a server on the first."""
        if run == 0:
            self.start_alone(run, limit)
            return
        if not all(self.disk(name).exists() for name in NAMES):
            raise RunError("there are no disks to start on")
        until = Until.within(limit, self.place.logs / "disks")
        host = self.place.host
        self._struck.clear()
        self._clean, self._asked, self._endpoint, self._active, self._alone = False, None, None, NAMES[0], False
        self._taking_over_since, self._manager = None, None
        self._folder = host.temporary_folder(Path(tempfile.gettempdir()) / f"dyno-{secrets.token_hex(4)}")
        try:
            self._network = host.networks.make(NAMES)
            for name in NAMES:
                self._nodes[name] = self._made(name)
            first, second = (self._nodes[name] for name in NAMES)
            self._serve(second, until)
            self._open(first, until, alike=second)
            self._start_server(first, run, until)
        except BaseException:
            with suppress(RunError):
                self.stop(limit)
            raise

    def _made(self, name: str) -> _Node:
        assert self._folder is not None
        host = self.place.host
        confinement = host.confine_node(name, machine_of_node(self.options), self.deployment.site.confinement)
        side = Side(
            host,
            name,
            self.disk(name),
            words=self.network.words(name),
            confinement=confinement,
            folder=self._folder,
            logs=self.place.logs,
        )
        return _Node(side, confinement, self.place.data / name)

    def _serve(self, node: _Node, until: Until) -> None:
        there_and_back = 2 * (self.options.delay or 0.0)
        address = self.network.address(node.side.node)
        node.side.serve(address, delay=there_and_back, durable=self.options.protocol == "C", until=until)

    def _open(self, node: _Node, until: Until, *, alike: _Node | None = None) -> None:
        """Mount its disk; with another one that is `alike` in every byte, that has all that is written from now on."""
        device = node.side.open(until)
        if alike is not None:
            self._mirror(node, alike, everything=False, until=until)  # before mounting, which writes already
        node.point.mkdir(exist_ok=True)
        node.mounted = self.place.host.expect_mounts(node.point)
        words = ["mount", "-t", "ext4", "-o", "noatime", str(device), str(node.mounted)]
        self.place.host.run(words, limit=until.left, log=until.log)

    def _mirror(self, source: _Node, target: _Node, *, everything: bool, until: Until) -> None:
        source.side.mirror(
            self.network.address(target.side.node),
            synchronous=self.options.protocol != "A",
            copy="everything" if everything else "nothing",
            until=until,
        )
        self._alone, self._in_step, self._complete = False, False, not everything
        self._heard = dict.fromkeys(NAMES, time.monotonic())

    def _start_server(self, node: _Node, run: int, until: Until) -> None:
        assert node.mounted is not None
        deployment = for_node(self.deployment, node.confinement, self.network.words(node.side.node))
        options = MysqlOptions.model_validate({**self.options.settings, "check": self.options.check})
        shared = self.place.shared or self.place.data.parent
        place = replace(self.place, data=node.mounted / FOLDER, shared=shared, deployment=deployment)
        server = DiskServer(options, place)
        server.node = node.side.node
        node.server = server  # before it is started, so that one that does not come up is ended too
        server.start(run, until.left)

    def ready(self, limit: float) -> Endpoint:
        """Have the server answer by the virtual address; then somebody looks after both nodes."""
        if self._lone is not None:
            return self._lone.ready(limit)
        if not self._nodes:
            raise RunError(f"{self.kind} was not started")
        if self._endpoint is not None:
            return self._endpoint
        deadline = time.monotonic() + limit
        first = self._nodes[NAMES[0]]
        assert first.server is not None
        first.server.ready(limit)
        self.network.take(self.network.virtual(0), NAMES[0])
        self.attest({"protocol": self.options.protocol}, {}, deadline - time.monotonic())
        self._sent_before = self.sent_bytes() or 0
        now = time.monotonic()
        self._heard = dict.fromkeys(NAMES, now)
        self._manager = Manager(self._look, _LOOK_EVERY_S)
        self._manager.start()
        self._endpoint = Endpoint(
            backend=self.backend,
            settings={"host": self.network.virtual(0), "port": PORT, **WHO},
            processes=self._pids(),
            namespace=str(self.network.path(CLIENT)),
        )
        return self._endpoint

    def stop(self, limit: float) -> None:
        """End the server cleanly, and let go of the disks. Raises RunError where it ended though nobody struck it.

        Also where something else did not end, when all that can be ended has.
        """
        if self._lone is not None:
            lone, self._lone = self._lone, None
            lone.stop(limit)
            return
        if self._network is None:
            return
        wrong: list[str] = []
        was_struck = bool(self._struck)
        for each in list(self._struck):
            with suppress(RunError):
                self._undo(each)
        stuck, defect = "", None
        try:
            try:
                self._end_manager()
            except RunError as error:
                stuck = str(error)
            except Exception as error:  # noqa: BLE001 - both nodes are to end first; it is raised below
                defect = error
            self._last = self._active
            until = Until.within(limit, self.place.logs / "disks")
            for name, node in self._nodes.items():
                try:
                    clean = self._let_go(node, until)
                    if name == self._active:
                        self._clean = clean
                except RunError as error:
                    if not was_struck and not self._given_up:
                        wrong.append(f"{name}: {error}")
            if stuck:
                wrong.append(stuck)
            with suppress(RunError):  # what it waited for has ended now, and it must do nothing to the next run
                self._end_manager()
        finally:
            self._nodes.clear()
            self._struck.clear()
            self._endpoint = None
            self._lines = {}
            network, self._network = self._network, None
            network.destroy()
            folder, self._folder = self._folder, None
            if folder is not None:
                try:
                    self.place.host.remove_temporary_folder(folder)
                except UndoError as error:
                    wrong.append(str(error))
        if defect is not None:
            raise defect
        if wrong:
            raise RunError("; ".join(wrong))

    def _end_manager(self) -> None:
        """And its lines. Raises RunError where it did not end, and a defect that it met."""
        if self._manager is not None:
            self._manager.stop()
        for line in self._lines.values():
            line.close()
        self._lines.clear()

    def _let_go(self, node: _Node, until: Until) -> bool:
        """End all that there is of a node; whether its server ended cleanly. Raises RunError, when all has ended."""
        wrong, clean = "", False
        if node.server is not None:
            try:
                node.server.stop(until.left)
                clean = True
            except RunError as error:
                wrong = str(error)
            node.server = None
        if node.leaving is not None:
            node.leaving.join(until.left)  # its server has ended: it writes back what the disk has not, and is done
            node.leaving = None
        if clean and self.options.protocol == "A" and not self._alone:
            with suppress(RunError):
                node.side.synced(until)
        if node.mounted is not None:
            try:
                self.place.host.unmount(node.mounted)
                node.mounted = None
            except UndoError as error:
                wrong = wrong or str(error)
        node.side.close()
        if wrong:
            raise RunError(wrong)
        return clean

    # What it says of itself

    @property
    def running(self) -> Running | None:
        """The server that runs."""
        if self._lone is not None:
            return self._lone.running
        return next((node.server.running for node in self._nodes.values() if _lives(node) and node.server), None)

    def _pids(self) -> dict[str, int]:
        found = {}
        for name, node in list(self._nodes.items()):
            if _lives(node) and (pid := _pid(node)) is not None:
                found[name] = pid
            found |= {f"{name}-{what}": pid for what, pid in node.side.pids.items()}
        return found

    def primary(self) -> str | None:
        """Who has the disk open, where the server there lives."""
        node = self._nodes.get(self._active)
        return self._active if node is not None and _lives(node) and not node.frozen else None

    def way_of_dyno(self) -> Endpoint:
        """By the server's own socket."""
        node = self._nodes.get(self._active)
        if node is None or node.server is None or not _lives(node):
            raise RunError("no node has a server that runs")
        return node.server.way()

    def facts(self) -> dict[str, Scalar]:
        """What each node has, and how its server does its work."""
        node = self._nodes.get(self._active)
        of_server = node.server.facts() if node is not None and node.server is not None else {}
        return {
            **facts_of_nodes(self.options),
            "nodes.serving": 1,  # the other one waits to take over
            "disk.replicated_by": "qemu-storage-daemon, in place of DRBD",
            **of_server,
        }

    def data_files(self) -> list[Path]:
        """Those of the server, where it runs."""
        node = self._nodes.get(self._active)
        return super().data_files() if node is None or node.server is None else node.server.data_files()

    def cached(self, cold: bool) -> dict[str, Any]:
        """Of the server."""
        node = self._nodes.get(self._active)
        return {} if node is None or node.server is None else node.server.cached(cold)

    def status(self) -> dict[str, float]:
        """What the server counted, where it is the one that was there at first, and what all cost."""
        if self._network is None:
            return {} if self._lone is None else self._lone.status()
        return {**self.server_counters(), **self.costs(self.options.nodes)}

    def notes(self) -> tuple[str, ...]:
        """That it is no DRBD, and in what."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        yield (
            "The replicated disk stands in for DRBD, and is not it: QEMU's storage daemon mirrors each write to nbdkit "
            "on the other node, through FUSE, a loop device and three programs."
        )
        if self.options.protocol == "A":
            yield "Its protocol A keeps no order of writes, as DRBD's does: a failover may find a damaged file system."
        if self.options.protocol == "B":
            yield "Its protocol B: when a write is answered the other node has it in its page cache, not on its disk."

    def events(self) -> tuple[tuple[int, str], ...]:
        """What the manager did."""
        return () if self._manager is None else tuple(self._manager.events)

    # Who looks after it

    def _look(self) -> None:
        """Whether each node answers the other, and what has to be done where one does not."""
        with self._turn:
            active, other = self._nodes[self._active], self._nodes[other_of(self._active)]
            # Who is off or stopped sees nothing; and one that does not reach the clients either is itself cut off.
            # That holds for either of them: were one that is cut off to go on alone, it would acknowledge what is
            # not on the other, which takes over then.
            if self._taking_over_since is not None:
                self._go_on_taking_over(other, active)
                return
            looks = not (other.off or other.frozen or self._alone) and self._complete and other.side.serves
            if looks and self._is_silent(active, heard=self._answers(active)) and self._reaches_clients(other):
                self._taking_over_since = time.monotonic()
                self._tell(f"{active.side.node} is silent: {other.side.node} takes over")
                self._take_over(other)
                return
            if self._alone or active.off or active.frozen:
                return
            sent = active.side.mirroring() if self._takes(other) else None
            self._complete = self._complete or (sent is not None and sent.ready)
            if self._is_silent(other, heard=sent is not None) and self._reaches_clients(active):
                active.side.let_go()
                self._alone = True
                self._tell(f"{other.side.node} was given up: {active.side.node} goes on alone")

    def _is_silent(self, node: _Node, *, heard: bool) -> bool:
        """Whether it has not answered for as long as is borne."""
        now = time.monotonic()
        if heard:
            self._heard[node.side.node] = now
        return now - self._heard[node.side.node] >= self.options.silent_for

    def _answers(self, node: _Node) -> bool:
        """Whether its server answers the other node."""
        name = node.side.node
        if name not in self._lines:
            where = {"host": self.network.address(name), "port": PORT, **WHO}
            seen_from = str(self.network.path(other_of(name)))
            self._lines[name] = Line(Endpoint(backend=self.backend, settings=where, namespace=seen_from), _ASK_S)
        with suppress(RunError):
            return bool(self._lines[name].rows("SELECT 1"))
        return False

    def _takes(self, node: _Node) -> bool:
        """Whether it would take what the other node sends."""
        address = self.network.address(node.side.node)
        seen_from = other_of(node.side.node)
        return self.network.within(seen_from, lambda: greets(address, DISK_PORT, _ASK_S, NBD_GREETING))

    def _reaches_clients(self, who: _Node) -> bool:
        address = self.network.address(CLIENT)
        return self.network.within(who.side.node, lambda: reaches(address, _ASK_S))

    def _tell(self, what: str) -> None:
        if self._manager is not None:
            self._manager.tell(what)

    def _go_on_taking_over(self, node: _Node, silent: _Node) -> None:
        """After it has failed: nobody else has the disk. The one that was given up keeps it where it answers again."""
        if node.off or node.frozen:
            return
        until = Until.within(_TAKE_OVER_S, self.place.logs / "disks")
        if not (silent.off or silent.frozen) and self._answers(silent):
            self._leave_it(node, until)
            self._tell(f"{silent.side.node} answers again, and goes on alone")
            silent.side.let_go()
        elif self._reaches_clients(node):
            self._close_half_open(node, until)
            self._take_over(node)

    def _close_half_open(self, node: _Node, until: Until) -> None:
        """Raises RunError where it is still open."""
        try:
            self._let_go(node, until)
        except RunError:  # also where a server that was half started does not end cleanly
            if node.mounted is not None or node.side.device is not None:
                raise

    def _leave_it(self, node: _Node, until: Until) -> None:
        """Have a node not take over: it has to be sent everything before its disk is of use again."""
        self._close_half_open(node, until)
        self.network.take(self.network.virtual(0), self._active)  # nobody may have it by now
        self._taking_over_since, self._alone = None, True

    def _take_over(self, node: _Node) -> None:
        """The node that was written to opens its disk, and has the server from now on.

        Where it fails it is done anew at the next look, after what is half open was closed.
        """
        assert self._manager is not None
        until = Until.within(_TAKE_OVER_S, self.place.logs / "disks")
        # First: the other one may live, and acknowledges by itself what it cannot send any more.
        self.network.give_up(self.network.virtual(0), self._active)
        node.side.unserve()
        self._open(node, until)
        self._manager.go_on()
        self._start_server(node, 1, until)
        assert node.server is not None
        node.server.ready(until.left)
        self.network.take(self.network.virtual(0), node.side.node)
        self._active, self._alone, self._taking_over_since = node.side.node, True, None
        self._heard = dict.fromkeys(NAMES, time.monotonic())
        self._tell(f"{node.side.node} has taken over")

    # Nodes and faults

    def nodes(self) -> tuple[NodeState, ...]:
        """By who has the disk open."""
        return tuple(self._node(name) for name in NAMES)

    def _node(self, name: str) -> NodeState:
        node, address = self._nodes[name], self.network.address(name)
        server = _pid(node) if _lives(node) else None
        pid = server or node.side.pids.get("server")
        role: Role = "none"
        if node.off or pid is None:
            return NodeState(name, address, None, role, "switched off" if node.off else "does not run")
        if node.frozen:
            return NodeState(name, address, pid, role, "stopped")
        if name == self._active:
            role = "primary"
        elif node.side.serves:
            role = "secondary"
        return NodeState(name, address, pid, role, "alone" if self._alone and role == "primary" else "has the disk")

    def whole(self) -> bool:
        """Whether both disks hold the same, and the server answers.

        With protocols B and C they do once all that was there before is copied, since each write is there before it is
        answered. With A writes may be on their way for long: the other disk has to be seen to have all once after it
        was begun to be copied, or a fault was mended.
        """
        if self._network is None:
            return False
        active, other = self._nodes[self._active], self._nodes[other_of(self._active)]
        if active.off or self._alone or self._taking_over_since is not None or self.primary() is None:
            return False
        if other.off or other.frozen or not other.side.serves:
            return False
        with suppress(RunError):
            now = active.side.mirroring()
            if now is None or not now.ready:
                return False
            self._complete, self._in_step = True, self._in_step or now.behind == 0
            return self._in_step or self.options.protocol != "A"
        return False

    def carry_out(self, kind: FaultKind, node: str) -> None:
        """By a signal to all of a node's programs, by the network, or by the disk."""
        at, host = self._nodes[node], self.place.host
        match kind:
            case "kill":
                at.off = True
                self._signal(at, signal.SIGKILL)
            case "freeze":
                at.frozen = True
                self._signal(at, signal.SIGSTOP)
            case "shutdown":
                at.off = True
                self._shut_down(at)
            case "cut" | "cut-client" | "cut-one-way" | "slow-network":
                self.strike_network(kind, node)
            case "disk-full":
                host.fill_disk(self._filled(at))
            case "slow-disk":
                host.limit_disk(at.confinement, SLOW_DISK, self.disk(node))

    def _filled(self, node: _Node) -> Path:
        if node.mounted is None:
            raise RunError(f"{node.side.node} has no file system that could be full: it is the secondary")
        return node.mounted

    def _signal(self, node: _Node, number: signal.Signals) -> None:
        if node.server is not None:
            node.server.signal(number)
        node.side.send(number)

    def _shut_down(self, node: _Node) -> None:
        """The server asked to end first; what is below it when that has ended, in a thread, since it takes a while.

        Of what runs now: what is started later on the same node is not meant.
        """
        server, mounted, programs = node.server, node.mounted, node.side.processes

        def carry_out() -> None:
            if server is not None and server.running is not None:
                server.signal(signal.SIGTERM)
                server.running.wait(_TAKE_OVER_S)
            if mounted is not None:
                with suppress(OSError):
                    sync_file_system(mounted)  # and no other: what is measured goes on beside it
            for program in programs:
                program.send(signal.SIGTERM)

        node.leaving = threading.Thread(target=carry_out, name=f"shutdown of {node.side.node}", daemon=True)
        node.leaving.start()

    def carry_back(self, struck: Struck, limit: float) -> None:
        """Take it back; a node that was given up is ended for good, and begins anew as the secondary of the other."""
        until = Until.within(limit, self.place.logs / "disks")
        (name,) = struck.nodes
        node = self._nodes[name]
        if struck.kind == "shutdown":
            self._wait_until_left(node, until)
        with held(self._turn, until.left):
            self._in_step = False
            if self._taking_over_since is not None:
                # It has failed until now, and nobody was told anything by it: who was given up keeps the disk.
                self._leave_it(self._nodes[other_of(self._active)], until)
            given_up = node.off or (name != self._active and (node.server is not None or self._alone))
            if given_up and struck.kind not in ("kill", "shutdown"):
                self._signal(node, signal.SIGKILL)  # as fencing does, before anybody can reach it again
            self._undo(struck)
            if name == self._active and (node.off or not _lives(node)):
                # Nobody has taken over yet, and nobody need. It may have ended by itself, as where its disk is full.
                self._restart(node, until)
                return
            if not given_up and not self._alone:
                return
            other = self._nodes[self._active]
            back = self._nodes[other_of(self._active)]
            # What was killed may not have ended yet, and still seem to serve.
            if given_up or back.server is not None or back.mounted is not None or not back.side.serves:
                self._serve_anew(back, until)
            self._mirror(other, back, everything=True, until=until)

    def give_up(self) -> None:
        """All programs of both nodes."""
        self._given_up = True
        for node in self._nodes.values():
            self._signal(node, signal.SIGKILL)

    def _serve_anew(self, node: _Node, until: Until) -> None:
        with suppress(RunError):  # it was killed, and says so
            self._let_go(node, until)
        node.off = False
        self._serve(node, until)

    def _wait_until_left(self, node: _Node, until: Until) -> None:
        """Not before it is down can it come back. Raises RunError."""
        if node.leaving is None:
            return
        node.leaving.join(until.left)
        if node.leaving.is_alive():
            raise RunError(f"{node.side.node} did not shut down in time")
        node.leaving = None

    def _restart(self, node: _Node, until: Until) -> None:
        """A node that is back before it was missed, on the disk that it has."""
        with suppress(RunError):
            self._let_go(node, until)
        node.off = False
        other = self._nodes[other_of(node.side.node)]
        if not other.side.serves:
            self._serve_anew(other, until)
        self._open(node, until)
        self._mirror(node, other, everything=True, until=until)
        self._start_server(node, 1, until)
        assert node.server is not None
        node.server.ready(until.left)

    def _undo(self, struck: Struck) -> None:
        (name,) = struck.nodes
        node, host = self._nodes[name], self.place.host
        self.taken_back(struck)
        match struck.kind:
            case "freeze":
                node.frozen = False
                self._signal(node, signal.SIGCONT)
            case "cut" | "cut-client" | "cut-one-way" | "slow-network":
                self.network.heal()
            case "disk-full":
                if node.mounted is not None:
                    host.make_room(node.mounted)
            case "slow-disk":
                host.release_disk(node.confinement, SLOW_DISK, self.disk(name))
            case _:
                pass


def _lives(node: _Node) -> bool:
    server = node.server
    return server is not None and server.lives()


def _pid(node: _Node) -> int | None:
    """Of its server, whether or not it has ended; asked while another thread may end or start one."""
    running = None if (server := node.server) is None else server.running
    return None if running is None else running.pid
