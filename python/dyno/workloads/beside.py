"""Files of the user's that a workload is made of, such as job files: read once, with the study, and kept in its plan.

So what was measured is told by the results alone, `--resume` sees a file that was changed, and a report needs no file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationInfo

FOLDER = "folder"
"""In the context of a validation: the folder of the study file."""

_MOST_BYTES = 1024 * 1024


def with_text(given: Any, info: ValidationInfo) -> Any:
    """Options whose key `file` names a file, with what stands in it as `text`. Raises ValueError.

    Options that were read from a plan have their text already, and no folder to look in.
    """
    if not isinstance(given, Mapping) or not isinstance(given.get("file"), str):
        return given
    if not info.context or FOLDER not in info.context:
        return given
    one_of_both(given)
    return {**given, "text": read(Path(info.context[FOLDER]), given["file"])}


def one_of_both(given: Mapping[str, Any]) -> None:
    """Raises ValueError where a user gives a file and what would stand in it."""
    if given.get("file") is not None and given.get("text") is not None:
        raise ValueError("file and text are both given, and a workload is one of them: leave one out")


def read(folder: Path, name: str) -> str:
    """What stands in a file, by its path from the study file. Raises ValueError."""
    where = PurePosixPath(name)
    if where.is_absolute() or not where.name:
        raise ValueError(f"{name!r} should be a path from the study file, such as workloads/mine.f")
    path = folder / name
    try:
        if path.is_file() and path.stat().st_size > _MOST_BYTES:
            raise ValueError(f"{name} has more than {_MOST_BYTES} bytes; that is no such file")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{name}: byte {error.start + 1} is not UTF-8; save the file as UTF-8") from error
    except OSError as error:
        raise ValueError(f"{name} cannot be read: {error.strerror} (looked for from the study file)") from error
