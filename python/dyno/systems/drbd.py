"""DRBD between two virtual machines: the real thing, by the module of the distribution's kernel.

MySQL runs in one machine, the same files that a native node has, on an ext4 file system on the replicated device. Which
machine that is Pacemaker decides, or a script that takes over from a silent peer; clients come by a virtual address.
Where the hardware does not accelerate machines, software emulates their CPUs, and every run says so: its times stand
beside none but their like. `docs/drbd.md` says what is real and what is not.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shlex
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from dyno import sql
from dyno.deployments.base import ENVIRONMENT, Running
from dyno.hosts import accounts, vm_image, vms
from dyno.hosts.images import Contents
from dyno.hosts.leftovers import UndoError
from dyno.hosts.networks import CLIENT
from dyno.hosts.process import Process
from dyno.hosts.vms import Disk, Spec, Vm
from dyno.model.base import InvalidRun, RunError, Scalar
from dyno.model.endpoint import Endpoint
from dyno.model.faults import FaultKind, Struck
from dyno.model.study import Machine
from dyno.model.units import Duration, Size
from dyno.systems import drbd_resource as words
from dyno.systems.base import Place
from dyno.systems.cluster import SLOW_DELAY_S, SLOW_RATE, NodeState, Role, facts_of_nodes
from dyno.systems.disk_cluster import FOLDER, NAMES, DiskCluster, DiskClusterOptions, DiskServer, other_of
from dyno.systems.members import PORT, SLOW_DISK
from dyno.systems.server import WHO

_MIB = 2**20
_FOR_DYNO = 3307
"""The port by which dyno itself reaches a server's socket."""
_LOOK_EVERY_S = 0.02
_ASK_S = 20.0
_STEP_S = 60.0
_MODE: Final = 0o755
_SLOW_DISK: Final = {"iops": SLOW_DISK["writes"], "bps_wr": SLOW_DISK["write_bytes"]}
"""A second, of a node whose disk is made slow, in QEMU's words."""


class DrbdOptions(DiskClusterOptions):
    """Of DRBD and its machines; what is not given is as DRBD has it, and is recorded."""

    node_memory: Annotated[Size, Field(ge=384 * _MIB, description="of each machine, in whole MiB")] = 768 * _MIB
    protocol: Annotated[
        Literal["A", "B", "C"],
        Field(
            description="when a write is done: on the disk here and handed over to be sent (A), received by the other "
            "node (B), or on its disk (C)"
        ),
    ] = "C"
    max_buffers: Annotated[int | None, Field(ge=32, le=131072, description="pages for what the other node writes")] = (
        None
    )
    max_epoch_size: Annotated[int | None, Field(ge=1, le=20000, description="writes between two barriers")] = None
    sndbuf_size: Annotated[Size | None, Field(ge=0, le=10 * _MIB, description="of TCP; 0: as the kernel sees fit")] = (
        None
    )
    unplug_watermark: Annotated[int | None, Field(ge=1, le=131072, description="without effect; see `notes`")] = None
    al_extents: Annotated[int | None, Field(ge=67, le=65534, description="areas of 4 MiB that may be hot")] = None
    disk_barrier: Annotated[bool | None, Field(description="without effect; see `notes`")] = None
    disk_flushes: Annotated[
        bool | None,
        Field(description="whether the disk below flushes what its cache holds; without it that may be lost"),
    ] = None
    delay: Annotated[
        Duration | None, Field(ge=0, le=10, description="of all that the nodes send each other, each way")
    ] = None
    promotion: Annotated[
        Literal["pacemaker", "agent"],
        Field(description="who has a node take over: Pacemaker, or a script that pings the other node"),
    ] = "pacemaker"
    silent_for: Annotated[
        Duration, Field(ge=1, le=60, description="how long a node has to be silent before the other takes over")
    ] = 3.0
    acceleration: Annotated[
        Literal["auto", "kvm", "tcg"],
        Field(description="of the machines' CPUs: by hardware (kvm), by software (tcg), or whichever works here"),
    ] = "auto"

    @property
    def of_drbd(self) -> dict[str, Scalar]:
        """What DRBD is asked for, by its own names."""
        given = {name: getattr(self, name.replace("-", "_"), None) for name in (*words.NET, *words.DISK)}
        return {name: value for name, value in given.items() if value is not None}


class _Machine(Running):
    """A virtual machine as what runs."""

    def __init__(self, vm: Vm, pid: int) -> None:
        self._vm = vm
        self.pid = pid

    def wait(self, timeout: float) -> int | None:
        """That of QEMU's process."""
        return self._vm.wait(timeout)

    def complaint(self, lines: int = 1, telling: str = "") -> str:
        """What the machine last wrote to its console."""
        return self._vm.last_words()


class DrbdSystem(DiskCluster[DrbdOptions]):
    """Two machines, of which one has the server."""

    kind = "drbd"
    Options = DrbdOptions
    forms_in_s = 90.0
    rejoins_in_s = 44.0

    def __init__(self, options: DrbdOptions, place: Place) -> None:
        super().__init__(options, place)
        self._vms: dict[str, Vm] = {}
        self._folder: Path | None = None
        self._accelerated: vms.Acceleration | None = None
        self._image: vm_image.VmImage | None = None
        self._relays: dict[str, Process] = {}
        self._endpoint: Endpoint | None = None
        self._at_ready: words.Replication | None = None

    def taken_of_disk(self) -> int:
        """DRBD's own data, at its end."""
        return words.metadata_bytes(self.options.node_disk)

    # Provisioning

    def provision(self, limit: float) -> dict[str, str]:
        """The image, QEMU, the server's programs, and whether the hardware accelerates."""
        if os.geteuid() != 0:
            raise RunError("a cluster needs root: each of its nodes has a network and a control group of its own")
        for program, package in (("socat", "socat"), ("ip", "iproute2"), ("mke2fs", "e2fsprogs")):
            vms.need(program, package)
        image = self._open_image()
        versions = self.provision_server(limit)
        versions["qemu"] = vms.qemu_version(self.place.host, self.place.logs)
        versions["image of machines"] = image.checksum[:16]
        self._find_acceleration()
        return {**versions, **image.versions}

    def _open_image(self) -> vm_image.VmImage:
        if self._image is None:
            self._image = vm_image.open_image(vm_image.DrbdVm().path())
        return self._image

    def _find_acceleration(self) -> vms.Acceleration:
        if self._accelerated is None:
            wanted = self.options.acceleration
            if wanted == "tcg":
                self._accelerated = vms.Acceleration("tcg", "the study asks for emulation")
            else:
                shared = self.place.shared or self.place.data.parent
                found = vms.acceleration(self.place.host, self._open_image(), shared, self.place.logs)
                if wanted == "kvm" and found.kind != "kvm":
                    raise RunError(f"acceleration: kvm cannot be had here: {found.why_not_kvm}")
                self._accelerated = found
        return self._accelerated

    # What machines are told

    @property
    def virtual(self) -> str:
        """The address that clients come by."""
        return self.network.virtual(0)

    def _addresses(self) -> dict[str, str]:
        return {name: self.network.address(name) for name in NAMES}

    def _server_image(self, limit: float) -> Path:
        """A file system with the server and all that it loads, made once for all runs."""
        host, shared = self.place.host, self.place.shared or self.place.data.parent
        recipe = self._of_machine().recipe()
        contents = Contents(recipe.programs, recipe.files, recipe.account)
        image = shared / f"server-{contents.checksum[:16]}.img"
        if image.exists():
            return image
        log = self.place.logs / "server-image"
        making = host.temporary_folder(shared / f"{image.stem}-{secrets.token_hex(4)}")
        try:
            archive, tree = making / "files.tar", making / "tree"
            tree.mkdir()
            contents.write(archive)
            host.run(["tar", "-x", "-f", str(archive), "-C", str(tree)], limit=limit, log=log)
            for name in ("dev", "proc", "run", "tmp", "srv/db"):
                (tree / name).mkdir(parents=True, exist_ok=True)
            size = (archive.stat().st_size * 5 // 4 + 32 * _MIB) // 4096 * 4096
            vm_image.tree_image(host, tree, making / "image", size, journal=False, limit=limit, log=log)
            (making / "image").rename(image)
        finally:
            host.remove_temporary_folder(making)
        return image

    def _of_machine(self) -> DiskServer:
        """The server as it is within a machine, below a root of its own."""
        by_itself = self.server(Path("/srv/db") / FOLDER)
        return DiskServer(by_itself.options, by_itself.place)

    def _server_script(self) -> str:
        """What starts it there."""
        account = accounts.for_server("mysql")
        assert account is not None, "dyno is root here"
        who = f"{account.uid}:{account.gid}"
        command = self._of_machine().command(Path("/run"), None)
        environment = [f"{name}={value}" for name, value in ENVIRONMENT.items()]
        start = [
            "env",
            "-i",
            *environment,
            "chroot",
            f"--userspec=+{account.uid}:+{account.gid}",
            "--groups=",
            "/server",
        ]
        return (
            f"#!/bin/bash\nulimit -n 65536\nchown {who} {words.DATA}/{FOLDER}\nexec {shlex.join([*start, *command])}\n"
        )

    # The life

    def start(self, run: int, limit: float) -> None:
        """One server by itself where it is loaded, else both machines."""
        if run == 0:
            self.start_alone(run, limit)
            return
        if not all(self.disk(name).exists() for name in NAMES):
            raise RunError("there are no disks to start on")
        host = self.place.host
        self._struck.clear()
        self._clean, self._asked, self._endpoint = False, None, None
        accelerated, image, server = self._find_acceleration(), self._open_image(), self._server_image(limit)
        self._folder = host.temporary_folder(Path(tempfile.gettempdir()) / f"dyno-{secrets.token_hex(4)}")
        try:
            self._network = host.networks.make([*NAMES, _OWN_PLACE])
            for number, name in enumerate(NAMES, 1):
                vms.plug_in(host, self._network, name, self.place.logs / f"{name}-network")
                spec = Spec(
                    name=name,
                    address=self._network.address(name),
                    hardware=f"52:54:00:64:79:{number:02x}",
                    disks=(Disk(image.root, fresh=True), Disk(self.disk(name)), Disk(server, read_only=True)),
                    memory=self.options.node_memory,
                )
                self._vms[name] = Vm(
                    host,
                    image,
                    spec,
                    accelerated,
                    network=self._network,
                    confinement=host.confine_node(
                        name, Machine(cpus=self.options.node_cpus), self.deployment.site.confinement
                    ),
                    folder=self._folder,
                    logs=self.place.logs,
                )
                self._vms[name].start()
        except BaseException:
            with suppress(RunError):
                self.stop(limit)
            raise

    def ready(self, limit: float) -> Endpoint:
        """Have the disks replicated, one node promoted and its server answer; see that all is as it was asked for."""
        if self._lone is not None:
            return self._lone.ready(limit)
        if self._network is None:
            raise RunError("drbd was not started")
        if self._endpoint is not None:
            return self._endpoint
        deadline = time.monotonic() + limit
        both = list(self._vms.values())
        for vm in both:
            self._configure(vm, deadline)
        create = f"drbdadm -- --force create-md {words.RESOURCE} && drbdadm up {words.RESOURCE}"
        vms.together(both, create, _left(deadline))
        vms.together(both, _until("grep -q cs:Connected /proc/drbd"), _left(deadline))
        first = self._vms[NAMES[0]]
        # The disks are alike already, in every byte: nothing has to be copied.
        first.agent.ask(f"drbdadm new-current-uuid --clear-bitmap {words.RESOURCE}", _left(deadline))
        vms.together(both, _until("grep -q ds:UpToDate/UpToDate /proc/drbd"), _left(deadline))
        self._delay()
        self._promote(first, deadline)
        for name in NAMES:
            self._relay(name, deadline)
        self._attest(deadline)
        self._sent_before = self.sent_bytes() or 0
        self._endpoint = Endpoint(
            backend=self.backend,
            settings={"host": self.virtual, "port": PORT, **WHO},
            processes=self._pids(),
            namespace=str(self.network.path(CLIENT)),
        )
        return self._endpoint

    def _configure(self, vm: Vm, deadline: float) -> None:
        """What a machine that has just started has to know."""
        addresses = self._addresses()
        vm.agent.ask("true", _left(deadline))
        hosts = "127.0.0.1 localhost\n" + "".join(f"{address} {name}\n" for name, address in addresses.items())
        files = {
            "/etc/hosts": hosts,
            "/etc/drbd.conf": words.resource(addresses, self.options.of_drbd, self.options.silent_for),
            "/etc/corosync/corosync.conf": words.corosync(addresses, self.options.silent_for),
        }
        for path, text in files.items():
            vm.agent.write(path, text, _left(deadline))
        vm.agent.write("/run/dyno/server", self._server_script(), _left(deadline), mode=f"{_MODE:o}")
        relay = f"TCP-LISTEN:{_FOR_DYNO},fork,reuseaddr UNIX-CONNECT:/server/run/s"
        vm.agent.ask(f"setsid socat {relay} </dev/null >/dev/null 2>&1 3>&- &", _left(deadline))

    def _delay(self) -> None:
        if self.options.delay:
            for name, vm in self._vms.items():
                peer = self.network.address(other_of(name))
                vm.agent.ask(words.delayed(self.options.delay, peer), _STEP_S)

    def _promote(self, first: Vm, deadline: float) -> None:
        """Have whoever promotes begin, and wait until the server answers at the virtual address."""
        if self.options.promotion == "pacemaker":
            # Before its daemons start: no command has to get through to them while they choose who leads, and how long
            # they take for that is already as it is set there.
            for vm in self._vms.values():
                vm.agent.write(_CIB, words.cluster(NAMES[0], self.virtual), _left(deadline))
        for vm in self._vms.values():
            self._begin_promotion(vm, deadline, first=vm is first)
        serving = f"ip -4 address show dev eth0 | grep -qF '{self.virtual}/' && /usr/lib/dyno/server monitor"
        try:
            # Pacemaker would start a server that cannot run for ever.
            first.agent.ask(
                f"until {{ {serving}; }}; do [ ! -e {_FAILED} ] || exit 1; sleep 0.2; done", _left(deadline)
            )
        except RunError as error:
            raise RunError(f"no server answers on {first.spec.name}: {self._why_not(first)}") from error

    def _begin_promotion(self, vm: Vm, deadline: float, *, first: bool = False) -> None:
        if self.options.promotion == "pacemaker":
            vm.agent.ask(
                # They take no file that they may not write.
                "chown -R hacluster:haclient /var/lib/pacemaker && "
                f"corosync && {_until('corosync-quorumtool -s >/dev/null')} && "
                # Agents would start a program for each line that they log for nobody.
                "{ PCMK_logfacility=none setsid pacemakerd </dev/null >/var/log/pacemakerd.log 2>&1 3>&- & }",
                _left(deadline),
            )
        elif first:
            vm.agent.ask(f"/usr/lib/dyno/takeover now {self.virtual}", _left(deadline))
        else:
            peer = self.network.address(other_of(vm.spec.name))
            watch = f"/usr/lib/dyno/takeover watch {self.options.silent_for:g} {peer} {self.virtual}"
            vm.agent.ask(f"setsid {watch} </dev/null >/var/log/takeover.log 2>&1 3>&- &", _left(deadline))

    def _why_not(self, vm: Vm) -> str:
        """What the machine says of itself, of a server that does not come up."""
        asked = (
            "cat /proc/drbd | tail -n +3; crm_mon --one-shot --inactive 2>/dev/null | tail -n 25; "
            "tail -n 5 /var/log/server.log 2>/dev/null; "
            "grep -E 'error|warning' /var/log/pacemaker/pacemaker.log 2>/dev/null | tail -n 10"
        )
        try:
            _, said = vm.agent.try_(asked, _ASK_S * 4)
        except RunError as error:
            return str(error)
        (self.place.logs / f"{vm.spec.name}.said").write_text(said)
        return " / ".join(line.strip() for line in said.splitlines() if line.strip())[-2000:]

    def _relay(self, name: str, deadline: float) -> None:
        """A socket on this machine that leads to the server's socket in that one, by the network of the nodes."""
        assert self._folder is not None
        listen = f"UNIX-LISTEN:{self._folder / name}.sql,fork"
        to = f"TCP:{self.network.address(name)}:{_FOR_DYNO},connect-timeout=3"
        argv = [*self.network.words(_OWN_PLACE), "socat", listen, to]
        relay = self.place.host.start_server(argv, log=self.place.logs / f"{name}-relay", marker=listen)
        self._relays[name] = relay
        while not (self._folder / f"{name}.sql").exists():
            if relay.wait(_LOOK_EVERY_S) is not None or time.monotonic() > deadline:
                raise RunError(f"the way to the server of {name} does not open: {relay.complaint()}")

    def _attest(self, deadline: float) -> None:
        for name, vm in self._vms.items():
            said = vm.agent.ask(f"drbdsetup show {words.RESOURCE} --show-defaults", _left(deadline))
            now = words.replication(vm.agent.ask("cat /proc/drbd", _left(deadline)))
            effective = words.effective(said) | {"protocol": now.protocol, "write-ordering": now.ordering}
            asked = {**self.options.of_drbd, "write-ordering": _ordering(self.options)}
            told = {f"drbd.{key}": effective[key] for key in _TELLING if key in effective}
            wanted = {f"drbd.{key}": value for key, value in asked.items()}
            if name != NAMES[0]:
                if unlike := [key for key, value in wanted.items() if told.get(key) != value]:
                    key = unlike[0]
                    raise InvalidRun(f"{key} is {told.get(key)} on {name}, the study asks for {wanted[key]}")
                continue
            self._at_ready = now
            self.attest(told, wanted, _left(deadline))

    def stop(self, limit: float) -> None:
        """End the server cleanly, wait until both disks hold the same, and switch the machines off.

        Raises RunError where the server had ended though nobody struck it.
        """
        if self._lone is not None:
            lone, self._lone = self._lone, None
            lone.stop(limit)
            return
        if self._network is None:
            return
        deadline, wrong = time.monotonic() + limit, ""
        try:
            was_struck, was_ready = bool(self._struck), self._endpoint is not None
            for each in list(self._struck):
                with suppress(RunError):
                    self._undo(each)
            if was_ready and not self._given_up:
                wrong = self._end_cleanly(deadline)
            if wrong and was_struck:
                wrong = ""
        except RunError as error:
            wrong = str(error)
        finally:
            self._let_go()
        if wrong:
            raise RunError(wrong)

    def _end_cleanly(self, deadline: float) -> str:
        """What was wrong; empty where nothing was."""
        able = [vm for vm in self._vms.values() if vm.pid is not None and not vm.frozen]
        primary = self.primary()
        for vm in able:
            # Their daemons first, so that nobody brings back what is ended now; nothing of theirs is kept.
            vm.agent.try_(f"killall -q -9 {_DAEMONS}; pkill -9 -f 'takeover watch'; true", _left(deadline))
        if primary is None:
            return f"no node has a server that answers: {self._why_not(able[0]) if able else 'no machine runs'}"
        vm, self._last = self._vms[primary], primary
        vm.agent.ask(f"/usr/lib/dyno/takeover leave {self.virtual}", _left(deadline))
        if len(able) == len(NAMES):
            vms.together(able, _until("grep -q 'cs:Connected .* ds:UpToDate/UpToDate' /proc/drbd"), _left(deadline))
        for each in able:
            each.agent.ask(f"drbdadm down {words.RESOURCE}", _left(deadline))
        for each in able:
            each.power_off(_left(deadline))
        self._clean = True
        return ""

    def _let_go(self) -> None:
        host = self.place.host
        self._struck.clear()
        relays, self._relays = dict(self._relays), {}
        machines, self._vms = dict(self._vms), {}
        network, self._network = self._network, None
        folder, self._folder = self._folder, None
        self._endpoint = None
        stuck = []
        for process in relays.values():
            try:
                host.end_server(process, limit=0.0)
            except UndoError as error:
                stuck.append(str(error))
        for vm in machines.values():
            try:
                vm.kill()
            except RunError as error:
                stuck.append(str(error))
        if network is not None:
            network.destroy()
        if folder is not None:
            try:
                host.remove_temporary_folder(folder)
            except UndoError as error:
                stuck.append(str(error))
        if stuck:
            raise RunError("; ".join(stuck))

    # What it says of itself

    @property
    def running(self) -> Running | None:
        """The first machine that runs, or the server that is loaded."""
        if self._lone is not None:
            return self._lone.running
        for vm in self._vms.values():
            if (pid := vm.pid) is not None:
                return _Machine(vm, pid)
        return None

    def _pids(self) -> dict[str, int]:
        return {name: pid for name, vm in self._vms.items() if (pid := vm.pid) is not None}

    def way_of_dyno(self) -> Endpoint:
        """By the relay to the node whose server runs."""
        primary = self.primary()
        if primary is None or self._folder is None:
            raise RunError("no node has a server that answers")
        return Endpoint(backend=self.backend, settings={"socket": f"{self._folder / primary}.sql", **WHO})

    def primary(self) -> str | None:
        """By what the nodes say of themselves; of two, since nobody fences, the one that is not cut off."""
        if self._network is None:
            return None
        struck = {name for each in self._struck for name in each.nodes}
        found = [node.name for node in self.nodes() if node.role == "primary"]
        return min(found, key=lambda name: name in struck, default=None)

    def facts(self) -> dict[str, Scalar]:
        """What kind of machine it is, and of the server what a native one tells by its process."""
        accelerated = self._find_acceleration()
        program = Path(self._of_machine().words("mysqld")[0])
        with program.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        return {
            **facts_of_nodes(self.options),
            "nodes.serving": 1,  # the other one waits to take over
            "machine": "virtual",
            "emulated": accelerated.emulated,
            "acceleration": accelerated.kind,
            "promotion": self.options.promotion,
            "program.sha256": checksum,
        }

    def cached(self, cold: bool) -> dict[str, Any]:
        """Of the server alone."""
        if cold:
            raise InvalidRun("caches are not known to be cold: what this machine keeps of the disks of others is not")
        return {}

    def data_files(self) -> list[Path]:
        """None: what is in the page cache of this machine is not in that of the server's."""
        return [] if self._network is not None else super().data_files()

    def status(self) -> dict[str, float]:
        """What the server counted, where it is the one that was there at first; what DRBD did, and what all cost."""
        if self._network is None:
            return {} if self._lone is None else self._lone.status()
        figures = self.server_counters()
        for name, now in self._views().items():
            if now is not None:
                for counter, called in words.COUNTERS.items():
                    figures[f"drbd.{name}.{called}"] = float(now.counters.get(counter, 0))
        return {**figures, **self.costs(self.options.nodes)}

    def notes(self) -> tuple[str, ...]:
        """What is without effect, what is not kept, and what kind of machine it is."""
        return tuple(self._notes())

    def _notes(self) -> Iterator[str]:
        options = self.options
        accelerated = self._find_acceleration()
        if accelerated.emulated:
            yield (
                f"The CPUs of DRBD's machines are emulated by software ({accelerated.why_not_kvm}): no time that was "
                "measured says how fast they are."
            )
        for name, why in words.DEAD.items():
            if name in options.of_drbd:
                yield f"{name.replace('-', '_')} of DRBD can change nothing here, so that its levels are one: {why}."
        if options.sndbuf_size == 0:
            yield "sndbuf_size: 0 is what DRBD has by default: it changes nothing."
        if options.disk_flushes is False:
            yield (
                "disk_flushes: false gives up durability: DRBD does not have the disks below write back their caches, "
                "so that what was acknowledged may be lost where both nodes lose power. Whoever flushes keeps more."
            )
        if options.protocol != "C":
            yield f"Protocol {options.protocol}: a write is acknowledged before it is on the other node's disk."
        yield (
            "No device fences DRBD's nodes: one that was given up while it lived is killed and started anew when the "
            "fault is mended, and loses what it alone has written since."
        )

    # Nodes and faults

    def _view(self, name: str) -> words.Replication | None:
        """What a node says of its disk; None where it does not answer."""
        vm = self._vms[name]
        if vm.pid is None or vm.frozen:
            return None
        try:
            return words.replication(vm.agent.ask("cat /proc/drbd", _ASK_S))
        except RunError:
            return None

    def _views(self) -> dict[str, words.Replication | None]:
        return {name: self._view(name) for name in NAMES}

    def nodes(self) -> tuple[NodeState, ...]:
        """Roles as DRBD has them; primary is who also has a server that runs."""
        return tuple(self._node(name) for name in NAMES)

    def _node(self, name: str) -> NodeState:
        vm, address = self._vms[name], self.network.address(name)
        if (pid := vm.pid) is None:
            return NodeState(name, address, None, "none", "switched off")
        if vm.frozen:
            return NodeState(name, address, pid, "none", "stopped")
        try:
            said = vm.agent.ask("cat /proc/drbd; /usr/lib/dyno/server monitor && echo it serves; true", _ASK_S)
            now = words.replication(said)
        except RunError as error:
            return NodeState(name, address, pid, "none", f"does not tell: {error}")
        serves = said.endswith("it serves")
        role: Role = "primary" if now.role == "Primary" and serves else "none"
        if now.role == "Secondary":
            role = "secondary"
        return NodeState(name, address, pid, role, str(now))

    def whole(self) -> bool:
        """Both disks hold the same, one node is the primary, and its server answers."""
        if self._network is None or any(vm.pid is None or vm.frozen for vm in self._vms.values()):
            return False
        if sorted(state.role for state in self.nodes()) != ["primary", "secondary"]:
            return False
        if not all(view is not None and view.in_step for view in self._views().values()):
            return False
        # By the socket of the server, which then knows the account, so that it may come by TCP without a key too.
        with suppress(RunError), sql.connect(self.way_of_dyno(), limit=_ASK_S) as connection:
            return bool(connection.rows("SELECT 1"))
        return False

    def carry_out(self, kind: FaultKind, node: str) -> None:
        """Of the machine, or within it."""
        vm = self._vms[node]
        match kind:
            case "kill":
                vm.kill()
            case "freeze":
                vm.freeze()
            case "shutdown":
                leave = _LEAVE[self.options.promotion].format(virtual=self.virtual)
                vm.agent.ask(f"setsid bash -c {shlex.quote(leave)} </dev/null >/dev/null 2>&1 3>&- &", _ASK_S)
            case "cut":
                self.network.cut(node)
            case "cut-client":
                vm.agent.ask(words.deaf_and_dumb(self.network.address(CLIENT)), _ASK_S)
            case "cut-one-way":
                vm.agent.ask(words.dumb(), _ASK_S)
            case "slow-network":
                vm.agent.ask(words.slowed(SLOW_DELAY_S, round(SLOW_RATE)), _ASK_S)
            case "disk-full":
                vm.agent.ask(_FILL, _STEP_S)
            case "slow-disk":
                self._throttle(vm, _SLOW_DISK)

    def carry_back(self, struck: Struck, limit: float) -> None:
        """Fence a node that was given up while it lived; take the fault back; start again what has ended."""
        deadline = time.monotonic() + limit
        (name,) = struck.nodes
        vm = self._vms[name]
        if struck.kind == "shutdown" and vm.wait(limit) is None:
            raise RunError(f"{name} did not end within {limit:g} s")
        given_up = struck.kind not in ("kill", "shutdown") and self._is_given_up(name)
        if given_up or vm.pid is None:
            vm.kill()
        self._undo(struck)
        if vm.pid is None:
            self._join(vm, deadline)
        elif (view := self._view(name)) is not None and view.role == "Primary":
            # Where it ended by itself, as where its disk is full.
            again = f"/usr/lib/dyno/takeover now {self.virtual}"
            vm.agent.ask("crm_resource --cleanup" if self.options.promotion == "pacemaker" else again, _left(deadline))

    def give_up(self) -> None:
        """Both machines: whoever asks in one is then answered that it hung up."""
        self._given_up = True
        for vm in self._vms.values():
            vm.end_at_once()

    def _is_given_up(self, name: str) -> bool:
        """Whether both have become primary, or the other has while this one cannot be asked."""
        other, this = self._view(other_of(name)), self._view(name)
        return other is not None and other.role == "Primary" and (this is None or this.role == "Primary")

    def _undo(self, struck: Struck) -> None:
        (name,) = struck.nodes
        vm = self._vms[name]
        self.taken_back(struck)
        if struck.kind == "cut":
            self.network.heal()
        if vm.pid is None:
            return  # all else was within the machine, and went with it
        match struck.kind:
            case "freeze":
                vm.thaw()
            case "cut-client" | "cut-one-way":
                vm.agent.ask(words.healed(), _ASK_S)
            case "slow-network":
                vm.agent.ask(words.delayed(0.0, ""), _ASK_S)
                self._delay()
            case "disk-full":
                vm.agent.ask(f"rm -f {_BALLAST}", _STEP_S)
            case "slow-disk":
                self._throttle(vm, {"iops": 0, "bps_wr": 0})
            case _:
                pass

    def _join(self, vm: Vm, deadline: float) -> None:
        """Start a machine on the disk that it has, and have it be the secondary of the other."""
        vm.start()
        self._configure(vm, deadline)
        vm.agent.ask(f"drbdadm up {words.RESOURCE}", _left(deadline))
        connected = r"grep -qE 'cs:(Connected|Sync|Paused|Verify)\w*' /proc/drbd"
        vm.agent.ask(_until(connected), _left(deadline))
        if self.options.delay:
            self._delay()
        self._begin_promotion(vm, deadline)
        if self.options.promotion == "pacemaker":
            # The disk was in step before Pacemaker looked at it, and one that it does not know it does not promote.
            known = rf"crm_mon --one-shot | grep -q 'Unpromoted: .* {vm.spec.name} '"
            vm.agent.ask(f"until {known}; do sleep 1; done", _left(deadline))

    def _throttle(self, vm: Vm, limits: Mapping[str, int]) -> None:
        """Of the replicated disk; 0 is none."""
        all_of_them = dict.fromkeys(("bps", "bps_rd", "bps_wr", "iops", "iops_rd", "iops_wr"), 0)
        vm.monitor.ask("block_set_io_throttle", device="d1", **{**all_of_them, **limits})


_OWN_PLACE: Final = "dyno"
"""In the nodes' network: dyno still sees a server that is cut off from clients."""
_TELLING: Final = (*words.NET, *words.DISK, "write-ordering", "fencing", "ko-count", "timeout", "ping-timeout")
_DAEMONS: Final = (
    "pacemakerd pacemaker-based pacemaker-fenced pacemaker-execd pacemaker-attrd pacemaker-schedulerd "
    "pacemaker-controld corosync"
)
_CIB: Final = "/var/lib/pacemaker/cib/cib.xml"
"""What Pacemaker's daemons read when they start, and keep."""
_FAILED: Final = "/run/dyno/server.failed"
_BALLAST: Final = f"{words.DATA}/ballast"
_FILL: Final = (
    f"free=$(df --output=avail -B4096 {words.DATA} | tail -n 1); fallocate -l $((free * 4096)) {_BALLAST}; "
    f"dd if=/dev/zero of={_BALLAST} oflag=append conv=notrunc bs=4096 2>/dev/null; "
    f"[ $(df --output=avail -B4096 {words.DATA} | tail -n 1) -eq 0 ]"
)
_LEAVE: Final = {
    "pacemaker": "kill -TERM $(pidof pacemakerd); while pidof pacemakerd; do sleep 0.2; done; sync; "
    "echo o >/proc/sysrq-trigger",
    "agent": "/usr/lib/dyno/takeover leave {virtual}; drbdadm down r0; sync; echo o >/proc/sysrq-trigger",
}


def _until(holds: str) -> str:
    """A command that waits until another one succeeds; its limit is that of whoever asks."""
    return f"until {holds}; do sleep 0.1; done"


def _left(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.1)


def _ordering(options: DrbdOptions) -> str:
    """How writes are kept in order with these options: what tells that disk_flushes is in force."""
    return "drain" if options.disk_flushes is False else "flush"
