"""Where a system can be reached: what a system gives and a workload takes, so that neither knows the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

READ_ONLY = "read_only"
"""Of the ways in besides the first, the one that nodes answer which are only read."""


@dataclass(frozen=True)
class Endpoint:
    """A system that is ready.

    `backend` is the protocol spoken there, `settings` what a driver of that backend needs to reach it (keys as under
    `backend` in `schema/job.schema.json`), `processes` the ids of the system's own processes by subject; empty for an
    embedded system, whose work is done inside the driver. All that a `volatile` one holds is gone with the driver's
    process: it is loaded by the run phase, before anything is measured, which also looks at it in the end.

    `namespace` is the file of the network namespace from which it is reached; that of dyno itself where it is None.
    `others` are further ways in, from there too, with settings as in `settings`: `read_only`, and one a node by its
    name.

    `tables` is how the study has its tables laid out, as `TableOptions.design` gives it; `dyno.ddl` makes statements of
    it. None of a kind of system that takes no such options.
    """

    backend: str
    settings: dict[str, Any] = field(default_factory=dict)
    processes: dict[str, int] = field(default_factory=dict)
    volatile: bool = False
    namespace: str | None = None
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    tables: Mapping[str, Any] | None = None

    def by(self, way: str) -> Endpoint:
        """The same system by another way in. Raises KeyError where there is none of that name."""
        return replace(self, settings=dict(self.others[way]))
