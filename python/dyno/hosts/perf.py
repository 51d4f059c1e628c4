"""perf: what it needs of the machine, and one that is attached to processes for a while."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from dyno.hosts.local import LocalHost
from dyno.hosts.process import Process
from dyno.hosts.usage import descendants
from dyno.model.base import RunError

_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_FASTEST = Path("/proc/sys/kernel/perf_event_max_sample_rate")
_TRY_LIMIT_S = 30.0
_ENDED_AS_TOLD = (0, -signal.SIGINT, 128 + signal.SIGINT)
_PING, _ANSWER = b"ping\n", b"ack\n"
_TEXT = {"LC_ALL": "C"}  # elsewhere a decimal comma would stand between the fields


def program() -> str:
    """Where perf is. Raises RunError where it is missing, or where this user may not use it."""
    perf = shutil.which("perf")
    if perf is None:
        raise RunError("perf is not installed: install Debian's linux-perf")
    said = _tried(perf, "task-clock:u")
    if said is not None:
        raise RunError(
            f"perf may not count here (kernel.perf_event_paranoid is {_setting(_PARANOID)}): run as root, or have it "
            f"set to 2 or less ({said})"
        )
    return perf


def refused(perf: str, events: Sequence[str]) -> str | None:
    """What perf says against these events' names; None where it knows them all, whether or not they can be counted."""
    return _tried(perf, ",".join(events))


def counts(perf: str, event: str) -> bool:
    """Whether this machine counts an event."""
    answer = _stat(perf, event)
    return answer.returncode == 0 and "not supported" not in answer.stderr and "not counted" not in answer.stderr


def fastest() -> int | None:
    """Samples a second that the kernel takes at most; None where it does not tell."""
    setting = _setting(_FASTEST)
    return int(setting) if setting.isdigit() else None


def _setting(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return "not known"


def _tried(perf: str, events: str) -> str | None:
    answer = _stat(perf, events)
    if answer.returncode == 0:
        return None
    lines = [line.strip() for line in answer.stderr.splitlines() if line.strip()]
    # Of a name that it does not know perf draws a picture first, and tells how to list the others last.
    telling = [line for line in lines if "rror" in line] or lines
    return telling[0] if telling else f"status {answer.returncode}"


def _stat(perf: str, events: str) -> subprocess.CompletedProcess[str]:
    argv = [perf, "stat", "-x;", "-e", events, "true"]
    environment = {**os.environ, **_TEXT}
    try:
        return subprocess.run(argv, capture_output=True, text=True, timeout=_TRY_LIMIT_S, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"perf cannot be tried: {error}") from error


class Attached:
    """A perf that watches a process with all its threads and children, those to come included, until it is ended."""

    def __init__(self, host: LocalHost, argv: Sequence[str], pid: int, folder: Path) -> None:
        """`argv` is perf's command but for what it is attached to. What perf writes goes to `folder`/perf.stderr.

        Raises RunError.
        """
        self.pid = pid
        folder.mkdir(parents=True, exist_ok=True)
        self._pipes = [folder / name for name in ("asked", "answered")]
        for pipe in self._pipes:
            os.mkfifo(pipe)
        # Both ways at each end, so that neither end waits for the other to be opened.
        self._asked, self._answered = (os.open(pipe, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC) for pipe in self._pipes)
        control = f"fifo:{self._pipes[0]},{self._pipes[1]}"
        pids = ",".join(map(str, (pid, *descendants(pid))))
        try:
            self._process: Process = host.start(
                [*argv, "--control", control, "-p", pids], log=folder / "perf", environment={**os.environ, **_TEXT}
            )
        except RunError:
            self._close()
            raise
        self.log = folder / "perf.stderr"

    def await_attached(self, limit: float) -> None:
        """Return when it has its answer that perf watches, or the process to watch is gone.

        Raises RunError past `limit` seconds, and where perf ended for another reason.
        """
        deadline = time.monotonic() + limit
        os.write(self._asked, _PING)
        while (left := deadline - time.monotonic()) > 0:
            readable, _, _ = select.select([self._answered, self._process.fileno()], [], [], left)
            if self._answered in readable and _ANSWER in os.read(self._answered, 4096):
                return
            if self._process.fileno() in readable:
                self._refuse_early_end()
                return
        raise RunError(f"perf was not attached to process {self.pid} within {limit:g} s")

    def end(self, limit: float) -> None:
        """End it, and have it write what it still has. Raises RunError where it ended before, or not as it should."""
        try:
            if self._process.wait(0) is not None:
                self._refuse_early_end()
                return
            status = self._process.stop(limit, signal.SIGINT)
            if status not in _ENDED_AS_TOLD:
                raise RunError(f"perf ended with status {status}: {self._complaint()}")
        finally:
            self._close()

    def _refuse_early_end(self) -> None:
        # perf ends by itself when all that it watches has ended, and at once where nothing was left to watch.
        if Path(f"/proc/{self.pid}").exists() and not self._is_zombie():
            raise RunError(f"perf ended before what it watched did: {self._complaint()}")

    def _is_zombie(self) -> bool:
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    def _complaint(self) -> str:
        return self._process.complaint(telling=r"[Ee]rror|[Cc]annot|[Nn]o permission|[Ff]ailed") or "it said nothing"

    def _close(self) -> None:
        for handle in (self._asked, self._answered):
            os.close(handle)
        for pipe in self._pipes:
            pipe.unlink(missing_ok=True)
