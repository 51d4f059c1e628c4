"""Has `dyno-core flame` draw flame graphs."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dyno.model.base import UserError
from dyno.model.flames import DrawnFlame, Flame

_LIMIT_S = 300.0


def draw(core: str, flames: Sequence[Flame]) -> list[DrawnFlame]:
    """In their order. Raises UserError."""
    if not flames:
        return []
    with tempfile.TemporaryDirectory(prefix="dyno-flames-") as folder:
        job = Path(folder, "job.json")
        job.write_text(json.dumps(job_of(flames)))
        argv = [core, "flame", "--job", str(job), "--out", folder]
        try:
            answer = subprocess.run(argv, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UserError(f"flame graphs cannot be drawn: {error}") from error
        if answer.returncode != 0:
            raise UserError(f"flame graphs cannot be drawn: {answer.stderr.strip()}")
        return [
            DrawnFlame(
                name=flame.name,
                cell=flame.cell,
                levels=flame.levels,
                against=flame.against,
                page=Path(folder, f"{flame.name}.page.svg").read_text(),
                file=Path(folder, f"{flame.name}.svg").read_text(),
            )
            for flame in flames
        ]


def job_of(flames: Sequence[Flame]) -> dict[str, Any]:
    """The job that draws them (`schema/flame-job.schema.json`)."""
    graphs = []
    for flame in flames:
        graph: dict[str, Any] = {"name": flame.name, "title": _title(flame), "stacks": list(flame.stacks)}
        graphs.append(graph if flame.before is None else {**graph, "before": list(flame.before)})
    return {"format": 1, "graphs": graphs}


def _title(flame: Flame) -> str:
    levels = " ".join(f"{name}={level}" for name, level in flame.levels.items()) or "the only cell"
    return levels if flame.against is None else f"{levels}: what changed against {flame.against}"
