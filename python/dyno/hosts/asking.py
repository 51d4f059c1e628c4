"""Asking a program that ends at once: what it says, and nothing of the machine is changed."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dyno.model.base import RunError

_LIMIT_S = 30.0


@dataclass(frozen=True)
class Answer:
    """What it ended with."""

    status: int
    said: str
    complained: str


def ask(argv: Sequence[str], files: Mapping[str, str] | None = None) -> Answer:
    """Its answer, in a folder of its own in which these files stand. Raises RunError where it gives none."""
    with tempfile.TemporaryDirectory(prefix="dyno-ask-") as folder:
        for name, text in (files or {}).items():
            (Path(folder) / name).write_text(text)
        try:
            answer = subprocess.run(
                argv, cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=_LIMIT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise RunError(f"`{' '.join(argv)}` could not be carried out: {error}") from error
    said, complained = (text.decode(errors="replace") for text in (answer.stdout, answer.stderr))
    return Answer(answer.returncode, said, complained)
