"""Ageing a file system: files of mixed sizes are written and deleted until its free space is in pieces.

A new file system gives each file one piece; one that has been used does not, and reads and writes by several times as
many requests (K. A. Smith and M. I. Seltzer, SIGMETRICS 1997; A. Conway et al., FAST 2017). Sizes are log-normal, with
the parameters that N. Agrawal et al. (Impressions, FAST 2009) have for files of personal computers, so that most files
are small and most bytes are in large ones.
"""

from __future__ import annotations

import errno
import os
import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from dyno.hosts import files
from dyno.model.base import RunError, Scalar

Ask = Callable[[Sequence[str]], str]

FOLDER: Final = "aged"
_MU, _SIGMA = 9.48, 2.46  # of the logarithm of bytes
_LARGEST_SHARE = 1 / 64  # of the file system: one file must not be most of what is written
_FULL = 0.9  # of it; the last tenth some keep for themselves
_FOLDERS = 64
_CHUNK = 1024 * 1024
_PROBE_SHARE = 0.25  # of what is free, of the file that is written to see in how many pieces it comes to lie


def age(root: Path, *, fill: float, rounds: int, seed: int, deadline: float) -> None:
    """Write files until a mounted file system is full, delete some until that share of it is used; again each round.

    So what is free in the end lies all over it. What stays is in a folder of its own. Raises RunError, also past
    `deadline` (time.monotonic).
    """
    rng = random.Random(seed)
    top = root / FOLDER
    try:
        for number in range(_FOLDERS):
            (top / f"{number:02d}").mkdir(parents=True)
        there: list[Path] = []
        for number in range(rounds):
            there += _fill(root, number, rng, deadline)
            rng.shuffle(there)
            _thin(root, there, fill)
    except OSError as error:
        raise RunError(f"cannot age the file system: {error}") from error


def _fill(root: Path, number: int, rng: random.Random, deadline: float) -> list[Path]:
    total = sum(files.room(root))
    # Incompressible, so that a file system which compresses is filled too.
    content = memoryview(rng.randbytes(2 * _CHUNK))
    made: list[Path] = []
    while (left := round(_FULL * total) - files.room(root)[0]) > 0:
        if time.monotonic() > deadline:
            raise RunError("ageing the file system took longer than the study allows (limits.prepare)")
        batch = 0  # how much is used is known of what was written back
        while batch < min(left, max(total // 100, _CHUNK)):
            path = root / FOLDER / f"{rng.randrange(_FOLDERS):02d}" / f"{number}-{len(made)}"
            size = min(round(rng.lognormvariate(_MU, _SIGMA)) + 1, round(total * _LARGEST_SHARE))
            try:
                _write(path, size, content, rng)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                path.unlink(missing_ok=True)  # it keeps more for itself than it says: then this is full
                return made
            made.append(path)
            batch += size
        files.sync_file_system(root)
    return made


def _thin(root: Path, there: list[Path], fill: float) -> None:
    """Delete the last ones, in whatever order they are given."""
    total = sum(files.room(root))
    while there and (excess := files.room(root)[0] - round(fill * total)) > 0:
        deleted = 0
        while there and deleted < excess:
            path = there.pop()
            deleted += path.stat().st_blocks * 512
            path.unlink()
        files.sync_file_system(root)


def _write(path: Path, size: int, content: memoryview, rng: random.Random) -> None:
    with path.open("xb", buffering=0) as file:
        while size > 0:
            begin = rng.randrange(_CHUNK)
            size -= file.write(content[begin : begin + min(size, _CHUNK)])


def pieces_of_a_new_file(root: Path, ask: Ask) -> dict[str, Scalar]:
    """In how many pieces a file comes to lie that takes a share of what is free; it goes again. Raises RunError."""
    path = root / FOLDER / "probe"
    size = round(files.room(root)[1] * _PROBE_SHARE)
    try:
        _write(path, size, memoryview(os.urandom(2 * _CHUNK)), random.Random(0))
        files.sync_file_system(root)
        found = re.search(r": (\d+) extents? found", ask(["filefrag", str(path)]))
        path.unlink()
        files.sync_file_system(root)
    except OSError as error:
        raise RunError(f"cannot see in how many pieces a new file lies: {error}") from error
    return {} if found is None else {"new_file_bytes": size, "new_file_pieces": int(found[1])}


def free_space(kind: str, device: Path, ask: Ask) -> dict[str, Scalar]:
    """The pieces of free space of an unmounted file system, as its own program counts them; btrfs has none that does.

    Raises RunError.
    """
    if kind == "ext4":
        said = ask(["e2freefrag", str(device)])
        pieces = re.search(r"^Num\. free extent:\s+(\d+)", said, re.MULTILINE)
        mean = re.search(r"^Avg\. free extent:\s+(\d+) KB", said, re.MULTILINE)
        if pieces is None or mean is None:
            return {}
        return {"free_pieces": int(pieces[1]), "free_piece_bytes_mean": int(mean[1]) * 1024}
    if kind == "xfs":
        said = ask(["xfs_db", "-r", "-c", "freesp -s", "-c", "sb 0", "-c", "p blocksize", str(device)])
        pieces = re.search(r"^total free extents (\d+)", said, re.MULTILINE)
        mean = re.search(r"^average free extent size ([\d.]+)", said, re.MULTILINE)
        block = re.search(r"^blocksize = (\d+)", said, re.MULTILINE)
        if pieces is None or mean is None or block is None:
            return {}
        return {"free_pieces": int(pieces[1]), "free_piece_bytes_mean": round(float(mean[1]) * int(block[1]))}
    return {}
