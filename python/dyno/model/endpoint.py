"""Where a system can be reached: what a system gives and a workload takes, so that neither knows the other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Endpoint:
    """A system that is ready.

    `backend` is the protocol spoken there, `settings` what a driver of that backend needs to reach it (keys as under
    `backend` in `schema/job.schema.json`), `processes` the ids of the system's own processes by subject; empty for an
    embedded system, whose work is done inside the driver. All that a `volatile` one holds is gone with the driver's
    process: it is loaded by the run phase, before anything is measured, which also looks at it in the end.
    """

    backend: str
    settings: dict[str, Any] = field(default_factory=dict)
    processes: dict[str, int] = field(default_factory=dict)
    volatile: bool = False
