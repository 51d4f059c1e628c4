"""A disk that is kept twice without a module of the kernel: QEMU's storage daemon mirrors it to the other node.

The node that writes has two daemons: one has its image and sends each write to the other node too; one shows that as a
file (FUSE), on which there is a loop device. The other node has `nbdkit` on its image, and writes what it is sent.

    file system - loop device - FUSE - daemon - NBD - daemon -- image
                                                            \\- socat -- network -- nbdkit - image

All of it is in the undo journal: programs as servers, mounts and loop devices by what the kernel knows them by.
"""

from __future__ import annotations

import contextlib
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dyno.hosts import programs
from dyno.hosts.confinement import Confinement
from dyno.hosts.leftovers import UndoError
from dyno.hosts.local import LocalHost
from dyno.hosts.process import Process
from dyno.hosts.qmp import Monitor
from dyno.hosts.volumes import Until
from dyno.model.base import RunError

PROGRAMS = {"qemu-storage-daemon": "qemu-system-common", "nbdkit": "nbdkit", "socat": "socat", "mke2fs": "e2fsprogs"}
"""What is needed, each with Debian's package of it."""

PORT = 10809
"""Of the server on the other node: NBD's own."""
NBD_GREETING = b"NBDMAGIC"
_LOOK_EVERY_S = 0.02
_OWN, _PEER, _JOB = "own", "peer-", "mirror"
_EXPORT = "disk"

Copy = Literal["nothing", "everything"]


@dataclass(frozen=True)
class Mirroring:
    """How a copy is doing: `ready` once all is there that was there before, `behind` in bytes."""

    ready: bool
    behind: int


class Side:
    """One node's half. It either serves its image to the other one, or has it open and may send it."""

    def __init__(
        self,
        host: LocalHost,
        node: str,
        image: Path,
        *,
        words: Sequence[str],
        confinement: Confinement,
        folder: Path,
        logs: Path,
    ) -> None:
        """`words` take a command to the node's network; `folder` is for sockets, and has a short path."""
        self.node = node
        self.image = image
        self.device: Path | None = None
        self._host = host
        self._words = tuple(words)
        self._confinement = confinement
        self._folder = folder
        self._logs = logs
        self._processes: dict[str, Process] = {}
        self._monitor = Monitor(folder / f"{node}.qmp")
        self._shown = image.with_name(f"{node}.shown")
        self._mount: Path | None = None
        self._mirrored = 0

    # What runs

    @property
    def pids(self) -> dict[str, int]:
        """Of its programs that run, by what they are."""
        return {name: process.pid for name, process in list(self._processes.items()) if process.wait(0) is None}

    @property
    def serves(self) -> bool:
        """Whether it serves its image to the other."""
        return "server" in self.pids

    def _start(self, what: str, argv: Sequence[str], marker: str, *, in_network: bool) -> Process:
        under = self._words if in_network else ()
        words, _ = self._confinement.around([*under, *argv], None)
        process = self._host.start_server(words, log=self._logs / f"{self.node}-{what}", marker=marker)
        self._processes[what] = process
        return process

    def _end(self, what: str, farewell: signal.Signals = signal.SIGTERM) -> None:
        process = self._processes.pop(what, None)
        if process is not None:
            try:
                self._host.end_server(process, limit=5.0, farewell=farewell)
            except UndoError as error:
                raise RunError(f"{self.node}: {error}") from error

    @property
    def processes(self) -> tuple[Process, ...]:
        """Its programs as they are now: one that is started again is another."""
        return tuple(self._processes.values())

    def send(self, number: signal.Signals) -> None:
        """Send all of its programs a signal, and wait for nothing."""
        for process in self.processes:
            process.send(number)

    # As the one that is written to by the other

    def serve(self, address: str, *, delay: float, durable: bool, until: Until) -> None:
        """Have the other node write here. `durable`: each write is on the disk before it is answered.

        `delay` is in s, of each write. Raises RunError.
        """
        pid_file = self._folder / f"{self.node}.server"
        filters = [*(["--filter=delay"] if delay else []), *(["--filter=fua"] if durable else [])]
        settings = [f"delay-write={round(delay * 1e6)}us"] if delay else []
        settings += ["fuamode=force"] if durable else []
        argv = [
            _program("nbdkit"),
            "--foreground",
            "--ipaddr",
            address,
            "--port",
            str(PORT),
            "--pidfile",
            str(pid_file),
        ]
        argv += [*filters, "file", str(self.image), *settings]
        process = self._start("server", argv, str(pid_file), in_network=True)
        while not pid_file.exists():
            if process.wait(_LOOK_EVERY_S) is not None:
                raise RunError(f"nbdkit ended on {self.node}: {process.complaint() or 'it said nothing'}")
            until.look("starting nbdkit")

    def unserve(self) -> None:
        """End that."""
        self._end("server")
        (self._folder / f"{self.node}.server").unlink(missing_ok=True)

    # As the one that writes

    def open(self, until: Until) -> Path:
        """The loop device on its disk. Raises RunError; `close` then takes back what there is of it."""
        nbd, qmp = self._folder / f"{self.node}.nbd", self._folder / f"{self.node}.qmp"
        for left in (nbd, qmp):
            left.unlink(missing_ok=True)
        daemon = _program("qemu-storage-daemon")
        chardev = f"socket,id=qmp,path={qmp},server=on,wait=off"
        argv = [
            daemon,
            "--blockdev", f"driver=file,node-name=file,filename={_escaped(self.image)},aio=threads",
            "--blockdev", f"driver=raw,node-name={_OWN},file=file",
            "--nbd-server", f"addr.type=unix,addr.path={nbd}",
            "--export", f"type=nbd,id=out,node-name={_OWN},name={_EXPORT},writable=on",
            "--chardev", chardev, "--monitor", "chardev=qmp",
        ]  # fmt: skip
        first = self._start("disk", argv, chardev, in_network=False)
        while not (nbd.exists() and qmp.exists()):
            self._look(first, "the daemon of the disk", until)
        self._shown.touch()
        shown = self._mount = self._host.expect_mounts(self._shown)
        export = f"type=fuse,id=shown,node-name=in,mountpoint={_escaped(shown)},writable=on"
        source = f"driver=nbd,node-name=in,server.type=unix,server.path={nbd},export={_EXPORT}"
        second = self._start("shown", [daemon, "--blockdev", source, "--export", export], export, in_network=False)
        size = self.image.stat().st_size
        while _size(shown) != size:
            self._look(second, "the daemon that shows the disk", until)
        self.device = self._host.volumes.attach_file(shown, direct_io=False, until=until)
        return self.device

    def _look(self, process: Process, what: str, until: Until) -> None:
        if process.wait(_LOOK_EVERY_S) is not None:
            raise RunError(f"{what} ended on {self.node}: {process.complaint() or 'it said nothing'}")
        until.look(f"starting {what}")

    def mirror(self, address: str, *, synchronous: bool, copy: Copy, until: Until) -> None:
        """Send each write to the other node from now on, before it is answered where that is `synchronous`.

        And what is there already, where everything is to be copied. Raises RunError.
        """
        self.let_go()
        line = self._folder / f"{self.node}.line"
        listen = f"UNIX-LISTEN:{line}"
        # Whoever gives the other node up ends this, and with it all that waits for an answer.
        argv = [_program("socat"), listen, f"TCP:{address}:{PORT},connect-timeout=3,nodelay"]
        process = self._start("line", argv, listen, in_network=True)
        while not line.exists():
            self._look(process, "the line to the other node", until)
        server = {"type": "unix", "path": str(line)}
        # A name of its own each time: the one before may still wait for an answer, and goes when it has one.
        self._mirrored += 1
        peer = f"{_PEER}{self._mirrored}"
        self._monitor.ask("blockdev-add", driver="nbd", **{"node-name": peer}, server=server, export="")
        self._monitor.ask(
            "blockdev-mirror",
            **{
                "job-id": _JOB,
                "on-target-error": "report",
                "copy-mode": "write-blocking" if synchronous else "background",
            },
            device=_OWN,
            target=peer,
            sync="full" if copy == "everything" else "none",
        )

    def mirroring(self) -> Mirroring | None:
        """How the copy is doing; None where nothing is sent. Raises RunError where nobody answers."""
        for job in self._monitor.ask("query-block-jobs"):
            if job["device"] == _JOB:
                return Mirroring(bool(job["ready"]), int(job["len"]) - int(job["offset"]))
        return None

    def let_go(self) -> None:
        """Send nothing any more, whatever waits for an answer; the other node then has less. Raises RunError."""
        self._end("line", signal.SIGKILL)
        (self._folder / f"{self.node}.line").unlink(missing_ok=True)
        if "disk" not in self.pids:
            return
        with contextlib.suppress(RunError):  # it has ended by itself, once its line was gone
            self._monitor.ask("job-cancel", id=_JOB)
        for _ in range(100):
            if all(job["device"] != _JOB for job in self._monitor.ask("query-block-jobs")):
                break
            self._processes["disk"].wait(_LOOK_EVERY_S)
        for node in self._monitor.ask("query-named-block-nodes", flat=True):
            if str(node["node-name"]).startswith(_PEER):
                with contextlib.suppress(RunError):  # it is still in use, and is not used again
                    self._monitor.ask("blockdev-del", **{"node-name": node["node-name"]})

    def synced(self, until: Until) -> None:
        """Wait until the other has all. Raises RunError."""
        while (now := self.mirroring()) is not None and (not now.ready or now.behind):
            until.look("sending the other node what it has not")
            self._processes["disk"].wait(_LOOK_EVERY_S)

    # The end of either

    def kill(self) -> None:
        """End all of its programs at once, as with the node; what the kernel has of its disk goes with `close`."""
        self.send(signal.SIGKILL)

    def close(self) -> None:
        """End whatever there is of it, so that it may serve or be opened again. Raises RunError, when all has ended."""
        self._monitor.close()
        wrong: list[str] = []
        try:
            self._host.volumes.detach_file(self._shown)
            self.device = None
            if self._mount is not None:
                self._host.unmount(self._mount)
                self._mount = None
        except UndoError as error:
            wrong.append(f"{self.node}: cannot let go of its disk: {error}")
        for what in ("line", "shown", "disk", "server"):
            try:
                self._end(what)
            except RunError as error:
                wrong.append(str(error))
        for name in ("nbd", "qmp", "line", "server"):
            (self._folder / f"{self.node}.{name}").unlink(missing_ok=True)
        if wrong:
            raise RunError("; ".join(wrong))
        self._shown.unlink(missing_ok=True)


def _escaped(path: Path) -> str:
    return str(path).replace(",", ",,")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _program(name: str) -> str:
    found = programs.find(name)
    if found is None:
        raise RunError(f"{name} is missing: install Debian's {PROGRAMS[name]}")
    return str(found)


def reaches(address: str, limit: float) -> bool:
    """Whether anybody is at an address within so many seconds: who has nobody listening says so."""
    try:
        socket.create_connection((address, _NOBODY_LISTENS), timeout=limit).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return True


_NOBODY_LISTENS = 9  # the port to discard, RFC 863


def greets(address: str, port: int, limit: float, greeting: bytes = b"") -> bool:
    """Whether somebody at an address speaks first within so many seconds, as servers of MySQL and NBD do."""
    try:
        with socket.create_connection((address, port), timeout=limit) as opened:
            opened.settimeout(limit)
            return opened.recv(16).startswith(greeting)
    except OSError:
        return False
