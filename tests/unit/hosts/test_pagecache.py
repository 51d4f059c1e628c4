"""The page cache of single files: what is said to be in it is in it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dyno.hosts import LocalHost, pagecache
from dyno.model.base import RunError

SIZE = 40 * 4096


@pytest.fixture
def on_disk(host: LocalHost, tmp_path: Path) -> Path:
    """A folder on a file system with a device: tmp_path, or the repository's where tmp_path is a tmpfs.

    The pages of a tmpfs are the file itself and cannot be dropped.
    """
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]

    def kind(path: Path) -> str:
        points = [mount for mount in mounts if path.is_relative_to(mount[1])]
        return max(reversed(points), key=lambda mount: len(mount[1]))[2]

    place = tmp_path if kind(tmp_path) != "tmpfs" else Path(__file__).parent
    return host.temporary_folder(place / f".pagecache-{os.getpid()}")


def test_a_file_that_was_read_is_resident_and_one_that_was_dropped_is_not(on_disk: Path, host: LocalHost) -> None:
    path = on_disk / "data"
    path.write_bytes(os.urandom(SIZE))
    assert path.read_bytes()
    assert pagecache.resident_bytes(path) == SIZE
    pagecache.evict(path)
    assert pagecache.resident_bytes(path) == 0
    assert path.read_bytes()
    assert host.resident_bytes([path, path]) == 2 * SIZE


def test_asking_reads_nothing_in(on_disk: Path) -> None:
    path = on_disk / "data"
    path.write_bytes(os.urandom(SIZE))
    pagecache.evict(path)
    assert [pagecache.resident_bytes(path) for _ in range(3)] == [0, 0, 0]


def test_what_was_not_yet_written_back_is_written_and_not_lost(on_disk: Path) -> None:
    path = on_disk / "data"
    data = os.urandom(SIZE)
    path.write_bytes(data)
    pagecache.evict(path)
    assert path.read_bytes() == data


def test_only_the_pages_that_were_read_are_counted(on_disk: Path) -> None:
    path = on_disk / "data"
    path.write_bytes(os.urandom(SIZE))
    pagecache.evict(path)
    with path.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)  # no read-ahead
        os.pread(file.fileno(), 1, 7 * 4096)
    assert 0 < pagecache.resident_bytes(path) < SIZE


def test_the_last_page_counts_with_the_bytes_that_the_file_has(on_disk: Path) -> None:
    path = on_disk / "data"
    path.write_bytes(b"x" * 100)
    assert pagecache.resident_bytes(path) == 100


def test_an_empty_file_has_nothing_resident_and_can_be_dropped(on_disk: Path) -> None:
    path = on_disk / "empty"
    path.write_bytes(b"")
    pagecache.evict(path)
    assert pagecache.resident_bytes(path) == 0


def test_a_file_that_is_gone_counts_nothing(host: LocalHost, tmp_path: Path) -> None:
    """A running server removes files of its own between our listing them and our looking at them."""
    (tmp_path / "there").write_bytes(b"x" * 5000)
    files = [tmp_path / "gone", tmp_path / "there"]
    host.evict(files)
    assert host.resident_bytes(files) == 0
    assert host.bytes_of(files) == 5000


def test_a_file_that_cannot_be_looked_at_is_a_run_error(host: LocalHost, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(RunError, match="cannot drop loop from page cache"):
        host.evict([tmp_path / "loop"])
    with pytest.raises(RunError, match="cannot read page-cache residency"):
        host.resident_bytes([tmp_path / "loop"])
    with pytest.raises(RunError, match="cannot read the size of loop"):
        host.bytes_of([tmp_path / "loop"])
