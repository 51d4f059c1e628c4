"""What a reader must know before believing the figures."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np

from dyno import stats
from dyno.analysis import drift
from dyno.analysis.actions import actions
from dyno.analysis.demands import LIMITED
from dyno.analysis.sentences import joined, levels, listed
from dyno.analysis.table import UNSTEADY, Table
from dyno.model import responses
from dyno.model.findings import (
    BottleneckVerdict,
    CellSummary,
    Comparison,
    Drift,
    OverallRatio,
    format_estimate,
    format_reached,
    format_share,
)
from dyno.model.fractions import fraction_of
from dyno.model.looks import looks
from dyno.model.pairs import Pair, pairs
from dyno.model.run import Course, RunRecord
from dyno.model.study import Cell, Study
from dyno.model.units import counted, format_duration, format_percent

TAILS = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01, "p999": 0.001}  # the share that lies above a quantile
WARM_UPS = ("warmup", "warmup_operations")  # what a workload calls the one that is asked for
MUCH_WIDER = 1.5  # than Student's: from here on a reader who reckons it over is told why
OF_MACHINE = ("cpu.util", "disk.util")  # responses that are not of the system alone
FEW_RUNS = 5  # below it, nothing in the runs can show that noise is not normal
# Settings that change what a store promises, not only how fast it is.
PROMISES = (
    "synchronous",
    "locking_mode",
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
    "sync_binlog",
    "tx_isolation",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "default_transaction_isolation",
    "data_checksums",
    "drbd.disk-flushes",
    "drbd.protocol",
)


def notes(
    study: Study,
    table: Table,
    cells: Sequence[CellSummary],
    comparisons: Sequence[Comparison],
    pooled: Sequence[OverallRatio],
    drifted: Drift,
    ended: str | None,
    disturbed: Sequence[str] = (),
    held_back: Sequence[BottleneckVerdict] = (),
    *,
    decided: bool = False,
) -> Iterator[str]:
    """Sentences, what weighs most first. `cells` and `drifted` are of the deciding response, as what is `decided`."""
    if ended is None:
        yield "The study has not ended: every figure may still change."
    if not study.judged:
        yield "Scale smoke: sizes are tiny, and nothing is judged: the figures say nothing of how fast anything is."
    if shared := study.shared():
        yield f"All cells are with {levels(shared)}, which their names leave out."
    yield from disturbed
    yield from _limited(held_back)
    yield from _missing(study, table, cells)
    yield from _precision(study, cells)
    yield from _courses(study, table)
    yield from _within(study, table, cells)
    yield from _allowance(cells, drifted)
    measured = sum(bool(cell.n) for cell in cells)
    yield from drift.notes(study, drifted, measured, any(cell.ci for cell in cells))
    yield from _unlike_noise(study, cells)
    yield from _promises(study, table)
    yield from _cpus(study, table)
    yield from _errors(table)
    yield from _failed_in_tails(study, table)
    yield from _loops(study, table)
    yield from _of_drivers(study, table)
    yield from actions(study, table)
    yield from _of_machine(study)
    yield from _intervals(study, cells, comparisons, pooled, decided)
    yield from _screening(study, cells)
    if study.order == "fixed" and len(study.cells) > 1:
        yield "The runs went in a fixed order: a drift of the machine can pose as a difference between cells."
    yield _caches(study, table)


def _limited(held_back: Sequence[BottleneckVerdict]) -> Iterator[str]:
    """That what is compared is a limit of the study's own."""
    found = Counter(each.limited for each in held_back if each.limited is not None)
    for name, count in found.items():
        what = LIMITED[name]
        yield (
            f"In {count:,} of {counted(len(held_back), 'cell')} the study's own limit of {what} held throughput back: "
            f"it says there how many {what} an operation takes, and little of what else differs between cells."
        )


def _unlike_noise(study: Study, cells: Sequence[CellSummary]) -> Iterator[str]:
    """Cells whose spread is beyond that of the others, whose own few runs have to say how noisy they are."""
    several = [cell for cell in cells if cell.n > 1 and cell.cov is not None]
    covs = np.array([cell.cov for cell in several], dtype=np.float64)
    noisy = stats.stands_out(covs**2, np.array([cell.n - 1.0 for cell in several]))
    if not noisy.any():
        return
    named = [
        f"{_name(study, cell)} by {format_share(cell.cov or 0.0)}"
        for cell, is_noisy in zip(several, noisy, strict=True)
        if is_noisy
    ]
    others = format_share(float(np.median(covs[~noisy])))
    yield (
        f"Some cells vary far more from run to run than the others (about {others}): {listed(named)}. How noisy they "
        "are, their own few runs have to say: with one such cell, intervals of 95% of its mean held the truth in 90 to "
        "95% of simulated studies. Those of the other cells and of ratios do not suffer."
    )


def _name(study: Study, cell: CellSummary) -> str:
    return levels(study.telling(cell.levels)) or "the only cell"


def _missing(study: Study, table: Table, cells: Sequence[CellSummary]) -> Iterator[str]:
    if table.other_runs and table.ok_runs:
        kinds = Counter(run.outcome.value for run in table.other_runs)
        parts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        yield f"Not ok, and in no figure: {parts} of {len(table.ok_runs) + len(table.other_runs):,} runs."
    without = [_name(study, cell) for cell in cells if not cell.n]
    if without and len(without) < len(cells):
        yield f"No ok run in {counted(len(without), 'cell')}: {listed(without)}."
    if table.not_finite:
        yield f"{counted(table.not_finite, 'value')} of ok runs were not finite numbers and are in no figure."
    if table.unknown:
        yield f"Responses unknown to this version of dyno are left out: {', '.join(sorted(table.unknown))}."


def _precision(study: Study, cells: Sequence[CellSummary]) -> Iterator[str]:
    rule = study.replicates
    asked, confidence = format_percent(rule.precision), format_percent(rule.confidence)
    goal = f"{asked} at {confidence} confidence, of the {rule.precision_of} of {rule.of}"
    short = [
        _name(study, cell)
        if cell.reached is None
        else f"{_name(study, cell)} ({rule.precision_of} to {format_reached(cell.reached, rule.precision)})"
        for cell in cells
        if cell.n and not cell.converged
    ]
    if short:
        count = f"{len(short)} of {counted(len(cells), 'cell')}"
        yield f"The precision asked for ({goal}) is not reached in {count}: {listed(short)}."
    measured = [cell.n for cell in cells if cell.n]
    if measured and min(measured) < FEW_RUNS:
        yield (
            f"The smallest cell has {counted(min(measured), 'ok run')}. Student's interval assumes noise that is "
            "normal, which so few runs can neither show nor refute."
        )


def _allowance(cells: Sequence[CellSummary], drifted: Drift) -> Iterator[str]:
    """Where an interval of a mean is mostly what neighbours in time may cost it."""
    widest = max((cell.allowance or 1.0 for cell in cells), default=1.0)
    if widest < MUCH_WIDER:
        return
    seen = "" if drifted.correlation is None else f" ({drift.resemblance(drifted)})"
    yield (
        f"Intervals of means are up to {widest:.1f} times as wide as Student's, since runs next to each other in time "
        f"may resemble each other{seen}. Few runs do not tell how much, so it is provided for: more cells in the "
        "study, or about 20 runs of each, make them narrower."
    )


def _courses(study: Study, table: Table) -> Iterator[str]:
    """What the runs went through, as far as that was looked at."""
    cells = study.numbered()
    parts = [(run.measured, cells[run.slot.cell]) for run in table.ok_runs if run.measured]
    of = f"of {counted(len(table.ok_runs), 'run')}"
    kinds = Counter(part.course for part, _ in parts)
    if unsteady := sum(kinds[kind] for kind in UNSTEADY):
        ways: dict[Course, str] = {"slowing down": "slowing down", "none": "going up and down or still rising"}
        slower = f" ({', '.join(f'{kinds[kind]:,} {way}' for kind, way in ways.items() if kinds[kind])})"
        yield (
            f"No steady state in {unsteady:,} {of}{slower}: their throughput was still changing, so a longer or a "
            "shorter run would have given other figures. Nothing of them is left out; their time lines show it."
        )
    cut = [part.from_s for part, _ in parts if part.from_s > 0]
    if cut:
        yield (
            f"A warm-up was found and left out in {len(cut):,} {of}: {format_duration(statistics.median(cut))} at the "
            f"median, {format_duration(max(cut))} at the most."
        )
    kept = [cell for part, cell in parts if part.course == "warm-up then steady" and part.from_s == 0]
    cold = sum(cell.host.caches == "cold" for cell in kept)
    if cold:
        yield f"Throughput changed before it became steady in {cold:,} {of}, which were cold: all of that counts."
    if warm := len(kept) - cold:
        yield (
            f"A warm-up was found and stays in the figures of {warm:,} {of}: the study asks for that (warmup_detect), "
            "or the driver keeps no histograms from which the rest could be had."
        )
    if kinds[None]:
        yield (
            f"Whether it was steady cannot be told of {kinds[None]:,} {of}: too short, with too few intervals. "
            f"{_would_tell([cell for part, cell in parts if part.course is None])}"
        )


def _would_tell(cells: Sequence[Cell]) -> str:
    """What gives more intervals, by the options that the workloads of these cells have."""
    longer: dict[str, None] = {}
    shorter = False
    for options in (cell.workload.options for cell in cells):
        if "repeat" in options:  # queries: each so often by itself, or so many in a batch
            asked = {"batch": options.get("batch"), "repeat": options.get("singly")}
            longer |= {f"`workload.{name}`": None for name, some in asked.items() if some}
        elif "length" in options:  # rows of a time series, whose `interval` is the time between two of them
            of_action = {"load": "length", "queries": "query_count"}
            longer |= {f"`workload.{name}`": None for name in [of_action.get(str(options.get("action")))] if name}
        elif "interval" in options:
            shorter = True
    by = f" (more of {' or '.join(longer)})" if longer else ""
    return f"A longer run{by}{' or a shorter `workload.interval`' if shorter else ''} would tell."


def _within(study: Study, table: Table, cells: Sequence[CellSummary]) -> Iterator[str]:
    """How sure a throughput is that stands on one run alone."""
    alone = {cell.cell for cell in cells if cell.n == 1}
    told = [
        f"{levels(run.levels) or 'the only cell'}: {format_estimate(found.mean, (found.lo, found.hi))} ops/s "
        f"(effective sample size {found.effective:.2g} of {counted(found.intervals, 'interval')})"
        for run in table.ok_runs
        if run.slot.cell in alone and run.measured and (found := run.measured.within)
    ]
    if told:
        yield (
            f"Throughput within a single run, at {study.replicates.confidence * 100:.4g}% confidence by batch means: "
            f"{listed(told)}. That is how sure the mean of that run is; it says nothing of what another run would give."
        )


def _promises(study: Study, table: Table) -> Iterator[str]:
    compared = pairs(study)
    if any(pair.a.system.kind != pair.b.system.kind for pair in compared):
        yield from _of_systems(study, table, compared)
    read_back: dict[int, Mapping[str, Any]] = {}
    for run in table.ok_runs:
        read_back.setdefault(run.slot.cell, run.settings)
    for name in PROMISES:
        promised: dict[str, str] = {}
        for pair in compared:
            if pair.a.system.kind != pair.b.system.kind:
                continue  # what the other kind does not know by this name, it may well promise by another
            a, b = (_setting(name, read_back.get(cell.index, {})) for cell in (pair.a, pair.b))
            if a is None or b is None:  # as asked: what one side read back is not spelt as the other side's wish
                a, b = (_setting(name, cell.system.options) for cell in (pair.a, pair.b))
            if a != b:
                promised |= {pair.level_a: a or "not set", pair.level_b: b or "not set"}
        if promised:
            told = ", ".join(f"{level}: {value}" for level, value in promised.items())
            yield (
                f"The compared levels differ in {name} ({told}): they do not promise the same, so a difference may be "
                "the price of the promise."
            )


def _of_systems(study: Study, table: Table, compared: Sequence[Pair]) -> Iterator[str]:
    """What systems of different kinds promise of a commit, as far as the settings that they had tell."""
    assert study.compare is not None, "only what is compared has pairs"
    of_level: dict[str, dict[str, set[str | None]]] = {}
    for cell in dict.fromkeys(cell.index for pair in compared for cell in (pair.a, pair.b)):
        level = study.numbered()[cell].levels[study.compare]
        for each in table.promises.get(cell, ()):
            for name, value in each._asdict().items():
                of_level.setdefault(name, {}).setdefault(level, set()).add(value)
    told = []
    for name, values in of_level.items():
        unknown = [level for level, own in values.items() if None in own]
        known = {level: " or ".join(sorted(map(str, own))) for level, own in values.items() if None not in own}
        differing = len(set(known.values())) > 1
        if differing:
            told.append(f"they differ in {name} ({', '.join(f'{level}: {value}' for level, value in known.items())})")
        elif known:
            whose = "all" if not unknown else joined(list(known))
            told.append(f"{name} of {whose}: {next(iter(known.values()))}")
        if unknown:
            told.append(f"the {name} of {joined(unknown)} is not told by settings, and not checked")
    if not told:
        yield "Different systems are compared: that they promise the same durability and isolation is not checked."
        return
    yield (
        f"Different systems are compared. By the settings that they had, {'; '.join(told)}. Where durability differs "
        "between systems of different kinds nothing that takes time is compared; within one kind it is a setting like "
        "others. Which other nodes have a commit when it is acknowledged is what these "
        "systems do each in its way, and is not checked."
    )


def _setting(name: str, options: Mapping[str, Any]) -> str | None:
    """None where it is left to the system, whether by null or by silence."""
    found = next((value for value in _values(name, options) if value is not None), None)
    if isinstance(found, bool):
        return "true" if found else "false"
    return None if found is None else str(found)


def _values(name: str, options: Mapping[str, Any]) -> Iterator[Any]:
    for key, value in options.items():
        if key == name:
            yield value
        elif isinstance(value, Mapping):
            yield from _values(name, value)


def _errors(table: Table) -> Iterator[str]:
    kinds: Counter[str] = Counter()
    runs = 0
    for run in table.ok_runs:
        found = {
            f"{operation} {kind}": count
            for operation, by_kind in run.errors.items()
            for kind, count in by_kind.items()
            if count
        }
        kinds.update(found)
        runs += bool(found)
    if kinds:
        parts = [f"{kind}: {count:,}" for kind, count in kinds.most_common()]
        yield f"Operations ended in errors in {runs:,} of {counted(len(table.ok_runs), 'ok run')} ({listed(parts)})."


def _failed_in_tails(study: Study, table: Table) -> Iterator[str]:
    """Latencies are of operations that succeeded: where more failed than a tail holds, they say little of it."""
    worst: dict[str, float] = {}
    cells: set[int] = set()
    for run in table.ok_runs:
        for name, share in _failed_above(run):
            worst[name] = max(share, worst.get(name, 0.0))
            cells.add(run.slot.cell)
    if worst:
        by_number = study.numbered()
        told = [f"{name} ({format_share(share)} failed)" for name, share in worst.items()]
        where = f", in {listed([levels(by_number[cell].levels) for cell in sorted(cells)])}" if study.factors else ""
        yield (
            "Latencies are of those operations that succeeded, and more failed than lie above these quantiles: "
            f"{listed(told)}{where}."
        )


def _failed_above(run: RunRecord) -> Iterator[tuple[str, float]]:
    """The latency quantiles above which fewer operations lie than failed, and the share that did."""
    failed = {f"{name}.": sum(kinds.values()) for name, kinds in run.errors.items() if name != "warmup"}
    for prefix, count in {"": sum(failed.values()), **failed}.items():
        done = run.responses.get(f"{prefix}throughput", 0.0) * run.responses.get("elapsed", 0.0)
        # Without what was done nothing is known of the share.
        share = count / (count + done) if count and done else 0.0
        for quantile, tail in TAILS.items():
            if f"{prefix}latency_{quantile}" in run.responses and share > tail:
                yield f"{prefix}latency_{quantile}", share


def _cpus(study: Study, table: Table) -> Iterator[str]:
    software = [cell.levels for cell in study.cells if True in table.emulated[cell.index]]
    if not software:
        return
    others = any(False in table.emulated[cell.index] for cell in study.cells)
    which = f"{len(software):,} of {counted(len(study.cells), 'cell')}" if others else "all cells"
    beside = ": against others they stand for what was lost and done, not for how fast" if others else ""
    yield (
        f"The CPUs of the system were emulated by software in {which}{beside}. Emulation makes computing dearer by far "
        "and a device hardly, so no time that was measured there says how fast the system is on real CPUs."
    )


def _loops(study: Study, table: Table) -> Iterator[str]:
    loops = {run.loop for run in table.ok_runs if run.loop}
    measured = any("latency_" in name for name in table.values)
    if len(loops) > 1:
        yield (
            f"Runs of different loops ({', '.join(sorted(loops))}) stand side by side: their latencies are not "
            "compared, since they do not mean the same."
        )
    rates = sorted({run.rate_per_s for run in table.ok_runs if run.rate_per_s is not None})
    if rates:
        told = listed([f"{rate:,g}" for rate in rates])
        yield f"Open loop: requests came at a given rate ({told} a second), and latency counts from when each was due."
    if any(table.loops[pair.a.index] == table.loops[pair.b.index] == {"open"} for pair in pairs(study)):
        yield "Throughput of an open loop is given, not measured: a ratio of it compares the rates that were asked for."
    if "waits" in table.paces.values():
        yield (
            "Clients waited between their requests, as asked (keying or think time): their throughput is mostly this "
            "pace, and what the system could do is more."
        )
    if "closed" in loops and measured:
        yield (
            "Latency was measured in a closed loop: while the store stalls, no request is sent, so the stall is "
            "counted once and the quantiles look better than what users would see (coordinated omission)."
        )


def _of_drivers(study: Study, table: Table) -> Iterator[str]:
    """What the drivers said, each once; of which cells, where it is not said of all."""
    said: dict[str, set[int]] = {}
    for run in table.ok_runs:
        for note in run.notes:
            said.setdefault(note, set()).add(run.slot.cell)
    measured = {run.slot.cell for run in table.ok_runs}
    for note, cells in said.items():
        yield note if cells == measured else f"{note.removesuffix('.')} ({_where(study, cells, measured)})."


def _where(study: Study, cells: Set[int], measured: Set[int]) -> str:
    """Which cells those are: by the levels of one factor where these tell them from the others, else by their names."""
    by_index = study.numbered()
    for factor in study.factors:
        theirs = {by_index[cell].levels[factor.name] for cell in cells}
        if all(cell in cells for cell in measured if by_index[cell].levels[factor.name] in theirs):
            named = [level.name for level in factor.levels if level.name in theirs]
            return f"with {factor.name}={' or '.join(named)}"
    return f"in {listed([levels(by_index[cell].levels) for cell in sorted(cells)])}"


def _of_machine(study: Study) -> Iterator[str]:
    """Targets that neighbours on the machine may miss or meet for the system."""
    asked = dict.fromkeys(target.response for target in study.targets if target.response in OF_MACHINE)
    if asked:
        titles = " and ".join(responses.lookup(response).title for response in asked)
        yield (
            f"Targets of {titles} are judged by the whole machine: the driver and whatever else ran there count as "
            "well, so one that is missed may be missed because of neighbours."
        )


def _intervals(
    study: Study,
    cells: Sequence[CellSummary],
    comparisons: Sequence[Comparison],
    pooled: Sequence[OverallRatio],
    decided: bool,
) -> Iterator[str]:
    if not any(cell.ci for cell in cells):
        return
    rule = study.replicates
    when = looks(study)
    widened = " They are widened for the looks that the study took after each block." if when.first < when.last else ""
    yield f"Intervals are of {format_percent(rule.confidence)} confidence each.{widened}"
    if not study.judged:
        return
    drawn = sum(found.ci is not None for found in comparisons)
    if drawn > 1:
        yield (
            f"What is called a difference is one beyond all {drawn:,} comparisons of this report together: the chance "
            f"of even one false alarm is at most {(1 - rule.confidence) * 100:.2g}% (Holm). Intervals are of each by "
            "itself, so one may leave 1 out and show no difference all the same."
        )
    if decided:
        yield (
            f"Which {study.compare} is the best where is decided by tests of its own, beside those comparisons: that "
            f"its table by {responses.lookup(rule.of).title} is wrong anywhere has a chance of at most "
            f"{(1 - rule.confidence) * 100:.2g}%."
        )
    if len(pooled) > 1:
        yield (
            f"The {len(pooled):,} ratios over many combinations together are a family of their own: the chance of even "
            "one false alarm among these is the same again. They are of the combinations measured, each weighing alike."
        )


def _count(expected: float) -> str:
    """An expected number, as fine as it means something."""
    return f"{expected:,.0f}" if expected >= 10 else f"{expected:.2g}" if expected >= 0.01 else f"{expected:.3f}"


def _screening(study: Study, cells: Sequence[CellSummary]) -> Iterator[str]:
    fraction = fraction_of(study)
    if fraction is None:
        return
    if not all(cell.n for cell in cells):
        yield "No effects of factors are told: they need an ok run in every cell of the design."
        return
    yield (
        "Effects of factors are over all cells together. Their intervals are wide enough to hold the truth all at "
        "once, those of all responses; interactions of three and more factors are taken to be next to nothing."
    )
    confounded = [alias.told() for alias in fraction.aliases() if alias.others]
    if confounded:
        yield f"This fraction cannot tell apart, and each figure is of their sum: {listed(confounded)}."


def _caches(study: Study, table: Table) -> str:
    states = {cell.host.caches for cell in study.cells}
    if states == {"cold"}:
        return "Caches were cold: a run counts from its first operation, the filling of caches included."
    if states == {"warm"}:
        asked = any(cell.workload.options.get(name) for cell in study.cells for name in WARM_UPS)
        looked = any(run.measured and run.measured.course for run in table.ok_runs)
        if table.ok_runs and not asked and not looked:
            return "No warm-up was asked for and none could be looked for: all of each run counts."
        return "Caches were warm: a run counts from the end of its warm-up."
    return "Caches were cold in some cells and warm in others; cold runs count from their first operation."
