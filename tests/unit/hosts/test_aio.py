"""Several blocks at a time: all that were asked for are read or written, and an error of one is told."""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dyno.hosts.aio import answered

SIZE, BLOCKS = 4096, 16


@pytest.fixture
def data() -> Iterator[mmap.mmap]:
    with mmap.mmap(-1, 4 * SIZE) as piece:
        for part in range(4):
            piece.write(bytes([part + 1]) * SIZE)
        yield piece


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    path = tmp_path / "blocks"
    path.write_bytes(b"".join(bytes([65 + block]) * SIZE for block in range(BLOCKS)))
    handle = os.open(path, os.O_RDWR)
    yield handle
    os.close(handle)


def test_every_block_is_written_once_at_its_place_and_no_other_is(file: int, data: mmap.mmap) -> None:
    assert answered(file, data, [5, 2, 9], size=SIZE, depth=2, seconds=60, write=True) > 0
    found = os.pread(file, BLOCKS * SIZE, 0)
    assert len(found) == BLOCKS * SIZE
    firsts = list(found[::SIZE])
    assert [firsts[block] for block in (5, 2, 9)] == [1, 2, 3]
    assert [firsts[block] for block in range(BLOCKS) if block not in (5, 2, 9)] == [
        65 + block for block in range(BLOCKS) if block not in (5, 2, 9)
    ]


def test_what_is_read_is_in_the_memory_that_was_given(file: int, data: mmap.mmap) -> None:
    answered(file, data, [7, 0, 15, 3], size=SIZE, depth=32, seconds=60, write=False)
    assert [data[part * SIZE] for part in range(4)] == [65 + block for block in (7, 0, 15, 3)]


def test_nothing_is_asked_for_once_the_time_is_over(file: int, data: mmap.mmap) -> None:
    before = data[:]
    assert answered(file, data, range(BLOCKS), size=SIZE, depth=4, seconds=0, write=False) == 0
    assert data[:] == before


@pytest.mark.parametrize(
    ("blocks", "number"), [([0, BLOCKS], errno.EIO), ([0, -1], errno.EINVAL)], ids=["beyond its end", "before it"]
)
def test_a_block_that_is_not_there_is_an_error(blocks: list[int], number: int, file: int, data: mmap.mmap) -> None:
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        answered(file, data, blocks, size=SIZE, depth=1, seconds=60, write=False)
    assert caught.value.errno == number


def test_a_machine_whose_calls_are_not_known_is_told(
    file: int, data: mmap.mmap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "abacus")
    with pytest.raises(OSError, match="abacus"):
        answered(file, data, [0], size=SIZE, depth=1, seconds=60, write=False)
