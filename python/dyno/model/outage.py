"""What a fault cost those who asked: by every attempt that clients made, before it and after.

An interruption is a time without a success that is more than twice the longest one before the fault: shorter ones come
about by chance. The outage is the longest that begins before mending does; what a node costs that comes back is told by
itself. Where nothing is interrupted, the first success after the fault is simply the first. See docs/failover.md.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

SHARE = 0.95
"""Of the requests that were answered in time before, as many of which count as all being as it was."""
WINDOW_S = 1.0
"""Over which that share is looked at, twice in succession: one window may be as good by luck."""
_S = 1e9
_WINDOW_NS = round(WINDOW_S * _S)
_CHANCE = 2.0


class Attempt(NamedTuple):
    """One, in ns since the epoch: when it was due, sent and ended, and whether it succeeded."""

    due_ns: int
    sent_ns: int
    ended_ns: int
    ok: bool


@dataclass(frozen=True)
class Outage:
    """Times in seconds, since the fault was struck unless they are lengths; None where it did not come to that.

    `interruptions` are those that begin before mending, with when each begins and how long it is. What has `at_least`
    beside it is None where a time without a success was not over at the end: that may have become the longest.
    `lost_work` is what was not done in time until `former_throughput_s`, and at the least that where it is None;
    `failed` and `late` are of all that was watched.
    """

    watched_s: float
    former_per_s: float
    usual_gap_s: float
    interruptions: tuple[tuple[float, float], ...]
    outage_s: float | None
    at_least_s: float | None
    first_success_s: float | None
    first_success_at_least_s: float | None
    resolution_s: float | None
    former_throughput_s: float | None
    former_throughput_at_least_s: float | None
    rejoin_outage_s: float | None
    rejoin_at_least_s: float | None
    lost_work: float
    failed: int
    late: int

    @property
    def interrupted(self) -> bool:
        """Whether anything stands out."""
        return bool(self.interruptions)


@dataclass(frozen=True)
class _Gaps:
    """Times without a success from `since` on: those that a success ended, and what was seen of one that none did.

    One that is not over may become the longest, however long others were: then the longest is not known.
    """

    ended: tuple[tuple[int, int], ...]
    open: tuple[int, int] | None
    """None where it does not stand out: the drive ends between two successes."""

    @property
    def longest(self) -> tuple[int, int] | None:
        """Of those that ended."""
        return max(self.ended, key=_length, default=None)


def outage(
    attempts: Sequence[Attempt], *, from_ns: int, struck_ns: int, mended_ns: int | None, until_ns: int, late_s: float
) -> Outage | None:
    """What a fault at `struck_ns` did to those attempts of a measured part from `from_ns` to `until_ns`.

    Mending began at `mended_ns`. None where nothing succeeded before the fault, or it was not struck within the part:
    there is nothing to go by.
    """
    ends = sorted(each.ended_ns for each in attempts if each.ok and each.ended_ns >= from_ns)
    place = bisect_left(ends, struck_ns)
    before = ends[:place]
    if not before or not from_ns < struck_ns < until_ns:
        return None
    former_per_s = len(before) / ((struck_ns - from_ns) / _S)
    usual = max(_length(gap) for gap in pairwise([from_ns, *before, struck_ns]))
    mended = until_ns if mended_ns is None else min(mended_ns, until_ns)
    gaps = _gaps(attempts, ends, struck_ns, mended, until_ns, usual)
    felt = [gap for gap in gaps.ended if _stands_out(_length(gap), usual)]
    longest = gaps.longest if felt else None
    # Of those that ended the longest; where none of them is longer than what was seen of the last, that is the outage.
    if gaps.open and (longest is None or _length(longest) <= _length(gaps.open)):
        earliest, back = None, None
    else:
        earliest = _first_success(attempts, struck_ns, longest)
        begin = longest[1] if longest else struck_ns
        back = _back(attempts, begin, from_ns, struck_ns, mended, until_ns, late_s)
    first_s = None if earliest is None else (earliest.ended_ns - struck_ns) / _S
    watched_s = (until_ns - struck_ns) / _S
    back_s = None if back is None else (back - struck_ns) / _S
    last = until_ns if back is None else back
    later = [each for each in attempts if each.ended_ns >= struck_ns]
    rejoin = _gaps(attempts, ends, mended, until_ns, until_ns, usual) if mended < until_ns else None
    return Outage(
        watched_s=watched_s,
        former_per_s=former_per_s,
        usual_gap_s=usual / _S,
        interruptions=tuple(
            ((gap[0] - struck_ns) / _S, _length(gap) / _S) for gap in (*felt, *([gaps.open] if gaps.open else ()))
        ),
        outage_s=_ended_s(gaps),
        at_least_s=_open_s(gaps),
        first_success_s=None if gaps.open else first_s,
        first_success_at_least_s=(watched_s if first_s is None else first_s) if gaps.open else None,
        resolution_s=None if earliest is None or gaps.open else _resolution(attempts, earliest, struck_ns),
        former_throughput_s=None if gaps.open else back_s,
        # What is as before is known only after two windows.
        former_throughput_at_least_s=(
            max(watched_s - 2 * WINDOW_S, 0.0) if back_s is None else back_s if gaps.open else None
        ),
        rejoin_outage_s=None if rejoin is None else _ended_s(rejoin),
        rejoin_at_least_s=None if rejoin is None else _open_s(rejoin),
        lost_work=_lost_work(attempts, from_ns, struck_ns, last, late_s),
        failed=sum(not each.ok for each in later),
        late=sum(each.ok and not _in_time(each, late_s) for each in later),
    )


def _length(gap: tuple[int, int]) -> int:
    return gap[1] - gap[0]


def _stands_out(length: float, usual: int) -> bool:
    return length > _CHANCE * usual


def _gaps(attempts: Sequence[Attempt], ends: Sequence[int], since: int, before: int, until: int, usual: int) -> _Gaps:
    """Those that begin from `since` on and before `before`; `since` itself may begin one."""
    after = ends[bisect_left(ends, since) :]
    ended = tuple(gap for gap in pairwise([since, *after]) if gap[0] < before)
    tail = (after[-1] if after else since, until)
    # Clients that have ended ask nothing: a short time at the end counts as far as somebody asked in it.
    asked = min(max((each.ended_ns for each in attempts), default=since), until) - tail[0]
    is_open = _stands_out(_length(tail), usual) and (_length(tail) >= WINDOW_S * _S or _stands_out(asked, usual))
    return _Gaps(ended, tail if tail[0] < before and is_open else None)


def _lost_work(attempts: Sequence[Attempt], from_ns: int, struck_ns: int, last: int, late_s: float) -> float:
    """The area between what was answered in time before the fault and what was from then until `last`.

    An answer that is late makes up for nothing: else a backlog that is worked off would, and the more of it the
    slower that goes.
    """
    in_time = sorted(each.ended_ns for each in attempts if _in_time(each, late_s))
    begin, struck, end = (bisect_left(in_time, at) for at in (from_ns, struck_ns, last))
    former = (struck - begin) / (struck_ns - from_ns)
    return max(former * (last - struck_ns) - (end - struck), 0.0)


def _ended_s(gaps: _Gaps) -> float | None:
    return None if gaps.open or gaps.longest is None else _length(gaps.longest) / _S


def _open_s(gaps: _Gaps) -> float | None:
    """The longest that was seen, where one was not over."""
    return max(map(_length, (*gaps.ended, gaps.open))) / _S if gaps.open else None


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


def _in_time(each: Attempt, late_s: float) -> bool:
    return each.ok and each.ended_ns - each.due_ns <= late_s * _S


class _Served:
    """Which share of the requests that were due in a window was answered in time, for every window since `from_ns`."""

    def __init__(self, attempts: Sequence[Attempt], from_ns: int, late_s: float) -> None:
        due = sorted((each.due_ns, _in_time(each, late_s)) for each in attempts if each.due_ns >= from_ns)
        self.times = [at for at, _ in due]
        self._answered = [0, *accumulate(was for _, was in due)]

    def share(self, start: int) -> float | None:
        """Of the window from there on; None where nothing was due in it."""
        low, high = bisect_left(self.times, start), bisect_left(self.times, start + _WINDOW_NS)
        return (self._answered[high] - self._answered[low]) / (high - low) if low < high else None

    def is_twice(self, start: int, holds: Callable[[float], bool]) -> bool:
        """Whether something holds of that share in two windows in succession."""
        return all((found := self.share(at)) is not None and holds(found) for at in (start, start + _WINDOW_NS))


def _back(
    attempts: Sequence[Attempt],
    begin: int,
    from_ns: int,
    struck_ns: int,
    mended_ns: int,
    until_ns: int,
    late_s: float,
) -> int | None:
    """From when on those who ask are served as before, but for a twentieth, and stay so until mending.

    By the requests that are due from then on: a backlog that is worked off at once is no sign of it, since those
    requests were due before. What mending does to requests is not of the fault: windows count whose requests were
    answered or late before it.
    """
    served, late = _Served(attempts, from_ns, late_s), round(late_s * _S)
    former = [each for each in attempts if each.due_ns >= from_ns and each.ended_ns < struck_ns]
    wanted = SHARE * sum(_in_time(each, late_s) for each in former) / len(former) if former else SHARE
    ended = (at for at in served.times if at + _WINDOW_NS + late <= struck_ns)
    # Who had late answers before has them after too: two seconds that are worse than any was before are none of these.
    worst = min([wanted, *(found for at in ended if (found := served.share(at)) is not None)])

    starts = (begin, *(at for at in served.times if at >= begin))
    told = mended_ns - 2 * _WINDOW_NS - late
    relapses = (at for at in starts if at <= told and served.is_twice(at, lambda share: share < worst))
    relapsed = max(relapses, default=begin)
    for start in starts:
        if start < relapsed:
            continue
        if start + 2 * _WINDOW_NS > until_ns:
            return None
        if served.is_twice(start, lambda share: share >= wanted):
            return start
    return None
