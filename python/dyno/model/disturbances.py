"""What else went on on the machine when a measurement began."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

BUSY = 0.5
"""Load average a CPU: others would then have half of what is measured, if they go on."""


def disturbances(environment: Mapping[str, Any]) -> Iterator[str]:
    """Sentences, from an `environment.json`; none where nothing is known, as of an earlier dyno."""
    load, cpus = environment.get("load", {}), environment.get("cpu", {}).get("usable")
    if others := load.get("other_dyno_sessions"):
        which = "Another dyno" if others == 1 else f"{others:,} others of dyno"
        yield f"{which} ran on this machine at the start: each disturbs the other's figures."
    average = load.get("one_minute")
    if average is not None and cpus and average > BUSY * cpus:
        yield (
            f"The load average was {average:.3g} on {cpus:,} CPUs at the start: other programs were at work, or had "
            "just been. What they take is missing from these figures, and not evenly."
        )
