"""Copies of data sets: whole, synced, and nothing where they failed."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dyno.hosts import LocalHost, files
from dyno.model.base import RunError

LIMIT_S = 30


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "base" / "16384").mkdir(parents=True)
    (folder / "empty").mkdir(mode=0o700)
    (folder / "data.db").write_bytes(os.urandom(300_000))
    (folder / "zero").write_bytes(b"")
    (folder / "base" / "16384" / "PG_VERSION").write_bytes(b"17\n")
    (folder / "base" / "16384" / "PG_VERSION").chmod(0o600)
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "base").chmod(0o500)
    return folder


def contents(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
        for path in [folder, *folder.rglob("*")]
    }


def test_a_copy_has_the_same_names_bytes_and_modes(source: Path, tmp_path: Path, host: LocalHost) -> None:
    # PostgreSQL and MariaDB refuse to start on a data folder whose mode is not what they made it.
    host.copy_tree(source, tmp_path / "target", reflink=False, limit=LIMIT_S)
    assert contents(tmp_path / "target") == contents(source)


def test_a_copy_is_another_file_and_not_the_same_one(source: Path, tmp_path: Path, host: LocalHost) -> None:
    host.copy_tree(source, tmp_path / "target", reflink=False, limit=LIMIT_S)
    before = (source / "data.db").read_bytes()
    (tmp_path / "target" / "data.db").write_bytes(b"changed")
    assert (source / "data.db").read_bytes() == before


def test_a_copy_is_synced_when_the_last_of_it_is_there(
    source: Path, tmp_path: Path, host: LocalHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[dict[str, tuple[int, bytes | None]]] = []
    really = files.sync_file_system

    def watched(folder: Path) -> None:
        synced.append(contents(folder))
        really(folder)

    monkeypatch.setattr(files, "sync_file_system", watched)
    host.copy_tree(source, tmp_path / "target", reflink=False, limit=LIMIT_S)
    assert synced == [contents(source)]


def test_syncing_where_there_is_nothing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        files.sync_file_system(tmp_path / "no such folder")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_a_copy_belongs_to_whom_the_source_belongs(source: Path, tmp_path: Path, host: LocalHost) -> None:
    """A server that root starts runs as a user of its own, and could not open what root had restored."""
    for path in (source / "data.db", source / "base"):
        os.chown(path, 4321, 1234)
    host.copy_tree(source, tmp_path / "target", reflink=False, limit=LIMIT_S)
    for name in ("data.db", "base"):
        status = (tmp_path / "target" / name).stat()
        assert (status.st_uid, status.st_gid) == (4321, 1234)
    assert (tmp_path / "target" / "run.sh").stat().st_uid == 0


def test_a_file_larger_than_a_chunk_is_copied_whole(
    tmp_path: Path, host: LocalHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_CHUNK", 4096)
    (tmp_path / "source").mkdir()
    data = os.urandom(3 * 4096 + 17)
    (tmp_path / "source" / "big").write_bytes(data)
    host.copy_tree(tmp_path / "source", tmp_path / "target", reflink=False, limit=LIMIT_S)
    assert (tmp_path / "target" / "big").read_bytes() == data


def make_symlink(path: Path) -> None:
    path.symlink_to("data.db")


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


@pytest.mark.parametrize("make", [make_symlink, make_fifo, make_socket])
def test_what_is_neither_file_nor_folder_is_refused_by_name(
    make: Callable[[Path], None], source: Path, tmp_path: Path, host: LocalHost
) -> None:
    make(source / "odd")
    with pytest.raises(RunError, match=r"odd is neither a file nor a folder"):
        host.copy_tree(source, tmp_path / "target", reflink=False, limit=LIMIT_S)
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize("reflink", [False, True])
def test_a_copy_past_its_limit_is_an_error_and_leaves_nothing(
    reflink: bool, source: Path, tmp_path: Path, host: LocalHost
) -> None:
    # Also one of many small files, or by reflink, where no single file takes long.
    with pytest.raises(RunError, match="longer than the study allows"):
        host.copy_tree(source, tmp_path / "target", reflink=reflink, limit=-1)
    assert not (tmp_path / "target").exists()


def test_the_limit_also_holds_within_one_large_file(
    tmp_path: Path, host: LocalHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_CHUNK", 4096)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "big").write_bytes(b"x" * 4096 * 100)
    clock = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with pytest.raises(RunError, match="longer than the study allows"):
        host.copy_tree(tmp_path / "source", tmp_path / "target", reflink=False, limit=50)
    assert next(clock) < 60


def test_a_copy_that_fails_half_way_leaves_nothing(
    source: Path, tmp_path: Path, host: LocalHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, calls = os.fchmod, iter(range(100))

    def failing(handle: int, mode: int) -> None:
        if next(calls) == 2:
            raise OSError(28, "No space left on device")
        really(handle, mode)

    monkeypatch.setattr(os, "fchmod", failing)
    with pytest.raises(RunError, match=r"cannot copy source to target: .*No space left"):
        host.copy_tree(source, tmp_path / "target", reflink=False, limit=LIMIT_S)
    assert not (tmp_path / "target").exists()


def test_a_copy_over_something_that_exists_is_refused_and_leaves_it_alone(
    source: Path, tmp_path: Path, host: LocalHost
) -> None:
    # The clean-up after the failed copy once took away what had been there before.
    target = tmp_path / "target"
    target.mkdir()
    (target / "snapshot").write_text("precious")
    with pytest.raises(RunError, match="exists already"):
        host.copy_tree(source, target, reflink=False, limit=LIMIT_S)
    assert (target / "snapshot").read_text() == "precious"


def test_a_copy_of_what_does_not_exist_is_an_error_and_leaves_nothing(tmp_path: Path, host: LocalHost) -> None:
    with pytest.raises(RunError, match="cannot copy nothing"):
        host.copy_tree(tmp_path / "nothing", tmp_path / "target", reflink=False, limit=LIMIT_S)
    assert not (tmp_path / "target").exists()


def test_only_what_the_session_made_is_removed(host: LocalHost, workspace: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    with pytest.raises(RunError, match="refusing to remove"):
        host.remove_tree(theirs)
    assert theirs.is_dir()
    (workspace / "ours").mkdir()
    host.remove_tree(workspace / "ours")
    assert not (workspace / "ours").exists()


def test_removing_what_is_not_there_is_no_error(host: LocalHost, workspace: Path) -> None:
    host.remove_tree(workspace / "never made")


def test_a_temporary_folder_can_be_removed_before_the_end(host: LocalHost, tmp_path: Path) -> None:
    folder = host.temporary_folder(tmp_path / "early")
    host.remove_temporary_folder(folder)
    assert not folder.exists()
    with pytest.raises(RunError, match="refusing"):
        host.remove_tree(folder)


def test_free_disk_is_what_a_user_may_write(host: LocalHost, tmp_path: Path) -> None:
    status = os.statvfs(tmp_path)
    assert abs(host.free_disk(tmp_path) - status.f_bavail * status.f_frsize) < 2**30
