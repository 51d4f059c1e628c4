"""What machines do by themselves, with everything that they would ask replaced by what a test has it say."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

GUEST = Path(__file__).parents[3] / "python/dyno/hosts/guest"
LIMIT_S = 30


class Guest:
    """A machine of which each program is a line of bash; what is called is kept in a file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.drbd = folder / "drbd"
        self.drbd.write_text("ro:Secondary/Unknown")
        for name in ("drbdadm", "mountpoint", "mount", "ip", "arping", "ping", "sleep", "server"):
            self.has(name, ":")
        self.has("drbdadm", f"echo ro:Primary/Unknown >{self.drbd}")
        self.has("ping", "exit 1")
        self.has("mountpoint", f"[ -e {folder}/mounted ]")
        self.has("mount", f"touch {folder}/mounted")
        text = (GUEST / "takeover").read_text()
        text = text.replace("/proc/drbd", str(self.drbd)).replace("/usr/lib/dyno/server", str(folder / "server"))
        self.script = folder / "takeover"
        self.script.write_text(text)

    def has(self, name: str, does: str) -> None:
        """A program that does that."""
        path = self.folder / name
        path.write_text(f'#!/bin/bash\necho "{name} $*" >>{self.folder}/called\n{does}\n')
        path.chmod(0o755)

    def fails_at_first(self, name: str, times: int, then: str = ":") -> None:
        """It does so many times."""
        count = f"$(grep -c '^{name} ' {self.folder}/called)"
        self.has(name, f"[ {count} -gt {times} ] || exit 1\n{then}")

    def takes_over(self, *words: str) -> int:
        """Its exit status."""
        return self.run(*words).returncode

    def run(self, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """The same with what it says, and with settings in its environment."""
        settings["PATH"] = f"{self.folder}:{os.environ['PATH']}"
        command = ["bash", str(self.script), *words]
        return subprocess.run(command, env=settings, timeout=LIMIT_S, check=False, capture_output=True, text=True)

    @property
    def called(self) -> list[str]:
        return (self.folder / "called").read_text().splitlines()


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    return Guest(tmp_path)


def test_a_node_whose_peer_is_the_primary_is_told_so_and_does_not_try_for_ever(guest: Guest) -> None:
    guest.has("drbdadm", "echo 'Multiple primaries not allowed by config' >&2; exit 11")
    guest.drbd.write_text(" 0: cs:Connected ro:Secondary/Primary ds:UpToDate/UpToDate C r-----")
    ended = guest.run("now", "10.0.0.9", TAKEOVER_LIMIT_S="0")
    assert ended.returncode == 1
    assert "did not become the primary within 0 s: the other node is the primary; Multiple primaries" in ended.stderr
    assert "mount" not in [line.split()[0] for line in guest.called]


@pytest.mark.parametrize("step", ["drbdadm", "mount", "server", "ip"])
def test_a_watcher_goes_on_with_what_failed_until_it_has_taken_over(guest: Guest, step: str) -> None:
    # It ended with the first mount that failed, and the node was the primary without a server for ever.
    then = {"drbdadm": f"echo ro:Primary/Unknown >{guest.drbd}", "mount": f"touch {guest.folder}/mounted"}
    guest.fails_at_first(step, 2, then.get(step, ":"))
    assert guest.takes_over("watch", "0", "10.0.0.1", "10.0.0.101") == 0
    assert "ip address replace 10.0.0.101/24 dev eth0" in guest.called
    assert sum(line.startswith(f"{step} ") for line in guest.called) == 3


def test_a_watcher_takes_nothing_over_from_a_node_that_answers(guest: Guest) -> None:
    guest.has("ping", f"[ $(grep -c '^ping' {guest.folder}/called) -lt 4 ] || echo ro:Primary/Secondary >{guest.drbd}")
    assert guest.takes_over("watch", "0", "10.0.0.1", "10.0.0.101") == 0
    assert not any(line.startswith(("drbdadm", "mount ", "server", "ip")) for line in guest.called)


def test_who_is_told_to_take_over_now_is_told_where_that_fails(guest: Guest) -> None:
    guest.has("mount", "exit 32")
    assert guest.takes_over("now", "10.0.0.101") != 0
    guest.has("mount", f"touch {guest.folder}/mounted")
    assert guest.takes_over("now", "10.0.0.101") == 0
    assert "server start" in guest.called
