"""Engines of containers: Docker and Podman, each with a place of its own, so that neither sees what others run.

An engine keeps images and layers where it is told, on the file system that is to be measured. Docker's daemons are
started for it; a Docker that runs on the machine already is left alone. What containers run ends by its control group,
whatever becomes of the engine.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import os
import resource
import secrets
import select
import signal
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dyno.hosts import bridges, leftovers, programs
from dyno.hosts.accounts import Account
from dyno.hosts.cgroups import DiskLimits
from dyno.hosts.leftovers import UndoError
from dyno.hosts.local import LocalHost
from dyno.hosts.process import Process
from dyno.hosts.undo import Change
from dyno.model.base import RunError

ENGINE_LOST = 125
"""The exit status that is told of a server whose engine ended, or lost sight of it: as `docker run` has it."""

DOCKERS_BRIDGE = "docker0"

_LOOK_EVERY_S = 0.02
_KILL_LIMIT_S = 10.0
_ENDED = ("exited", "stopped")
_MOST_PROCESSES = 32768
"""Podman itself may have no more, and so it can give no more."""


_LIMITS = {"read_bytes": "read-bps", "write_bytes": "write-bps", "reads": "read-iops", "writes": "write-iops"}
"""What engines call the limits of a device."""


@dataclass(frozen=True)
class Plan:
    """A container to be. `binds` are files and folders of this machine that it has at their own paths.

    `group` is the control group below which its own is made, `disk` what that is held to of the device of its data.
    """

    image: str
    argv: tuple[str, ...]
    group: str
    environment: Mapping[str, str]
    binds: tuple[Path, ...] = ()
    cpus: str | None = None
    account: Account | None = None
    disk: DiskLimits | None = None


class Engine(ABC):
    """What containers are made and started by. Life: `start`, then containers, then `end`; each raises RunError.

    Images and layers are kept below `folder`, which must be in a temporary folder of the session. The engine sees it
    elsewhere: options of overlays take no comma and no colon in a path. All is below one mount there, so that what is
    in the folder can be renamed into a layer.
    """

    kind: ClassVar[str]
    package: ClassVar[str]
    program: ClassVar[str]
    """Its client."""
    makes: ClassVar[tuple[str, ...]]
    """Folders outside of its own that it makes and leaves; those within others come later."""
    writes: ClassVar[tuple[str, ...]] = ()
    """Files outside of its own that it makes and leaves."""

    def __init__(self, host: LocalHost, folder: Path, logs: Path) -> None:
        self.host = host
        self.logs = logs
        self._kept = folder
        self._client = str(_needed(self.program, self.package))
        self._own: Path | None = None
        self._bare: tuple[str, ...] = ()  # how a container is told to have no variables but those that are given
        self._outside: list[Change] = []  # what is to be put back of it, the last first
        self._files: dict[str, Change] = {}  # by the container that they are of

    @abstractmethod
    def start(self, limit: float) -> None:
        """Have it run; `limit` is in seconds."""

    @abstractmethod
    def died(self) -> str | None:
        """How it ended, where it has ended by itself."""

    def processes(self) -> list[Process]:
        """Those of its own that have to be there."""
        return []

    @abstractmethod
    def _own_words(self) -> list[str]:
        """The client's command with all that leads it to this engine and no other."""

    @property
    def runs(self) -> bool:
        """Whether it was started, and not ended by us."""
        return self._own is not None

    @property
    def own(self) -> Path:
        """For sockets, whose paths must be short, and for all that is there only while it runs."""
        assert self._own is not None, "it runs"
        return self._own

    @property
    def place(self) -> Path:
        """Where the engine sees its folder."""
        return self.own / "site"

    @property
    def root(self) -> Path:
        """Where images and layers are."""
        return self.place / "engine"

    def versions(self, limit: float) -> dict[str, str]:
        """Of the engine and of what it starts containers by."""
        runtime = self.host.run([str(_needed("runc", "runc")), "--version"], limit=limit, log=self.logs / "runc")
        return {**self._versions(limit), "runc": runtime.split()[2]}

    @abstractmethod
    def _versions(self, limit: float) -> dict[str, str]: ...

    def import_image(self, archive: Path, tag: str, limit: float) -> None:
        """Make an image of a tar archive."""
        self.ask(["import", str(archive), tag], limit)

    def create(self, plan: Plan, limit: float) -> Container:
        """Make a container of a plan."""
        name = f"dyno-{secrets.token_hex(6)}"
        words = ["create", "--name", name, "--network", "host", "--cgroup-parent", plan.group, "--log-driver", "none"]
        # The limits that a process of ours has without a container; engines have others of their own.
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        words += ["--ulimit", f"nofile={soft}:{hard}"]
        most = _processes_limit()
        words += ["--ulimit", f"nproc={most}:{most}"]
        if plan.cpus is not None:
            words += ["--cpuset-cpus", plan.cpus]
        if plan.disk is not None and not plan.disk.inherited:
            for what, most_a_second in plan.disk.limits.items():
                words += [f"--device-{_LIMITS[what]}", f"{plan.disk.device}:{most_a_second}"]
        if plan.account is not None:
            words += ["--user", f"{plan.account.uid}:{plan.account.gid}"]
            for group in plan.account.groups:
                words += ["--group-add", str(group)]
        words += self._bare
        for variable, value in plan.environment.items():
            words += ["--env", f"{variable}={value}"]
        for path in plan.binds:
            words += ["--mount", _fields("type=bind", f"source={path}", f"target={path}")]
        known_as = self.ask([*words, plan.image, *plan.argv], limit).split()[-1]
        if leaves := self._leaves(known_as):
            self._files[name] = self.host.expect_file(leaves)
        upper = self.ask(["inspect", "--format", "{{.GraphDriver.Data.UpperDir}}", name], limit).strip()
        return Container(self, name, Path(upper))

    def remove(self, name: str, limit: float) -> None:
        """Remove a container, with its layer and all that is known by its name. Raises RunError."""
        self.ask(["rm", "--force", name], limit)
        if file := self._files.pop(name, None):
            try:
                self.host.put_back(file)
            except UndoError as error:
                raise RunError(f"a container leaves something: {error}") from error

    def _leaves(self, known_as: str) -> Path | None:  # noqa: ARG002 - most leave nothing
        """What is left outside of the engine's folder of a container whose end the engine does not see."""
        return None

    def remove_all(self, limit: float) -> None:
        """Remove every container that there is, of an engine that ended before it was told to."""
        if names := self.ask(["ps", "--all", "--quiet"], limit).split():
            self.ask(["rm", "--force", *names], limit)

    def client(self, words: Sequence[str], *, log: Path, marker: str) -> Process:
        """Start the client for longer. At the end of dyno it is asked to end, and passes that on to the container."""
        return self.host.start_server([*self._own_words(), *words], log=log, marker=marker, undo_by=signal.SIGTERM)

    def ask(self, words: Sequence[str], limit: float) -> str:
        """What the client prints for a command. Raises RunError, also past `limit` seconds."""
        try:
            return self.host.run([*self._own_words(), *words], limit=limit, log=self.logs / self.kind)
        except RunError as error:
            if how := self.died():
                raise RunError(how) from error
            raise RunError(f"{self.kind} {words[0]}{str(error).rpartition('`')[2]}") from error

    def end(self, limit: float) -> None:
        """End it with all containers that are left; nothing stays but what is in its folder."""
        if not self.runs:
            return
        try:
            if self.died() is None:
                self.remove_all(limit)
        finally:
            self._end_processes(limit)
            self._put_away()

    def bury(self) -> None:
        """As `end`, after it died and the servers in its containers were ended; it can be started again."""
        self._end_processes(0.0)
        self._put_away()

    def _end_processes(self, limit: float) -> None:  # noqa: B027 - not every engine has some
        """It has none where the client is all there is."""

    def _make_own(self) -> Path:
        own = self.host.temporary_folder(Path(tempfile.gettempdir()).resolve() / f"dyno-{secrets.token_hex(4)}")
        own.chmod(0o711)  # some that run in containers pass through it
        self._own = own
        self._outside.append(self.host.expect_folders([Path(folder) for folder in self.makes]))
        self._outside += [self.host.expect_file(Path(file)) for file in self.writes if not Path(file).exists()]
        self.host.expect_mounts(own)
        self.place.mkdir()
        # Shared, else dockerd would mount its folder onto itself; private before, so that it is shared with no other.
        for words in (["--bind", str(self._kept), str(self.place)], ["--make-private", str(self.place)],
                      ["--make-shared", str(self.place)]):  # fmt: skip
            self.host.run(["mount", *words], limit=_KILL_LIMIT_S, log=self.logs / "mount")
        self.root.mkdir(exist_ok=True)
        return own

    def _put_away(self) -> None:
        try:
            if self._own is not None:
                self.host.unmount(self._own)
                self.host.remove_temporary_folder(self._own)
                self._own = None
            while self._files:
                name, file = next(iter(self._files.items()))
                self.host.put_back(file)
                del self._files[name]
            while self._outside:
                self.host.put_back(self._outside[-1])
                self._outside.pop()
        except UndoError as error:
            raise RunError(f"{self.kind} leaves something: {error}") from error


class Docker(Engine):
    """A dockerd of our own, with a containerd of its own: one that the machine runs already would be shared with it."""

    kind = "docker"
    package = "docker.io"
    program = "docker"
    makes = ("/run/containerd", "/run/containerd/s", "/run/docker", "/run/docker/plugins")

    def __init__(self, host: LocalHost, folder: Path, logs: Path) -> None:
        super().__init__(host, folder, logs)
        self._daemons: dict[str, Process] = {}

    def start(self, limit: float) -> None:
        """Daemon by daemon, each until it answers."""
        deadline = time.monotonic() + limit
        try:
            own = self._make_own()
            self._start_containerd(own, deadline)
            self._start_dockerd(own, deadline)
            self.remove_all(max(deadline - time.monotonic(), 0))
        except RunError:
            with contextlib.suppress(RunError):  # the first cause is the one to tell; the journal has the rest
                self.bury()
            raise

    def _start_containerd(self, own: Path, deadline: float) -> None:
        socket = own / "c"
        settings = own / "containerd.toml"
        settings.write_text(
            f"version = 2\nroot = {_quoted(self.root / 'containerd')}\nstate = {_quoted(own / 'containerd')}\n"
            f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\naddress = {_quoted(socket)}\n'
            # Nothing is ever put there; it makes folders all the same.
            f'[plugins."io.containerd.internal.v1.opt"]\npath = {_quoted(own / "opt")}\n'
        )
        argv = [str(_needed("containerd", "containerd")), "--config", str(settings)]
        # Not as a server with a watcher: it has to be there until dockerd, told by its own watcher, has ended.
        self._daemons["containerd"] = self.host.start(argv, log=self.logs / "containerd")
        self._wait_for("containerd", socket.is_socket, deadline)

    def _start_dockerd(self, own: Path, deadline: float) -> None:
        settings = own / "dockerd.json"
        # Without a file of ours the machine's own would be read. The key is one that older versions make for themselves
        # in /etc/docker; newer ones make none, and let pass that it is named.
        settings.write_text(json.dumps({"deprecated-key-path": f"{own}/key/key.json"}))
        marker = f"--pidfile={own}/pid"
        argv = [
            str(_needed("dockerd", self.package)),
            f"--config-file={settings}",
            f"--containerd={own}/c",
            f"--data-root={self.root}/docker",
            f"--exec-root={own}/exec",
            marker,
            f"--host=unix://{own}/d",
            "--storage-driver=overlay2",
            "--exec-opt=native.cgroupdriver=cgroupfs",
            f"--bridge={self._bridge()}",
            "--iptables=false",
            "--ip6tables=false",
            "--ip-masq=false",
            # Else it turns on net.ipv4.ip_forward, and all that hangs on it.
            "--ip-forward=false",
        ]
        self._daemons["dockerd"] = self.host.start_server(
            argv, log=self.logs / "dockerd", marker=marker, undo_by=signal.SIGTERM
        )
        self._wait_for("dockerd", (own / "d").is_socket, deadline)
        self.ask(["version"], max(deadline - time.monotonic(), 0))  # it answers as soon as it can carry out commands

    def _bridge(self) -> str:
        """Where dockerd is told to have none it deletes docker0, be that another Docker's: then it is given its own."""
        if DOCKERS_BRIDGE not in bridges.interfaces():
            return "none"
        name = bridges.new_name()
        self._outside.append(self.host.expect_bridge(name))
        bridges.make(name)
        return name

    def _wait_for(self, name: str, is_there: Callable[[], bool], deadline: float) -> None:
        while not is_there():
            if self._daemons[name].wait(_LOOK_EVERY_S) is not None:
                raise RunError(f"{self.died()}")
            if time.monotonic() > deadline:
                raise RunError(f"{name} did not start within its limit")

    def died(self) -> str | None:
        """The one of its daemons that ended."""
        for name, daemon in self._daemons.items():
            if (status := daemon.wait(0)) is not None:
                how = f"by {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
                why = "" if status < 0 else f": {daemon.complaint()}"
                return f"{name}, the engine of containers, ended by itself {how}{why}"
        return None

    def processes(self) -> list[Process]:
        """Both daemons."""
        return list(self._daemons.values())

    def _own_words(self) -> list[str]:
        # The client's settings of the user's might lead it to another engine.
        return [self._client, f"--config={self.own}/client", f"--host=unix://{self.own}/d"]

    def _leaves(self, known_as: str) -> Path:
        """The socket of its shim, which removes it only where it ends in peace; containerd has no option for its place.

        It is named after the address of containerd, its client's name space, and the container.
        """
        told = f"{self.own}/c/moby/{known_as}"
        return Path("/run/containerd/s", hashlib.sha256(told.encode()).hexdigest())

    def _versions(self, limit: float) -> dict[str, str]:
        # Packages of others' bring one without the other: the client may be another version's.
        said = self.ask(["version", "--format", "{{.Server.Version}} {{.Client.Version}}"], limit)
        return dict(zip((self.kind, f"{self.kind} client"), said.split(), strict=True))

    def _end_processes(self, limit: float) -> None:
        daemons, self._daemons = self._daemons, {}
        try:
            if dockerd := daemons.get("dockerd"):
                self.host.end_server(dockerd, limit=limit)
            if containerd := daemons.get("containerd"):
                containerd.stop(limit)
            # What containerd starts for each container outlives it; the socket is an argument of each.
            leftovers.end_server(f"{self.own}/c", signal.SIGKILL.name)
        except UndoError as error:
            raise RunError(f"{self.kind} does not end: {error}") from error


class Podman(Engine):
    """No daemon: each command works on the folders itself, and each container has a monitor."""

    kind = "podman"
    package = "podman"
    program = "podman"
    makes = ("/run/runc", "/var/lib/containers", "/var/lib/containers/cache")
    writes = ("/var/lib/containers/cache/blob-info-cache-v1.boltdb",)

    def start(self, limit: float) -> None:
        """Nothing runs yet; what it is told with each command is written down."""
        own = self._make_own()
        # Locks in files: those in shared memory are shared with all that any other podman of the user's runs.
        (own / "containers.conf").write_text(
            '[containers]\nlog_driver = "none"\n[engine]\nlock_type = "file"\nevents_logger = "none"\n'
            f"[network]\nnetwork_config_dir = {_quoted(own / 'cni')}\n"
        )
        (own / "storage.conf").write_text(
            f'[storage]\ndriver = "overlay"\ngraphroot = {_quoted(self.root / "podman")}\n'
            f"runroot = {_quoted(own / 'run')}\n"
        )
        self.remove_all(limit)
        # Older versions have no such option; that their containers have more variables is then seen in the facts.
        if (option := "--unsetenv-all") in self.ask(["create", "--help"], limit):
            self._bare = (option,)

    def died(self) -> str | None:
        """There is nothing that could."""
        return None

    def _own_words(self) -> list[str]:
        return [
            "env",
            f"CONTAINERS_CONF={self.own}/containers.conf",
            f"CONTAINERS_STORAGE_CONF={self.own}/storage.conf",
            self._client,
            f"--root={self.root}/podman",
            f"--runroot={self.own}/run",
            f"--tmpdir={self.own}/tmp",
            "--storage-driver=overlay",
            # Else each command mounts its folder onto itself for a moment, and nothing can be renamed into it.
            "--storage-opt=overlay.skip_mount_home=true",
            "--cgroup-manager=cgroupfs",
            # Debian's other runtime, crun, refuses machines with control groups of both versions.
            f"--runtime={_needed('runc', 'runc')}",
        ]

    def _versions(self, limit: float) -> dict[str, str]:
        return {self.kind: self.ask(["version", "--format", "{{.Client.Version}}"], limit).strip()}


class Container:
    """A container, and the one server in it. `upper` is its writable layer on this machine."""

    def __init__(self, engine: Engine, name: str, upper: Path) -> None:
        self.engine = engine
        self.name = name
        self.upper = upper
        self.pid = 0
        self._client: Process | None = None
        self._server: int | None = None  # its pidfd
        self._status: int | None = None
        self._why_lost: str | None = None

    def start(self, log: Path, limit: float) -> None:
        """Start the server; its output goes to `log`.stdout and `log`.stderr. Raises RunError."""
        deadline = time.monotonic() + limit
        self._client = self.engine.client(["start", "--attach", self.name], log=log, marker=self.name)
        while self._server is None:
            ended = self._client.wait(_LOOK_EVERY_S)
            state, pid, code = self._state(max(deadline - time.monotonic(), 1.0))
            if state == "running" and pid > 0:
                with contextlib.suppress(ProcessLookupError):
                    self._server = os.pidfd_open(pid)
                    self.pid = pid
            elif state in _ENDED or ended is not None:
                status = _ended_by(code) if state in _ENDED else ended
                raise RunError(f"it ended with status {status} as it started: {self._client.complaint(3)}")
            if time.monotonic() > deadline:
                raise RunError(f"{self.engine.kind} did not start it within {limit:g} s")

    def wait(self, timeout: float) -> int | None:
        """Its exit status as soon as it ends, or None after `timeout` seconds; ENGINE_LOST where nobody can say."""
        if self._status is not None or self._client is None:
            return self._status
        if self.engine.died() is not None:
            return self._lost()
        watched = [self._client, *self.engine.processes()]
        readable, _, _ = select.select(watched, [], [], max(timeout, 0))
        if not readable:
            return None
        if self.engine.died() is not None:
            return self._lost()
        try:
            state, _, code = self._state(_KILL_LIMIT_S)
        except RunError:
            return self._lost()
        if state not in _ENDED:
            return self._lost()
        self._status = _ended_by(code)
        return self._status

    def ask_to_end(self, farewell: signal.Signals) -> signal.Signals:
        """Send it a signal; which one was sent in the end.

        The first process of a container is not ended by a signal that it has not provided for, as any other is: what
        would have ended it elsewhere is then done by SIGKILL.
        """
        if self._server is None:
            return farewell
        sent = farewell if _provides_for(self.pid, farewell) else signal.SIGKILL
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._server, sent)
        return sent

    def has_ended(self, timeout: float) -> bool:
        """Whether the server itself has, seen without the engine, at most `timeout` seconds later."""
        if self._server is None:
            return True
        readable, _, _ = select.select([self._server], [], [], max(timeout, 0))
        return bool(readable)

    def kill(self) -> None:
        """End the server at once, with or without the engine. Raises RunError where it does not end."""
        if self._server is None and self.engine.died() is None:
            # It may have been on its way; the engine refuses where it was not.
            with contextlib.suppress(RunError):
                self.engine.ask(["kill", self.name], _KILL_LIMIT_S)
        self.ask_to_end(signal.SIGKILL)
        if not self.has_ended(_KILL_LIMIT_S):
            raise RunError(f"the server in the container (process {self.pid}) does not end")

    def complaint(self, lines: int = 1, telling: str = "") -> str:
        """As `Process.complaint`; where the engine is gone, that before all else."""
        said = self._client.complaint(lines, telling) if self._client else ""
        if self._why_lost is None:
            return said
        return self._why_lost + (f" (the server's last words: {said})" if said else "")

    def put_down(self, limit: float) -> None:
        """After its server has ended: have its layers unmounted, by the engine while there is one."""
        merged = f"{self.upper.parent.resolve()}/merged"
        deadline = time.monotonic() + limit
        while self.engine.died() is None and leftovers.mounts_below(merged):
            self._state(limit)  # asked again and again: nothing tells when it has done so
            if time.monotonic() > deadline:
                break
        try:
            leftovers.unmount(merged)
        except UndoError as error:
            raise RunError(f"the layers of a container that has ended stay mounted: {error}") from error

    def release(self) -> None:
        """Its client and handles go. Nothing is heard of it any more."""
        if self._client is not None:
            with contextlib.suppress(UndoError):
                self.engine.host.end_server(self._client, limit=0.0)
        if self._server is not None:
            os.close(self._server)
            self._server = None

    def remove(self, limit: float) -> None:
        """Its layer goes with it. Raises RunError."""
        self.engine.remove(self.name, limit)

    def _lost(self) -> int:
        self._why_lost = self.engine.died() or f"{self.engine.kind} lost sight of it"
        self._status = ENGINE_LOST
        return ENGINE_LOST

    def _state(self, limit: float) -> tuple[str, int, int]:
        said = self.engine.ask(
            ["inspect", "--format", "{{.State.Status}} {{.State.Pid}} {{.State.ExitCode}}", self.name], limit
        )
        state, pid, code = said.split()
        return state, int(pid), int(code)


def _needed(name: str, package: str) -> Path:
    found = programs.find(name)
    if found is None:
        raise RunError(f"{name} not found: apt-get install {package}")
    return found


def _processes_limit() -> int:
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    return _MOST_PROCESSES if hard == resource.RLIM_INFINITY else min(hard, _MOST_PROCESSES)


def _quoted(path: Path) -> str:
    """As a string of TOML, whose escapes are JSON's."""
    return json.dumps(str(path), ensure_ascii=False)


def _fields(*fields: str) -> str:
    """As `--mount` reads them: a line of CSV, so that a path may have commas."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def _ended_by(code: int) -> int:
    """Engines tell of a signal as shells do: 128 and its number."""
    return 128 - code if code - 128 in set(signal.Signals) else code


def _provides_for(pid: int, sent: signal.Signals) -> bool:
    """Whether a process catches, blocks or ignores a signal."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return True  # it has ended
    masks = (int(line.split()[1], 16) for line in lines if line.startswith(("SigBlk:", "SigIgn:", "SigCgt:")))
    return any(mask >> (sent - 1) & 1 for mask in masks)


ENGINES: Mapping[str, type[Engine]] = {engine.kind: engine for engine in (Docker, Podman)}


def choose(kind: str | None) -> type[Engine]:
    """The engine of that name; where none is named, the first that is installed. Raises RunError."""
    if os.geteuid() != 0:
        raise RunError("a deployment in containers needs root: it starts an engine of its own")
    if kind is not None:
        return ENGINES[kind]
    for engine in ENGINES.values():
        if programs.find(engine.program) and (engine is not Docker or programs.find("dockerd")):
            return engine
    packages = " or ".join(engine.package for engine in ENGINES.values())
    raise RunError(f"there is no engine of containers: apt-get install {packages}")
