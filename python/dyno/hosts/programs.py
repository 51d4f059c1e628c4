"""What programs of this machine need in order to run somewhere else: their interpreters and libraries, path by path."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from dyno.model.base import RunError

SYSTEM_PATH = "/usr/bin:/usr/sbin:/bin:/sbin"
"""Where a system's own programs are: the first of a name on a user's PATH may be another one."""

_LIMIT_S = 30.0
_LIBRARY = re.compile(r"(?:=>\s+|^\s*)(/\S+)\s+\(0x[0-9a-f]+\)", re.MULTILINE)
_MISSING = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
_MOST_LINKS = 40  # as the kernel's own limit for one path, path_resolution(7)


def find(name: str) -> Path | None:
    """A program of the system's, before one of the PATH; None where there is none."""
    found = shutil.which(name, path=f"{SYSTEM_PATH}:{os.environ.get('PATH', '')}")
    return None if found is None else Path(found)


def closure(programs: Iterable[Path]) -> set[Path]:
    """Programs or shared objects, and all that the loader takes for them, with every symbolic link on the way.

    Of a script it is the interpreter that is followed; which programs and files it uses is not looked into. What a
    program opens by itself while it runs, such as plugins, has to be named too. Raises RunError where something that
    is needed is missing.
    """
    found: set[Path] = set()
    waiting = [path.absolute() for path in programs]
    followed: set[Path] = set()
    while waiting:
        path = waiting.pop()
        found |= resolved(path)
        if path in followed:
            continue
        followed.add(path)
        waiting += _needs(path)
    return found


def resolved(path: Path) -> set[Path]:
    """A path's end, and each symbolic link on the way to it. Raises RunError where there is nothing at its end."""
    found: set[Path] = set()
    place, left, links = Path("/"), list(path.parts[1:]), 0
    while left:
        part = left.pop(0)
        if part == "..":
            place = place.parent
            continue
        place = place / part
        if not place.is_symlink():
            continue
        links += 1
        if links > _MOST_LINKS:
            raise RunError(f"{path} leads through a circle of symbolic links")
        found.add(place)
        target = place.readlink()
        left = [*target.parts[1:], *left] if target.is_absolute() else [*target.parts, *left]
        place = Path("/") if target.is_absolute() else place.parent
    if not place.exists():
        raise RunError(f"{path} does not exist")
    return found | {place}


def _needs(path: Path) -> list[Path]:
    try:
        with path.open("rb") as file:
            first = file.readline(256)
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from error
    if first.startswith(b"#!"):
        return [Path(os.fsdecode(first[2:].split()[0]))]
    said = _ask(["ldd", str(path)])
    if missing := _MISSING.search(said):
        raise RunError(f"{path} needs {missing[1]}, which is not found")
    return [Path(library) for library in _LIBRARY.findall(said)]


def _ask(argv: Sequence[str]) -> str:
    try:
        answer = subprocess.run(
            argv, env={"PATH": SYSTEM_PATH, "LC_ALL": "C"}, capture_output=True, timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunError(f"`{' '.join(argv)}` could not be carried out: {error}") from error
    said = answer.stdout.decode(errors="surrogateescape")
    why = answer.stderr.decode(errors="replace").strip()
    # A program without a loader needs nothing.
    if answer.returncode != 0 and "not a dynamic executable" not in said + why:
        raise RunError(f"`{' '.join(argv)}` ended with status {answer.returncode}: {why or said.strip()}")
    return said
