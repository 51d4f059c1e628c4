"""Virtual machines of QEMU: started, asked, killed, as nodes of a network of ours.

Each takes the place of a node in a `Network`: its interface is on the switch, with the node's own address, and QEMU
runs in the node's namespace. It is asked through a port of its own and not by the network, so that a node whose network
is cut can still be asked. Hardware acceleration is tried with the very kernel that is to run, and where it does not
work, software emulates the CPU: `Acceleration` says which, and runs record it.

Whatever a machine changes on this one goes with its process, which is in the undo journal as a server.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from dyno.hosts import programs
from dyno.hosts.confinement import Confinement
from dyno.hosts.leftovers import UndoError
from dyno.hosts.local import LocalHost
from dyno.hosts.networks import Network
from dyno.hosts.process import Process
from dyno.hosts.qmp import Monitor
from dyno.hosts.vm_image import VmImage
from dyno.model.base import RunError

QEMU = "qemu-system-x86_64"
PACKAGES = "qemu-system-x86"
"""What has it, in Debian."""

_KVM = Path("/dev/kvm")
_PVM = Path("/sys/module/kvm_pvm")
_KNOWN = "acceleration.json"
_PROBE_LIMIT_S = 20.0
_PROBED = b"dyno: the machine runs"
_LAST_WORDS = 3
_POWER_OFF = "sync; echo o >/proc/sysrq-trigger"
_NO_FRILLS = "mitigations=off nokaslr audit=0 random.trust_cpu=on quiet panic=-1"
_CHUNK = 65536
_LOOK_EVERY_S = 0.02


@dataclass(frozen=True)
class Acceleration:
    """How the CPUs of machines are had here, and why not by the hardware."""

    kind: Literal["kvm", "tcg"]
    why_not_kvm: str = ""

    @property
    def emulated(self) -> bool:
        """Whether software does each instruction."""
        return self.kind == "tcg"

    @property
    def words(self) -> tuple[str, ...]:
        """For QEMU."""
        # All CPUs of a machine in one thread: its quota of CPU time is then that of one CPU, as of a real one.
        return ("-accel", "kvm", "-cpu", "host") if self.kind == "kvm" else (
            "-accel", "tcg,thread=single,tb-size=256", "-cpu", "max",
        )  # fmt: skip


@dataclass(frozen=True)
class Disk:
    """One that a machine sees, in order /dev/vda, /dev/vdb ...

    `fresh`: all that is written to it is forgotten with the machine, and the file is never changed.
    """

    file: Path
    fresh: bool = False
    read_only: bool = False


@dataclass(frozen=True)
class Spec:
    """What a machine is. `memory` is in bytes; `hardware` is the address of its interface, and that of no other."""

    name: str
    address: str
    hardware: str
    disks: tuple[Disk, ...]
    memory: int
    cpus: int = 1


def acceleration(host: LocalHost, image: VmImage, folder: Path, logs: Path) -> Acceleration:
    """Whether the hardware accelerates a machine with this kernel: found out once a boot of this one, and kept.

    `folder` is for a moment's use. Raises RunError where there is no QEMU.
    """
    version = qemu_version(host, logs)
    if (known := known_acceleration(image.folder, version)) is not None:
        return known
    found = _probed(host, image, folder, logs)
    told = {"boot": _boot(), "qemu": version, "kind": found.kind, "why_not_kvm": found.why_not_kvm}
    with contextlib.suppress(OSError):  # another user's image: it is found out again
        (image.folder / _KNOWN).write_text(json.dumps(told) + "\n")
    return found


def known_acceleration(folder: Path, version: str | None = None) -> Acceleration | None:
    """What was found out with an image since this machine started, by that QEMU; None where nothing was."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        told = json.loads((folder / _KNOWN).read_text())
        if told["boot"] == _boot() and version in (None, told["qemu"]):
            return Acceleration(told["kind"], told["why_not_kvm"])
    return None


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def qemu_version(host: LocalHost, logs: Path) -> str:
    """Raises RunError where there is no QEMU."""
    said = host.run([str(_qemu()), "--version"], limit=30.0, log=logs / "qemu-version")
    found = re.search(r"version (\S+)", said)
    return found[1] if found else said.strip()


def _qemu() -> Path:
    found = programs.find(QEMU)
    if found is None:
        raise RunError(f"{QEMU} is missing: install Debian's {PACKAGES}")
    return found


def _probed(host: LocalHost, image: VmImage, folder: Path, logs: Path) -> Acceleration:
    if not _KVM.exists():
        return Acceleration("tcg", f"there is no {_KVM}")
    if not os.access(_KVM, os.R_OK | os.W_OK):
        return Acceleration("tcg", f"{_KVM} may not be opened")
    console = folder / "probe.console"
    console.unlink(missing_ok=True)
    marker = f"dyno-probe-{console.parent.name}"
    words = [
        str(_qemu()), "-name", marker, *Acceleration("kvm").words, *_MACHINE, "-m", "512",
        "-serial", f"file:{console}", "-kernel", str(image.kernel), "-initrd", str(image.initrd),
        "-append", f"console=ttyS0 {_NO_FRILLS} dyno.probe",
    ]  # fmt: skip
    log = logs / "qemu-probe"
    process = host.start_server(words, log=log, marker=marker)
    deadline = time.monotonic() + _PROBE_LIMIT_S
    status = None
    while status is None and time.monotonic() < deadline:
        if _PROBED in (console.read_bytes() if console.exists() else b""):
            break
        status = process.wait(0.05)
    alive = _PROBED in (console.read_bytes() if console.exists() else b"")
    host.end_server(process, limit=0.0, farewell=signal.SIGKILL)
    if alive:
        return Acceleration("kvm")
    if status is None:
        why = f"the kernel did not come up under KVM within {_PROBE_LIMIT_S:g} s"
    else:
        why = f"QEMU ended with status {status} under KVM: {process.complaint() or 'it said nothing'}"
    # KVM without hardware that helps runs kernels built for it (CONFIG_PVM_GUEST), and those of distributions are not.
    return Acceleration("tcg", f"{why}; its module is kvm_pvm" if _PVM.exists() else why)


_MACHINE = ("-M", "q35", "-nographic", "-nodefaults", "-no-reboot")


def plug_in(host: LocalHost, network: Network, node: str, log: Path) -> None:
    """Make room for a machine in a node's namespace: from now on its interface `machine` is on the node's link.

    The node's address is then the machine's to have. Raises RunError.
    """
    commands = [
        f"address flush dev {_LINK}",
        f"link add name {_INNER} type bridge mcast_snooping 0",
        f"link set {_LINK} master {_INNER}",
        f"tuntap add dev {_TAP} mode tap",
        f"link set {_TAP} master {_INNER}",
        f"link set {_TAP} up",
        f"link set {_INNER} up",
    ]
    host.run([*network.words(node), "ip", "-batch", "-"], limit=10.0, log=log, told=commands)


_LINK, _INNER, _TAP = "eth0", "inner", "machine"


class Vm:
    """One machine, between its start and its end; after that it may be started again.

    May be asked by several threads, one after the other.
    """

    def __init__(
        self,
        host: LocalHost,
        image: VmImage,
        spec: Spec,
        accelerated: Acceleration,
        *,
        network: Network,
        confinement: Confinement,
        folder: Path,
        logs: Path,
    ) -> None:
        """`folder` is for its sockets, and has a short path."""
        self.spec = spec
        self.console = logs / f"{spec.name}.console"
        self._host = host
        self._image = image
        self._accelerated = accelerated
        self._network = network
        self._confinement = confinement
        self._folder = folder
        self._logs = logs
        self._process: Process | None = None
        self._frozen = False
        self.agent = Agent(folder / f"{spec.name}.agent", self.wait)
        self.monitor = Monitor(folder / f"{spec.name}.qmp")

    @property
    def pid(self) -> int | None:
        """Of QEMU's process; None where it does not run."""
        process = self._process
        return None if process is None or process.wait(0) is not None else process.pid

    def start(self) -> None:
        """Start it; `agent.ask` then waits until it is up. Raises RunError."""
        assert self._process is None, "it was started already"
        spec, marker = self.spec, f"{self._folder.name}-{self.spec.name}"
        disks = [
            word
            for number, disk in enumerate(spec.disks)
            for word in ("-drive", _drive(number, disk), "-device", f"virtio-blk-pci,drive=d{number}")
        ]
        told = {"name": spec.name, "address": f"{spec.address}/24"}
        words = [
            str(_qemu()), "-name", marker, *self._accelerated.words, *_MACHINE,
            "-smp", str(spec.cpus), "-m", f"{spec.memory // 2**20}M",
            "-serial", f"file:{self.console}",
            "-kernel", str(self._image.kernel), "-initrd", str(self._image.initrd),
            "-append", append(told, self._accelerated),
            *disks,
            "-netdev", f"tap,id=net,ifname={_TAP},script=no,downscript=no",
            "-device", f"virtio-net-pci,netdev=net,mac={spec.hardware},romfile=",
            "-device", "virtio-rng-pci",
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=agent,path={self.agent.path},server=on,wait=off",
            "-device", "virtserialport,chardev=agent,name=dyno",
            "-qmp", f"unix:{self._folder / spec.name}.qmp,server=on,wait=off",
        ]  # fmt: skip
        confinement = replace(self._confinement, under=(*self._confinement.under, *self._network.words(spec.name)))
        argv, _ = confinement.around(words, None)
        self._process = self._host.start_server(argv, log=self._logs / spec.name, marker=marker)

    def wait(self, timeout: float) -> int | None:
        """Its exit status as soon as it ends; None after so many seconds."""
        return None if self._process is None else self._process.wait(timeout)

    def freeze(self) -> None:
        """Stop it in the midst of whatever it does."""
        if self._process is not None:
            self._process.send(signal.SIGSTOP)
            self._frozen = True

    def thaw(self) -> None:
        """Have it go on."""
        if self._process is not None and self._frozen:
            self._process.send(signal.SIGCONT)
        self._frozen = False

    @property
    def frozen(self) -> bool:
        """Whether it is stopped: it answers nothing then."""
        return self._frozen

    def kill(self) -> None:
        """End it at once, as a loss of power does; nothing happens where it does not run. Raises RunError."""
        process, self._process, self._frozen = self._process, None, False
        self.agent.close()
        self.monitor.close()
        if process is not None:
            try:
                process.kill()
                self._host.end_server(process, limit=0.0, farewell=signal.SIGKILL)
            except UndoError as error:
                raise RunError(f"{self.spec.name}: {error}") from error

    def end_at_once(self) -> None:
        """Have it end, and wait for nothing: `kill` is still to come. May be called while somebody asks in it."""
        if (process := self._process) is not None:
            process.send(signal.SIGKILL)

    def power_off(self, limit: float) -> None:
        """Write back what it has not written yet, and end it. Raises RunError where it has to be killed."""
        if self._process is None:
            return
        with contextlib.suppress(RunError):  # it may be gone before it has answered
            self.agent.ask(_POWER_OFF, limit)
        ended = self._process.wait(limit)
        self.kill()
        if ended is None:
            raise RunError(f"{self.spec.name} did not end within {limit:g} s and was killed: {self.last_words()}")

    def last_words(self) -> str:
        """What it last wrote to its console."""
        try:
            lines = self.console.read_text(errors="replace").split("\n")
        except OSError:
            return "its console is empty"
        told = [line.strip() for line in lines if line.strip()]
        return " / ".join(told[-_LAST_WORDS:]) or "its console is empty"


def append(told: Mapping[str, str], accelerated: Acceleration) -> str:
    """What a kernel is told, with what the first process in it is told."""
    ours = " ".join(f"dyno.{key}={value}" for key, value in told.items())
    clock = f" {_CLOCK}" if accelerated.emulated else ""
    return f"console=ttyS0 {_NO_FRILLS}{clock} {ours}"


# A kernel finds out how fast its counters run by counting for a moment. Where this machine is busy, an emulated CPU
# stands still meanwhile: clocks were seen to run five times too fast, and each time limit within was as much shorter.
# The timers of ACPI and HPET have a rate that nobody has to find out.
_CLOCK = "clocksource=acpi_pm tsc=unstable nolapic_timer no_timer_check"


def _drive(number: int, disk: Disk) -> str:
    file = str(disk.file).replace(",", ",,")
    # Flushes reach this machine's disk; a disk that is forgotten needs none.
    if disk.fresh:
        return f"if=none,id=d{number},file={file},format=raw,snapshot=on,cache=unsafe"
    rest = ",readonly=on" if disk.read_only else ""
    return f"if=none,id=d{number},file={file},format=raw,cache=writeback{rest}"


class Agent:
    """Who carries out commands in a machine: see `guest/init`."""

    def __init__(self, path: Path, ended: Callable[[float], int | None]) -> None:
        """`ended` waits so many seconds for the machine's end, and tells the status that it had; see `Vm.wait`."""
        self.path = path
        self._ended = ended
        self._lock = threading.RLock()
        self._socket: socket.socket | None = None
        self._rest = b""
        self._number = 0

    def ask(self, command: str, limit: float) -> str:
        """What a command said, which bash carries out within so many seconds. It has no standard input.

        What it leaves running must write elsewhere. Raises RunError where it fails, or nobody answers.
        """
        status, said = self.try_(command, limit)
        if status != 0:
            last = " / ".join(said.strip().splitlines()[-_LAST_WORDS:]) or "it said nothing"
            raise RunError(f"`{_short(command)}` ended with status {status} in {self.path.stem}: {last}")
        return said

    def try_(self, command: str, limit: float) -> tuple[int, str]:
        """Its exit status too, whatever that is. Raises RunError where nobody answers."""
        deadline = time.monotonic() + limit
        if not self._lock.acquire(timeout=max(limit, 0.0)):
            raise RunError(f"{self.path.stem} was asked something else for {limit:g} s")
        try:
            self._number += 1
            words = f"{self._number} {max(limit, 0.1):.1f} {base64.b64encode(command.encode()).decode()}\n"
            opened = self._connected(deadline)
            opened.sendall(words.encode())
            while True:
                number, status, said = parse_answer(self._line(opened, deadline))
                if number == self._number:  # else it is late, of one that nobody waited for
                    return status, said
        except OSError as error:
            self.close()
            raise RunError(f"{self.path.stem} does not answer `{_short(command)}`: {error or 'too late'}") from error
        finally:
            self._lock.release()

    def write(self, path: str, text: str, limit: float, *, mode: str = "644") -> None:
        """Have a file there. Raises RunError."""
        coded = base64.b64encode(text.encode()).decode()
        folder = path.rpartition("/")[0] or "/"
        self.ask(f"mkdir -p {folder} && base64 -d <<<{coded} >{path} && chmod {mode} {path}", limit)

    def close(self) -> None:
        """Let go of it; the next question connects anew. Who waits for an answer now hears that it hung up.

        That one closes it then: a socket that another thread reads from must not be closed under it.
        """
        if (opened := self._socket) is not None:
            with contextlib.suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
        if self._lock.acquire(blocking=False):
            try:
                if self._socket is not None:
                    self._socket.close()
                self._socket, self._rest = None, b""
            finally:
                self._lock.release()

    def _connected(self, deadline: float) -> socket.socket:
        while (known := self._socket) is None:
            opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                opened.settimeout(max(deadline - time.monotonic(), 0.01))
                opened.connect(str(self.path))
                self._socket = opened
            except (FileNotFoundError, ConnectionRefusedError):
                # QEMU has just been started: it makes the socket in a moment.
                opened.close()
                if time.monotonic() > deadline or self._ended(_LOOK_EVERY_S) is not None:
                    raise
            except OSError:
                opened.close()
                raise
        known.settimeout(max(deadline - time.monotonic(), 0.01))
        return known

    def _line(self, opened: socket.socket, deadline: float) -> bytes:
        while b"\n" not in self._rest:
            opened.settimeout(max(deadline - time.monotonic(), 0.01))
            chunk = opened.recv(_CHUNK)
            if not chunk:
                raise ConnectionResetError("it hung up")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line


def parse_answer(line: bytes) -> tuple[int, int, str]:
    """Number, exit status and words. Raises OSError for a line that is none."""
    number, _, rest = line.decode(errors="replace").strip().partition(" ")
    status, _, coded = rest.partition(" ")
    try:
        return int(number), int(status), base64.b64decode(coded, validate=True).decode(errors="replace").rstrip("\n")
    except (ValueError, binascii.Error) as error:
        raise OSError(f"it said {line[:80]!r}") from error


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 100 else f"{line[:97]}..."


def together(vms: Sequence[Vm], command: str, limit: float) -> list[str]:
    """What each says to a command that all carry out at the same time. Raises RunError of the first that fails."""
    said: dict[str, str] = {}
    wrong: list[RunError] = []

    def one(vm: Vm) -> None:
        try:
            said[vm.spec.name] = vm.agent.ask(command, limit)
        except RunError as error:
            wrong.append(error)

    threads = [threading.Thread(target=one, args=(vm,)) for vm in vms]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    return [said[vm.spec.name] for vm in vms]


def need(program: str, package: str) -> None:
    """Raise RunError where a program that goes with machines is missing."""
    if programs.find(program) is None:
        raise RunError(f"{program} is missing: install Debian's {package}")
