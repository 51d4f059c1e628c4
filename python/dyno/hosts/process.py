"""A process that dyno started: its output goes to files, its end is noticed at once, and it can be stopped for sure."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from dyno.hosts.accounts import Account
from dyno.hosts.descendants import descendants
from dyno.hosts.gist import gist
from dyno.model.base import RunError

_GRACE_S = 5.0
_STOPPING_S = 5.0  # a stop is taken by each thread when it next has a CPU or leaves the kernel
_DYING_S = 60.0  # from SIGKILL to the end: memory of many GB is given back, a sync that goes on is waited for
_LOOKS_AT_ENVIRONMENT = 1000
_BETWEEN_LOOKS_S = 0.001


class Process:
    """A child in a session of its own, so that Ctrl-C reaches dyno alone and dyno decides what happens to it.

    Its standard input is a pipe held by dyno: it reads end-of-file when dyno dies, however dyno dies. With
    `lines=True` its standard output is read by `wait`, else it goes to the log.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        environment: Mapping[str, str],
        lines: bool = False,
        folder: Path | None,
        account: Account | None = None,
    ) -> None:
        """`account` is the user that it is started as, by root alone."""
        self.argv = tuple(argv)
        self._log = log
        name = Path(argv[0]).name
        with (
            log.with_name(f"{log.name}.stderr").open("ab") as err,
            log.with_name(f"{log.name}.stdout").open("ab") as out,
        ):
            self._said_before = err.tell()  # by others that have the same log
            try:
                self._popen = subprocess.Popen(
                    self.argv,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE if lines else out,
                    stderr=err,
                    env=dict(environment),
                    # Another user may not be let into the present folder.
                    cwd=folder or ("/" if account else None),
                    user=account.uid if account else None,
                    group=account.gid if account else None,
                    extra_groups=account.groups if account else None,
                    start_new_session=True,
                )
            except OSError as error:
                raise RunError(f"cannot start {name}: {error.strerror or error} ({argv[0]})") from error
        self.pid = self._popen.pid
        self._pidfd = os.pidfd_open(self.pid)
        self._reaping = threading.Lock()
        self._pending = b""
        self._output_ended = False
        # A child that was just started shows an empty environment in /proc for a moment after exec. Whoever undoes the
        # session in that moment looks for its token there, and would leave the child alive.
        for _ in range(_LOOKS_AT_ENVIRONMENT):
            if self._shows_environment() or self._has_ended(_BETWEEN_LOOKS_S):
                break

    def tell(self, line: str) -> None:
        """Write a line to its standard input; a process that is gone does not hear it."""
        assert self._popen.stdin is not None
        if self._popen.stdin.closed:
            return
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.write(line.encode() + b"\n")
            self._popen.stdin.flush()

    def hush(self) -> None:
        """Close its standard input: it has been told all."""
        assert self._popen.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._popen.stdin.close()

    def wait(self, timeout: float) -> int | None:
        """Its exit status as soon as it ends, or None after `timeout` seconds. Negative: the signal that ended it."""
        if self._popen.returncode is not None:
            return self._popen.returncode
        return self._reap() if self._has_ended(timeout) else None

    def fileno(self) -> int:
        """For `select`, of a process whose end was not yet asked for: readable as soon as it has ended."""
        return self._pidfd

    def lines(self, timeout: float) -> list[str]:
        """The whole lines that its standard output gave, as soon as there are some or it ended, at most `timeout`."""
        assert self._popen.stdout is not None
        if self._popen.stdout.closed:
            return []
        with self._own_handle() as handle:
            if handle is None:
                return []
            sources = [handle] if self._output_ended else [self._popen.stdout.fileno(), handle]
            readable, _, _ = select.select(sources, [], [], max(timeout, 0))
        if self._output_ended or self._popen.stdout.fileno() not in readable:
            return []
        chunk = os.read(self._popen.stdout.fileno(), 65536)
        self._output_ended = not chunk
        *whole, self._pending = (self._pending + chunk).split(b"\n")
        return [line.decode(errors="replace") for line in whole]

    def stop(self, grace: float = _GRACE_S, farewell: signal.Signals = signal.SIGTERM) -> int:
        """Ask it to end, insist after `grace` seconds; returns its exit status. Its children end with it."""
        if self._popen.returncode is None:
            self._signal(farewell)
            self._has_ended(grace)
            # Before it is reaped, so that the group's id is still its own: a child may have ignored the asking.
            self._signal(signal.SIGKILL)
        return self._reap()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to it and the children of its session, and wait for nothing: a signal's handler may.

        What stops processes and has them go on reaches all that it started: those of PostgreSQL lead sessions of their
        own, and would serve their clients while it stands still. Of a stop it is waited until it is in force: a thread
        that is on another CPU goes on until then. Raises RunError where one of them does within five seconds.
        """
        if self._popen.returncode is not None:
            return
        if number == signal.SIGSTOP:
            self._signal(number)
            self._stands_still(self.pid)
            for pid in descendants(self.pid):
                _send(pid, number)
                self._stands_still(pid)
        elif number == signal.SIGCONT:
            started = list(descendants(self.pid))  # while it stands still
            self._signal(number)
            for pid in started:
                _send(pid, number)
        else:
            self._signal(number)

    def kill(self) -> None:
        """End it and its children at once."""
        if self._popen.returncode is None:
            self._signal(signal.SIGKILL)
        self._reap()

    def complaint(self, lines: int = 1, telling: str = "") -> str:
        """What it wrote to its standard error, for a message; empty where that is nothing.

        The first line in which the pattern `telling` is found, from there on; where none is, the last `lines`, or of
        one that is asked for the gist of all.
        """
        said = self._log.with_name(f"{self._log.name}.stderr").read_bytes()[self._said_before :]
        text = said.decode(errors="replace").strip()
        if telling and (found := re.search(f"(?:{telling}).*", text)):
            return found[0]
        if lines == 1:
            return gist(text)
        return " / ".join(text.splitlines()[-lines:])

    def _stands_still(self, pid: int) -> None:
        """Return once it does, of one of its processes."""
        deadline = time.monotonic() + _STOPPING_S
        while _goes_on(pid) and not self._has_ended(_BETWEEN_LOOKS_S):
            if time.monotonic() > deadline:
                raise RunError(
                    f"{Path(self.argv[0]).name} (process {pid}) did not stand still within {_STOPPING_S:g} s of "
                    f"being stopped: {_state(pid)}"
                )

    def _shows_environment(self) -> bool:
        try:
            return bool(Path(f"/proc/{self.pid}/environ").read_bytes())
        except OSError:
            return True  # a program that runs as another user; it can neither be read nor ended

    def _has_ended(self, timeout: float) -> bool:
        with self._own_handle() as handle:
            if handle is None:
                return True  # another thread has seen it
            readable, _, _ = select.select([handle], [], [], max(timeout, 0))
            return bool(readable)

    @contextlib.contextmanager
    def _own_handle(self) -> Iterator[int | None]:
        """A handle that no other thread closes meanwhile; None where it was reaped."""
        with self._reaping:
            handle = None if self._pidfd < 0 else os.dup(self._pidfd)
        try:
            yield handle
        finally:
            if handle is not None:
                os.close(handle)

    def _signal(self, number: int) -> None:
        # The group has the child's own id, since the child leads a session of its own.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _reap(self) -> int:
        try:
            status = self._popen.wait(_DYING_S)
        except subprocess.TimeoutExpired:
            raise RunError(
                f"{Path(self.argv[0]).name} (process {self.pid}) did not end within {_DYING_S:g} s of being killed: "
                f"{_state(self.pid)}"
            ) from None
        for stream in (self._popen.stdin, self._popen.stdout):
            if stream is not None and not stream.closed:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        with self._reaping:
            if self._pidfd >= 0:
                os.close(self._pidfd)
                self._pidfd = -1
        return status


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _goes_on(pid: int) -> bool:
    """Whether a thread of it runs, or waits for something that would have it run on: states R and S of proc(5)."""
    for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            if thread.read_text().rpartition(")")[2].split()[0] in "RS":
                return True
    return False


def _state(pid: int) -> str:
    """The kernel's word for what a process does, and where in the kernel it waits as far as that may be read."""
    try:
        (state,) = re.findall(r"^State:\s*(.+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    except (OSError, ValueError):
        return "its state is not known"
    where = ""
    with contextlib.suppress(OSError):
        where = Path(f"/proc/{pid}/wchan").read_text().strip("0\n")
    return f"its state is {state}{f', in {where}' if where else ''}"


class Family:
    """The children of a process, to see them gone after it was killed: they notice its end a moment later."""

    def __init__(self, pid: int) -> None:
        self._handles = []
        with contextlib.suppress(OSError):
            for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    self._handles.append(os.pidfd_open(int(child)))

    def gone_within(self, limit: float) -> bool:
        """Whether all of them end within `limit` seconds; asked once."""
        deadline = time.monotonic() + limit
        gone = [select.select([handle], [], [], max(deadline - time.monotonic(), 0))[0] for handle in self._handles]
        for handle in self._handles:
            os.close(handle)
        return all(gone)
