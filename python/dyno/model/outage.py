"""What a fault cost those who asked: by every attempt that clients made, before it and after.

An outage is the longest time without a success after the fault was struck. It is called an interruption where it is
more than twice the longest time without one before: shorter ones come about by chance, and the first success after the
fault is then simply the first. See docs/failover.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

SHARE = 0.95
"""Of the former throughput, which counts as it having come back."""
WINDOW_S = 1.0
"""Over which that throughput is looked at."""
_S = 1e9
_CHANCE = 2.0


class Attempt(NamedTuple):
    """One, in ns since the epoch: when it was due, sent and ended, and whether it succeeded."""

    due_ns: int
    sent_ns: int
    ended_ns: int
    ok: bool


@dataclass(frozen=True)
class Outage:
    """Times in seconds, since the fault was struck unless they are lengths; None where it did not come to that."""

    watched_s: float
    former_per_s: float
    usual_gap_s: float
    interrupted: bool
    outage_s: float | None
    at_least_s: float | None
    first_success_s: float | None
    resolution_s: float | None
    former_throughput_s: float | None
    lost_work: float
    failed: int
    late: int


def outage(attempts: Sequence[Attempt], *, from_ns: int, struck_ns: int, until_ns: int, late_s: float) -> Outage | None:
    """What a fault at `struck_ns` did to those attempts of a measured part from `from_ns` to `until_ns`.

    None where nothing succeeded before the fault, or it was not struck within the part: there is nothing to go by.
    """
    ends = sorted(each.ended_ns for each in attempts if each.ok and each.ended_ns >= from_ns)
    place = bisect_left(ends, struck_ns)
    before, after = ends[:place], ends[place:]
    if not before or not from_ns < struck_ns < until_ns:
        return None
    former_per_s = len(before) / ((struck_ns - from_ns) / _S)
    usual = max(b - a for a, b in pairwise([from_ns, *before, struck_ns]))
    gaps = list(pairwise([struck_ns, *after]))
    longest = max(gaps, key=lambda gap: gap[1] - gap[0], default=None)
    tail = until_ns - (after[-1] if after else struck_ns)
    # The end of the drive cuts off the last gap: it is one only where it is beyond chance, and longer than all others.
    unended = tail >= max(WINDOW_S * _S, _CHANCE * usual, 0 if longest is None else longest[1] - longest[0])
    interrupted = unended or (longest is not None and longest[1] - longest[0] > _CHANCE * usual)
    first = None if unended else _first_success(attempts, struck_ns, longest if interrupted else None)
    begin = struck_ns if not interrupted or longest is None else longest[1]
    back = None if unended else _back(ends, begin, until_ns, former_per_s)
    last = until_ns if back is None else back
    done = bisect_left(ends, last) - place
    later = [each for each in attempts if each.ended_ns >= struck_ns]
    return Outage(
        watched_s=(until_ns - struck_ns) / _S,
        former_per_s=former_per_s,
        usual_gap_s=usual / _S,
        interrupted=interrupted,
        outage_s=None if unended or longest is None else (longest[1] - longest[0]) / _S,
        at_least_s=tail / _S if unended else None,
        first_success_s=None if first is None else (first.ended_ns - struck_ns) / _S,
        resolution_s=None if first is None else _resolution(attempts, first, struck_ns),
        former_throughput_s=None if back is None else (back - struck_ns) / _S,
        # What was done besides, as where a backlog is worked off, makes up for nothing that was lost before.
        lost_work=max(former_per_s * (last - struck_ns) / _S - done, 0.0),
        failed=sum(not each.ok for each in later),
        late=sum(each.ok and each.ended_ns - each.due_ns > late_s * _S for each in later),
    )


def _first_success(attempts: Sequence[Attempt], struck_ns: int, gap: tuple[int, int] | None) -> Attempt | None:
    """The success that ended the gap; without one, the first of a request that was sent after the fault."""
    if gap is not None:
        return next((each for each in attempts if each.ok and each.ended_ns == gap[1]), None)
    sent = [each for each in attempts if each.ok and each.sent_ns >= struck_ns]
    return min(sent, key=lambda each: each.ended_ns, default=None)


def _resolution(attempts: Sequence[Attempt], first: Attempt, struck_ns: int) -> float:
    """Had the store been there earlier than this before the first success, an earlier request would have shown it."""
    earlier = [each.sent_ns for each in attempts if struck_ns <= each.sent_ns < first.sent_ns]
    return (first.sent_ns - max(earlier, default=min(struck_ns, first.sent_ns))) / _S


def _back(ends: Sequence[int], begin: int, until_ns: int, former_per_s: float) -> int | None:
    """From when on throughput over a window is what it was, but for a twentieth."""
    window = round(WINDOW_S * _S)
    wanted = SHARE * former_per_s * WINDOW_S
    for start in (begin, *ends[bisect_left(ends, begin) :]):
        if start + window > until_ns:
            return None
        if bisect_left(ends, start + window) - bisect_left(ends, start) >= wanted:
            return start
    return None
