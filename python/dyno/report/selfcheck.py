"""What a report says of the instrument on the machine that measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from dyno.model.selfcheck import STALE_AFTER_DAYS, Judged, Machine, Selfcheck
from dyno.report.source import Source

NONE = "None was made on this machine before these runs: `dyno selfcheck --quick` makes one."
_DAY_NS = 86_400 * 10**9


@dataclass(frozen=True)
class Block:
    """When and where it was made, what to know of that, and its parts by name."""

    heading: str
    cautions: tuple[str, ...] = ()
    parts: tuple[tuple[str, Judged], ...] = ()


def block_of(results: Source) -> Block:
    """The self-check that was kept with a results folder."""
    found = results.selfcheck
    if found is None:
        return Block(NONE)
    first_run = results.runs[0].started_ns if results.runs else None
    return block(found, Machine.of(results.environment), first_run)


def block(found: Selfcheck, machine: Machine | None = None, measured_ns: int | None = None) -> Block:
    """A self-check, held against the machine of a study and the time of its first run; None where it is just made."""
    differs = [] if machine is None else list(found.machine.differences(machine))
    of = "another machine, or of this one as it was" if differs else "this machine"
    heading = f"Made {datetime.fromtimestamp(found.made_ns / 1e9, UTC):%Y-%m-%d}, {found.scale}, of {of}."
    return Block(heading, tuple(_cautions(found, differs, measured_ns)), found.parts())


def _cautions(found: Selfcheck, differs: list[str], measured_ns: int | None) -> Iterator[str]:
    if differs:
        yield f"It says nothing of these results: {'; '.join(differs)}."
    days = 0 if measured_ns is None else (measured_ns - found.made_ns) // _DAY_NS
    if days > STALE_AFTER_DAYS:
        yield f"It was {days} days old when these runs were made: a machine changes in that time."
    yield from found.disturbances
    if found.scale == "smoke":
        yield "At scale smoke it tests dyno and says nothing of a machine."
