"""What processes have read and written, by what processes do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dyno.hosts import LocalHost
from dyno.hosts.devices import device_of
from dyno.hosts.usage import cpu_seconds, storage_use
from tests.making import until

MIB = 2**20
_WRITE = f"open(sys.argv[1], 'wb').write(b'x' * {8 * MIB}); print('written', flush=True); sys.stdin.read()"
_PARENT = (
    "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import sys; ' + sys.argv[2], sys.argv[1]],"
    " stdin=subprocess.PIPE if sys.argv[3] == 'ends' else None, check=True);"
    " print('over', flush=True); sys.stdin.read()"
)


@pytest.fixture(autouse=True)
def on_a_device(tmp_path: Path) -> None:
    if device_of(tmp_path).folder is None:
        pytest.skip(f"{tmp_path} is on no block device, and what is kept in memory alone counts nothing")


def says(log: Path, word: str) -> bool:
    return word in log.with_name(f"{log.name}.stdout").read_text()


def test_what_a_process_writes_is_counted(host: LocalHost, tmp_path: Path) -> None:
    log = tmp_path / "log"
    process = host.start([sys.executable, "-c", f"import sys; {_WRITE}", str(tmp_path / "file")], log=log)
    until(lambda: says(log, "written"))
    used = storage_use([process.pid])
    process.kill()
    assert used is not None
    assert used.written_bytes >= 8 * MIB


def test_what_a_child_writes_is_counted_while_it_lives_and_when_it_has_ended(host: LocalHost, tmp_path: Path) -> None:
    found = {}
    for how, word in (("lives", "written"), ("ends", "over")):
        log = tmp_path / how
        words = [str(tmp_path / f"file-{how}"), _WRITE, how]
        process = host.start([sys.executable, "-c", _PARENT, *words], log=log)
        until(lambda log=log, word=word: says(log, word))
        found[how] = storage_use([process.pid])
        process.kill()
    assert found["lives"] is not None
    assert found["ends"] is not None
    assert min(use.written_bytes for use in found.values()) >= 8 * MIB


def test_the_cpu_time_of_a_child_that_has_ended_counts_with_its_parent(host: LocalHost, tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.2: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}]); print('over', flush=True); "
    log = tmp_path / "log"
    process = host.start([sys.executable, "-c", f"{parent}sys.stdin.read()"], log=log)
    until(lambda: says(log, "over"))
    used = cpu_seconds([process.pid])
    process.kill()
    assert used is not None
    assert 0.2 - 4 * 0.01 <= used < 10, "each of four figures is cut off to a tick"


def test_nothing_is_said_of_a_process_that_is_gone(host: LocalHost, tmp_path: Path) -> None:
    process = host.start(["true"], log=tmp_path / "log")
    process.wait(10)
    assert storage_use([process.pid]) is None
    assert cpu_seconds([process.pid]) is None
