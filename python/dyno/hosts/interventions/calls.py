"""Time added to each system call of a kind, by strace: what the kinds that delay calls share.

strace starts the program and stops it at those calls alone (`--seccomp-bpf`); it can not do that to one that runs
already, which it would stop at every call. It runs beside the program and not above it (`-DD`): the program keeps its
process id and its parent, and signals to its group do not reach strace, which must outlive it: a call whose tracer is
gone fails with ENOSYS. It ends with the program.
"""

from __future__ import annotations

import re
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

from dyno.hosts.interventions.base import Bench, Effect, Intervention, Lives, Target
from dyno.hosts.programs import find
from dyno.model.base import RunError

_RETURNED = re.compile(rb"^\d+ +(\d+)\.(\d{6}) .* = -?\w", re.MULTILINE)
_TRIES, _FEWEST_TRIES = 100, 9  # calls of the small program that tells what strace adds to one
_TRY_S = 1.0  # that it takes about, where the doses are long: all of them are tried before the first run
_PROBE = """
import ctypes, statistics, sys, time
call = getattr(ctypes.CDLL(None), sys.argv[1])
def once():
    begun = time.perf_counter()
    call(-1, None, 0, 0)
    return time.perf_counter() - begun
print(statistics.median(once() for _ in range(int(sys.argv[2]))))
"""


class Calls(Intervention):
    """Time added to calls."""

    control = "strace with a delay of 0"
    refused = "in a container, where strace cannot start what it is to delay"

    calls: ClassVar[tuple[str, ...]]
    """Which, by the names that strace has for them."""
    when: ClassVar[Literal["enter", "exit"]] = "exit"
    """Whether a call waits before it does its work or after."""
    tried: ClassVar[str]
    """One of them, as the C library calls it, that does nothing but fail on file descriptor -1."""

    def __init__(self, dose: float, bench: Bench) -> None:
        super().__init__(dose, bench)
        self._log = bench.folder / "calls"
        self._notes: tuple[str, ...] = ()

    @classmethod
    def unfit(cls, lives: Lives) -> str | None:
        """A program of an image is started by its engine."""
        if lives.in_container:
            return (
                "a server in a container is not started by strace, and one that runs can only be stopped at every call"
            )
        return None

    @classmethod
    def missing(cls) -> str | None:
        """The program."""
        return None if find("strace") else "strace is missing; install the package strace"

    def measure(self, data: Path) -> None:
        """What a call really takes longer: the clock is late, and waking up takes its time too."""
        for dose in (0.0, self.dose):
            key = f"{self.kind} {dose:g}"
            if key not in self.bench.known:
                self.bench.known[key] = self._median(dose)

    @property
    def added_s(self) -> float:
        """Seconds that this dose adds to a call beyond what the control's does."""
        if self.dose == 0:
            return 0.0
        return self.bench.known[f"{self.kind} {self.dose:g}"] - self.bench.known[f"{self.kind} 0"]

    def _median(self, dose: float) -> float:
        self.bench.folder.mkdir(parents=True, exist_ok=True)
        log = self.bench.folder / f"{self.kind}-{dose:g}"
        tries = _TRIES if dose == 0 else max(min(round(_TRY_S / dose), _TRIES), _FEWEST_TRIES)
        words = [*self._strace(dose, log, ()), sys.executable, "-I", "-S", "-c", _PROBE, self.tried, str(tries)]
        answer = self.bench.host.run(words, limit=self.bench.limit, log=self.bench.logs / f"{self.kind}-tried")
        try:
            return float(answer.split()[-1])
        except (ValueError, IndexError) as error:
            raise RunError(f"what strace adds to {self.tried} could not be measured: {answer.strip()!r}") from error

    def under(self, files: Sequence[Path]) -> tuple[str, ...]:
        """Strace."""
        self.bench.folder.mkdir(parents=True, exist_ok=True)
        self._log.unlink(missing_ok=True)
        return tuple(self._strace(self.dose, self._log, self.only(files)))

    def only(self, files: Sequence[Path]) -> Sequence[Path]:
        """The files whose calls are delayed; none where all calls are."""
        return ()

    def _strace(self, dose: float, log: Path, only: Sequence[Path]) -> Iterator[str]:
        calls = ",".join(self.calls)
        yield from (str(find("strace") or "strace"), "--seccomp-bpf", "-f", "-DD", "-qq", "-ttt", "-s", "0")
        # Several drivers are started under it, and what puts their results together after them.
        yield from ("-e", "signal=none", "-A", "-o", str(log))
        for file in only:
            yield from ("-P", str(file))
        yield from ("-e", f"trace={calls}", "-e", f"inject={calls}:delay_{self.when}={round(dose * 1e6)}", "--")

    def begin(self, target: Target) -> None:
        """It is in force since the start; see that nothing passes it by."""
        self._notes = tuple(self.passes_by(list(open_files(target.processes.values())), target.data))

    @abstractmethod
    def passes_by(self, files: Sequence[OpenFile], data: Path) -> Iterator[str]:
        """What is done otherwise than by these calls, in words. Raises InvalidRun where that is all that matters."""

    def end(self) -> None:
        """It ends with the program."""

    def effect(self, from_ns: int, to_ns: int) -> Effect:
        """The calls that returned in that time."""
        try:
            text = self._log.read_bytes()
        except OSError as error:
            raise RunError(f"strace left no list of the calls that it delayed: {error.strerror}") from error
        times = (int(found[1]) * 1_000_000_000 + int(found[2]) * 1000 for found in _RETURNED.finditer(text))
        return Effect(float(sum(from_ns <= at <= to_ns for at in times)), self.added_s, notes=self._notes)


@dataclass(frozen=True)
class OpenFile:
    """A file that a process has open. `flags` are those of open(2)."""

    name: str
    flags: int

    def below(self, folder: Path) -> bool:
        """Whether it is a file of that folder."""
        return Path(self.name).is_relative_to(folder)


def open_files(processes: Iterable[int]) -> Iterator[OpenFile]:
    """Those of processes and of what they started. What closes meanwhile is left out."""
    waiting = list(processes)
    while waiting:
        process = Path(f"/proc/{waiting.pop()}")
        try:
            for children in process.glob("task/*/children"):
                waiting += map(int, children.read_text().split())
            handles = list((process / "fd").iterdir())
        except OSError:
            continue
        for handle in handles:
            try:
                told = (process / "fdinfo" / handle.name).read_text()
                found = re.search(r"^flags:\s*([0-7]+)", told, re.MULTILINE)
                yield OpenFile(str(handle.readlink()), int(found[1], 8) if found else 0)
            except OSError:
                continue


def uses_io_uring(files: Iterable[OpenFile]) -> bool:
    """Whether one of them is a ring, whose operations are no system calls."""
    return any(file.name == "anon_inode:[io_uring]" for file in files)
