"""Namespaces of the network that an open file of dyno's keeps alive, and what is done in them.

A thread may be in another namespace than its process: what dyno does in one, a thread of its own does, which then ends.
Nothing of it is in the undo journal, since there is nothing to undo: however dyno ends, its files are closed, and a
namespace goes with all of its interfaces once no file and no process holds it.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from dyno.hosts import programs
from dyno.model.base import RunError

_CLONE_NEWNET = 0x40000000  # linux/sched.h
_IP_LIMIT_S = 10.0
_libc = ctypes.CDLL(None, use_errno=True)

T = TypeVar("T")


class Namespace:
    """A new one, with nothing in it but a loopback. Raises RunError, also without root."""

    def __init__(self) -> None:
        if os.geteuid() != 0:
            raise RunError("a namespace of the network needs root")
        self._handle = _in_a_thread(_open_new)
        try:
            self.configure(["link set lo up"])
            self.within(_without_ipv6)
        except BaseException:
            self.close()
            raise

    @property
    def path(self) -> Path:
        """It as a file, for as long as dyno runs and it is not closed."""
        return Path(f"/proc/{os.getpid()}/fd/{self._handle}")

    @property
    def words(self) -> tuple[str, ...]:
        """Put before a command that root starts: it becomes that command, in here."""
        return ("nsenter", f"--net={self.path}")

    def within(self, do: Callable[[], T]) -> T:
        """What a function gives that is carried out in here; processes that it starts stay in here."""

        def there() -> T:
            _enter(self._handle)
            return do()

        return _in_a_thread(there)

    def configure(self, commands: Sequence[str]) -> None:
        """Have `ip` carry out commands, line by line. Raises RunError with what it says of the first that fails."""
        self.within(lambda: _ip(commands))

    def close(self) -> None:
        """Let it go; it stays for as long as a process is in it."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1


def _in_a_thread(do: Callable[[], T]) -> T:
    """In a new one, which ends with it: none that does something else later may be in another namespace."""
    with ThreadPoolExecutor(max_workers=1) as one:
        return one.submit(do).result()


def _open_new() -> int:
    if _libc.unshare(_CLONE_NEWNET) != 0:
        raise RunError(f"cannot make a namespace of the network: {os.strerror(ctypes.get_errno())}")
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


def _enter(handle: int) -> None:
    if _libc.setns(handle, _CLONE_NEWNET) != 0:
        raise RunError(f"cannot enter a namespace of the network: {os.strerror(ctypes.get_errno())}")


def _without_ipv6() -> None:
    """Else each interface would look for neighbours and routers by itself, which would be in its traffic."""
    setting = Path("/proc/sys/net/ipv6/conf/default/disable_ipv6")
    if setting.exists():
        setting.write_text("1")


def _ip(commands: Sequence[str]) -> None:
    program = programs.find("ip")
    if program is None:
        raise RunError("ip is missing: install Debian's iproute2")
    try:
        answer = subprocess.run(
            [str(program), "-batch", "-"],
            input="".join(f"{command}\n" for command in commands),
            capture_output=True,
            text=True,
            timeout=_IP_LIMIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"`ip` could not be carried out: {error}") from error
    if answer.returncode != 0:
        said = " / ".join(answer.stderr.strip().splitlines()) or "it said nothing"
        raise RunError(f"cannot set up a network (`ip {'; '.join(commands)}`): {said}")
