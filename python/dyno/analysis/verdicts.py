"""What held each cell back: one sentence, with the figures that it rests on.

Each run is judged by itself (`bottlenecks`), by what the *system's processes* did (`observed`); a cell's verdict is
that of most of its runs. docs/verdicts.md has every rule, and each threshold with its reason.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from dyno.analysis.bottlenecks import FAMILY, Judged, judge
from dyno.analysis.demands import LIMIT
from dyno.analysis.observed import FIGURES, THRESHOLDS
from dyno.analysis.sentences import capital, joined
from dyno.model.findings import (
    BOTTLENECKS,
    Bottleneck,
    BottleneckVerdict,
    VerdictEvidence,
)
from dyno.model.run import Outcome, RunRecord
from dyno.model.saturation import DRIVER_IS_THE_LIMIT
from dyno.model.study import Cell, Study
from dyno.model.units import counted, format_size
from dyno.model.usage import Usage


def verdicts(study: Study, runs: Sequence[RunRecord], used: Mapping[int, Usage]) -> Iterator[BottleneckVerdict]:
    """One for each cell of which a run was observed, or was invalid for its driver; in the order of the cells.

    None at scale smoke, whose sizes say nothing of what holds anything back.
    """
    if not study.judged:
        return
    by_cell: dict[int, list[RunRecord]] = {}
    for run in sorted(runs, key=lambda each: each.run):
        by_cell.setdefault(run.slot.cell, []).append(run)
    for cell in study.cells:
        of_cell = by_cell.get(cell.index, [])
        judged = [
            found
            for run in of_cell
            if run.outcome is Outcome.OK and run.run in used and (found := judge(cell, run, used[run.run]))
        ]
        if judged:
            yield _verdict(cell, judged)
        elif driven := [run for run in of_cell if _is_of_driver(run)]:
            yield _of_driver(cell, driven)


def _is_of_driver(run: RunRecord) -> bool:
    return run.outcome is Outcome.INVALID and (run.cause or "").startswith(DRIVER_IS_THE_LIMIT)


def _of_driver(cell: Cell, runs: Sequence[RunRecord]) -> BottleneckVerdict:
    n = len(runs)
    return BottleneckVerdict(
        cell=cell.index,
        levels=cell.levels,
        kind="driver",
        sentence=f"Waiting on the driver: no run of it is ok, and {'one is' if n == 1 else f'{n:,} are'} invalid since "
        f"{runs[-1].cause}.",
        evidence=(),
        agree=n,
        runs=n,
        next="What the system could do is not known.",
    )


def _verdict(cell: Cell, judged: Sequence[Judged]) -> BottleneckVerdict:
    counts = Counter(each.kind for each in judged)
    kind, agree = counts.most_common(1)[0]
    n = len(judged)
    if 2 * agree <= n and n > 1:
        said = joined([f"{BOTTLENECKS[name]} ({count})" for name, count in counts.most_common()], 4)
        return BottleneckVerdict(
            cell=cell.index,
            levels=cell.levels,
            kind="undecided",
            sentence=f"Undecided: no verdict is that of most of {counted(n, 'run')}: {said}.",
            evidence=(),
            agree=agree,
            runs=n,
        )
    alike = [each for each in judged if each.kind == kind]
    # That of most of them: runs that agree may still rest on different figures, such as reads or writes.
    shown = Counter(each.evidence for each in alike).most_common(1)[0][0]
    full = 2 * sum(each.full for each in alike) > len(alike)
    figures = _means([each.figures for each in alike])
    told = _told(kind, figures, shown, full=full, facts=alike[0].facts)
    return BottleneckVerdict(
        cell=cell.index,
        levels=cell.levels,
        kind=kind,
        sentence=f"{told}.",
        evidence=tuple(_evidence(figures, shown)),
        agree=agree,
        runs=n,
        against=(*_slowed(cell), *_against(kind, figures, alike, counts, n)),
        next=_next(kind, alike),
        limited=shown[0].removeprefix(LIMIT) if full and shown[0].startswith(LIMIT) else None,
    )


def _slowed(cell: Cell) -> Iterator[str]:
    if (dose := cell.intervention) is not None and dose.dose > 0:
        yield f"It was slowed on purpose ({dose.level}): what holds it back otherwise is said of the cell without."


def _means(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {
        name: fmean(figures[name] for figures in found if name in figures)
        for name in FIGURES
        if any(name in figures for figures in found)
    }


def _evidence(figures: Mapping[str, float], shown: Sequence[str]) -> Iterator[VerdictEvidence]:
    for name in shown:
        if name in figures:
            known = FIGURES[name]
            threshold = THRESHOLDS[known.rule] if known.rule else None
            yield VerdictEvidence(name=known.title, value=figures[name], threshold=threshold, unit=known.unit)


def _told(
    kind: Bottleneck, f: Mapping[str, float], shown: Sequence[str], *, full: bool, facts: Mapping[str, str]
) -> str:
    """The sentence, without its full stop."""
    name = capital(BOTTLENECKS[kind])
    system = "the system" if facts["of"] == "server" else "the driver's process, in which the system is,"
    of_clients = f" of {f['clients']:.3g} clients" if "clients" in f else ""
    # Little's law counts who waits for an answer: of writes that are only handed over nobody does, but their threads.
    if f.get("clients", math.inf) < sum(f.get(each, 0.0) for each in ("cpu", "waited", "blocked", "syncing")) / 1.05:
        of_clients = " threads"
    if kind == "cpu-quota":
        held = (
            f", and it was held back {f['throttled'] / 100:.2f} s a second, over its CPUs" if "throttled" in f else ""
        )
        return f"{name}: {system} used {f['cpu']:.2f} of the {f['quota']:.3g} CPUs that it may{held}"
    if kind == "cpu-all":
        return (
            f"{name}: {_percent(f['cpus_busy'])} of {f['cpus']:g} CPUs were busy, {system} used {f['cpu']:.2f}, and "
            f"{_percent(f['waited_share'])} of the time that it wanted a CPU it had none"
        )
    if kind == "cpu-thread":
        one = f"one thread of {system} was on a CPU {_percent(f['busiest'])} of the time"
        return f"{name}: {one}, while {f['cpu']:.2f} of {f.get('cpus', 0.0):g} CPUs were used by all of it"
    if kind == "cpu-path":
        return (
            f"{name}: {f['cpu'] + f['waited']:.2f}{of_clients} were on a CPU of {system} or waiting for one, and "
            + (
                "nothing of it that they share was full: more clients would use more of it"
                if "cpus_busy" in f
                else "whether those that it is held to were full was not observed"
            )
        )
    if kind == "locks":
        return f"{name}: {f['locked']:.2f}{of_clients} waited for a row lock"
    if kind == "network":
        return (
            f"{name}: the busiest interface was used {_percent(f.get('interface', 0.0))}, and "
            f"{_percent(f.get('retransmitted', 0.0))} of segments were sent anew"
        )
    if kind == "driver":
        return _told_of_driver(name, f, of_clients, facts)
    if kind == "unexplained":
        return _told_of_nothing(name, f, of_clients)
    return _told_of_disk(kind, name, f, shown, full=full, system=system, of_clients=of_clients)


def _told_of_disk(
    kind: Bottleneck,
    name: str,
    f: Mapping[str, float],
    shown: Sequence[str],
    *,
    full: bool,
    system: str,
    of_clients: str,
) -> str:
    busy = f"the device was busy {_percent(f['device_busy'])} of the time" if "device_busy" in f else ""
    if kind == "disk-sync":
        waiting = f"{f['syncing']:.2f}{of_clients} were" if not full else f"{f['syncing']:.2f} threads of {system} were"
        return f"{name}: at any time {waiting} waiting for a sync to end{f', while {busy}' if busy else ''}"
    waiting = f"{f.get('blocked', 0.0) + f.get('syncing', 0.0):.2f} threads of {system} waited for it"
    if kind == "memory":
        if f.get("swapped", 0.0) >= THRESHOLDS["swapped"]:
            return f"{name} (swap): {format_size(f['swapped'] * 1024)} were swapped a second, and {waiting}"
        return (
            f"{name} (reclaim): {_percent(f['refaulted'])} of what was read had been evicted not long before, its "
            f"memory was {_percent(f['memory_full'])} full, and {f.get('blocked', 0.0):.2f} threads of {system} waited "
            "for such reads"
        )
    if shown[0].startswith(LIMIT):
        what = FIGURES[shown[0]].title.removeprefix("use of ")
        if f.get("blocked", 0.0) + f.get("syncing", 0.0) < THRESHOLDS["at_device"]:
            waiting = f"{_percent(f['unseen'])} of the clients' time was spent unseen, as of asynchronous I/O"
        return f"{name}: {_percent(f[shown[0]])} of {what} was used, and {waiting}{f'; {busy}' if busy else ''}"
    if full:
        size = f" by requests of {format_size(f['request'])}" if "request" in f else ""
        return f"{name}: {busy}{size}, and {waiting}"
    waiting = f"{f.get('blocked', 0.0):.2f}{of_clients} waited for a device"
    return f"{name}: {waiting}{f', though {busy}' if busy else ''}"


def _told_of_driver(name: str, f: Mapping[str, float], of_clients: str, facts: Mapping[str, str]) -> str:
    idle = f"the system used {f['cpu']:.2f} CPUs and nothing of it was full"
    if facts.get("pace") == "rate":
        return f"{name}: requests came at a given rate, which the system could serve: {idle}"
    if facts.get("pace") == "waits":
        return f"{name}: clients paused between their requests, as asked: {idle}"
    return (
        f"{name}: {f.get('driver', 0.0):.2f}{of_clients} were in the driver, running or waiting for a CPU, and {idle}"
    )


def _told_of_nothing(name: str, f: Mapping[str, float], of_clients: str) -> str:
    if "unseen" not in f:
        return f"{name}: how many clients there were is not known, and nothing was full"
    if f["unseen"] < THRESHOLDS["most"]:
        return f"{name}: nothing was full, and{of_clients.removeprefix(' of')} were now here, now there"
    return (
        f"{name}: {_percent(f['unseen'])} of the clients' time was spent neither on a CPU, nor waiting for one, for a "
        "device, a sync or a row lock, as far as these were observed: no resource explains it"
    )


def _against(
    kind: Bottleneck, f: Mapping[str, float], alike: Sequence[Judged], counts: Counter[Bottleneck], n: int
) -> Iterator[str]:
    """What does not fit, most telling first."""
    others = Counter(name for each in alike for name in set(each.also))
    for name, count in others.items():
        often = "" if count == len(alike) else f" in {count} of {len(alike)} runs"
        yield f"It was {BOTTLENECKS[name]} as well{often}: fewer clients were there."
    for name, count in counts.items():
        if name != kind:
            yield f"{counted(count, 'run').capitalize()} of {n} {'says' if count == 1 else 'say'}: {BOTTLENECKS[name]}."
    family = FAMILY.get(kind)
    if f.get("device_busy", 0.0) >= THRESHOLDS["device_busy"] and family != "the disk":
        waited = f.get("blocked", 0.0) + f.get("syncing", 0.0)
        yield (
            f"The device was busy {_percent(f['device_busy'])} of the time, but only {waited:.2f} threads of the "
            "system waited for it: those who ask without being blocked (asynchronous I/O, io_uring) are not seen there."
        )
    if f.get("cpus_busy", 0.0) >= THRESHOLDS["cpus_busy"] and family != "the CPU" and "cpu-all" not in others:
        if f["waited_share"] < THRESHOLDS["waited_share"]:
            but = f"the system waited for one only {_percent(f['waited_share'])} of the time that it wanted it"
        else:
            but = f"only {f['cpu'] + f['waited']:.2f} threads of the system were there or waited for one"
        yield f"The CPUs were busy {_percent(f['cpus_busy'])} of the time, but {but}."
    throttled, quota_used = f.get("throttled", 0.0), f.get("quota_used", 0.0)
    if throttled >= THRESHOLDS["throttled"] and f["waited_share"] >= THRESHOLDS["waited_share"] and kind != "cpu-quota":
        yield (
            f"Its CPU quota held it back {throttled / 100:.2f} s a second, over its CPUs, though it used "
            f"{_percent(quota_used)} of it: it came in bursts, or was not all that waited."
        )
    if f.get("rest", 0.0) >= THRESHOLDS["rest"]:
        yield (
            f"{_percent(f['rest'])} of the CPUs went to processes that were not watched: to others on this machine, or "
            "to those of a server of several, which `tree: true` of the machine observer watches."
        )
    if f.get("steal", 0.0) >= THRESHOLDS["steal"]:
        yield f"The hypervisor took {_percent(f['steal'])} of the CPUs."
    if "blocked" not in f or "syncing" not in f:
        yield "Waits for a device or a sync were not observed, as an earlier dyno or another user's processes have it."


def _next(kind: Bottleneck, alike: Sequence[Judged]) -> str:
    """What is used most of all else, where something is."""
    family = FAMILY.get(kind)
    uses: dict[str, list[float]] = {}
    for each in alike:
        of_run: dict[str, float] = {}
        for place in each.places:
            name = FAMILY[place.kind]
            if name != family:
                of_run[name] = max(of_run.get(name, 0.0), place.use)
        for name, use in of_run.items():
            uses.setdefault(name, []).append(use)
    if not uses:
        return ""
    name = max(uses, key=lambda each: fmean(uses[each]))
    use = fmean(uses[name])
    if use < 1:
        return ""
    verb = "was used" if name != "the driver" else "had"
    rest = "" if name != "the driver" else " of the clients' time"
    if name == "row locks":
        return f"Next: {name}, for which {_percent(use)} of the other clients waited."
    return f"Next: {name}, which {verb} {_percent(use)}{rest}."


def _percent(value: float) -> str:
    return f"{value:.0f}%" if value >= 9.5 else f"{value:.2g}%"
