"""What a reader must know before believing the figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dyno.analysis.sentences import levels, listed
from dyno.analysis.table import Table
from dyno.model.findings import CellSummary, Comparison, format_share
from dyno.model.pairs import pairs
from dyno.model.run import RunRecord
from dyno.model.study import Study
from dyno.model.units import counted, format_percent

TAILS = {"p50": 0.5, "p90": 0.1, "p95": 0.05, "p99": 0.01, "p999": 0.001}  # the share that lies above a quantile
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
)


def notes(
    study: Study, table: Table, cells: Sequence[CellSummary], comparisons: Sequence[Comparison], ended: str | None
) -> Iterator[str]:
    """Sentences, what weighs most first. `cells` are those of the deciding response."""
    if ended is None:
        yield "The study has not ended: every figure may still change."
    if study.scale == "smoke":
        yield "Scale smoke: sizes are tiny. It shows that everything works, not how fast anything is."
    yield from _missing(table, cells)
    yield from _precision(study, cells)
    yield from _promises(study, table)
    yield from _errors(table)
    yield from _failed_in_tails(study, table)
    yield from _loops(study, table)
    yield from _of_drivers(study, table)
    yield from _intervals(study, cells, comparisons)
    if study.order == "fixed" and len(study.cells) > 1:
        yield "The runs went in a fixed order: a drift of the machine can pose as a difference between cells."
    yield _caches(study)


def _name(cell: CellSummary) -> str:
    return levels(cell.levels) or "the only cell"


def _missing(table: Table, cells: Sequence[CellSummary]) -> Iterator[str]:
    if table.other_runs and table.ok_runs:
        kinds = Counter(run.outcome.value for run in table.other_runs)
        parts = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        yield f"Not ok, and in no figure: {parts} of {len(table.ok_runs) + len(table.other_runs):,} runs."
    without = [_name(cell) for cell in cells if not cell.n]
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
        _name(cell) if cell.reached is None else f"{_name(cell)} ({rule.precision_of} to {format_share(cell.reached)})"
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


def _promises(study: Study, table: Table) -> Iterator[str]:
    compared = pairs(study)
    if any(pair.a.system.kind != pair.b.system.kind for pair in compared):
        yield "Different systems are compared: that they promise the same durability and isolation is not checked."
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
        told = [f"{name} ({format_share(share)} failed)" for name, share in worst.items()]
        where = f", in {listed([levels(study.cells[cell].levels) for cell in sorted(cells)])}" if study.factors else ""
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
        names = [levels(study.cells[cell].levels) for cell in sorted(cells)]
        yield note if cells == measured else f"{note.removesuffix('.')} (in {listed(names)})."


def _intervals(study: Study, cells: Sequence[CellSummary], comparisons: Sequence[Comparison]) -> Iterator[str]:
    if not any(cell.ci for cell in cells):
        return
    rule = study.replicates
    yield (
        f"Intervals are of {format_percent(rule.confidence)} confidence each, as if the number of runs had been fixed "
        "beforehand. The study looks after each block and stops when it is precise enough, which makes them somewhat "
        "too narrow."
    )
    drawn = sum(found.ci is not None for found in comparisons)
    if drawn > 1:
        by_chance = drawn * (1 - rule.confidence)
        yield (
            f"{drawn:,} comparisons are not corrected for their number: were there no difference anywhere, about "
            f"{_count(by_chance)} would still be expected to show one."
        )


def _count(expected: float) -> str:
    """An expected number, as fine as it means something."""
    return f"{expected:,.0f}" if expected >= 10 else f"{expected:.2g}" if expected >= 0.01 else f"{expected:.3f}"


def _caches(study: Study) -> str:
    states = {cell.host.caches for cell in study.cells}
    if states == {"cold"}:
        return "Caches were cold: a run counts from its first operation, the filling of caches included."
    if states == {"warm"}:
        return "Caches were warm: a run counts from the end of its warm-up."
    return "Caches were cold in some cells and warm in others; cold runs count from their first operation."
