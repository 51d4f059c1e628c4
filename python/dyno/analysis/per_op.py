"""What an operation costs: each resource of each cell, and how many times as much one cell used as another.

A run gives one value a resource: what its measured part used, over its operations (`analysis.usage`). Means and ratios
are those of responses, by the same functions; only the family of the ratios is their own, so that explanations cost the
answer to the study's question none of its power.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from dyno import stats
from dyno.analysis import sentences
from dyno.analysis.cells import intervals
from dyno.analysis.comparisons import NO_MEANS, between, shares_of_error, verdict_by
from dyno.analysis.table import Table
from dyno.analysis.unmeasured import why_unobserved
from dyno.model.findings import Interval, ResourceFigure, ResourceRatio, ResourceVerdict
from dyno.model.forms import cpus_named
from dyno.model.pairs import Pair, pairs
from dyno.model.run import Outcome
from dyno.model.study import Cell, Study
from dyno.model.units import counted
from dyno.model.usage import Usage, foremost, resource, resources, shares

SERVERS: Final = "cluster.servers"
MEMORY: Final = "cluster.memory_bytes"
CONFLICTS: Final = "cluster.conflicts"
CERTIFIED: Final = "cluster.certified"
"""What a cluster says in the status of a run."""
AT_REST: Final = "at_rest.bytes"
"""What a store says there whose tables a study lays out."""
NODES_SENT: Final = "network_sent_per_op"
"""The response of runs of a system whose nodes have a network of their own."""
_OF_MACHINES_NETWORK: Final = ("net.sent", "net.packets")
WROTE_NOTHING, READ_NOTHING = "the workload wrote nothing", "the workload read nothing"
_AMPLIFICATIONS = {
    "disk.write_amplification": ("disk.written", "workload.written"),
    "disk.read_amplification": ("disk.read", "workload.read"),
    "server.write_amplification": ("server.written", "workload.written"),
}
_USER, _KERNEL = ("cpu.usr", "cpu.nice", "cpu.guest", "cpu.gnice"), ("cpu.sys", "cpu.irq", "cpu.soft")


def tabulate_used(study: Study, table: Table) -> Table:
    """What the ok runs of a table used, in its place: a value of each resource and share where it has responses.

    Values are in the unit in which a resource is shown.
    """
    used = replace(
        table,
        values=defaultdict(lambda: defaultdict(list)),
        by_block=defaultdict(lambda: defaultdict(dict)),
        unknown=set(),
        not_finite=0,
    )
    apart = {run.slot.cell for run in table.ok_runs if NODES_SENT in run.responses}
    for number, cell in study.numbered().items():
        of_cell = table.used.get(number, {})
        for block in sorted(of_cell, key=lambda block: table.times[block, number]):
            for name, value in _values(of_cell[block], cell):
                if number in apart and name in _OF_MACHINES_NETWORK:
                    continue  # the machine's own interfaces see nothing of what nodes in namespaces send each other
                used.values[name][number].append(value)
                used.by_block[name][number][block] = value
    for run in table.ok_runs:
        sent = [("nodes.sent", run.responses[NODES_SENT])] if NODES_SENT in run.responses else []
        for name, value in (*_of_status(run.status), *sent):
            by_block = used.by_block[name][run.slot.cell]
            by_block[run.slot.block] = value
            # What samples told of the processes that were watched is not all that it consists of.
            used.values[name][run.slot.cell] = list(by_block.values())
    return used


def _of_status(status: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """What a store takes on disk; of a cluster its servers, their memory, and what was in conflict when certified."""
    if AT_REST in status:
        yield "data.at_rest", status[AT_REST] * resource("data.at_rest").scale
    if SERVERS in status:
        yield "server.nodes", status[SERVERS]
    if MEMORY in status:
        yield "server.memory", status[MEMORY] * resource("server.memory").scale
    yield from _over("server.conflicts", status.get(CONFLICTS), status.get(CERTIFIED))


def _values(usage: Usage, cell: Cell) -> Iterator[tuple[str, float]]:
    for name, value in usage.per_op.items():
        yield name, value * resource(name).scale
    per_s, means = usage.per_s, usage.means
    if "server.proc.rss" in means:
        yield "server.memory", means["server.proc.rss"] * resource("server.memory").scale
    if allowed := cpus_of(cell, usage):
        yield from _over("server.cpu_of_machine", per_s.get("server.cpu"), allowed, 100.0)
    for whose in ("server", "driver"):
        user, kernel = per_s.get(f"{whose}.usr"), per_s.get(f"{whose}.sys")
        if user is not None and kernel is not None:
            yield from _over(f"{whose}.sys_share", kernel, user + kernel, 100.0)
            if whose == "server":
                yield from _over("server.user_system_ratio", user, kernel)
    if "cpu.idle" in means:
        user, kernel = (sum(means.get(state, 0.0) for state in states) for states in (_USER, _KERNEL))
        yield from _over("machine.sys_share", kernel, user + kernel, 100.0)
        yield from _over("machine.user_system_ratio", user, kernel)
        yield "machine.iowait_share", means.get("cpu.iowait", 0.0)
    yield from _over("disk.busy_share", per_s.get("disk.busy"), 1.0, 100.0)
    for name, (moved, asked) in _AMPLIFICATIONS.items():
        yield from _over(name, usage.per_op.get(moved), usage.per_op.get(asked))


def _over(name: str, part: float | None, whole: float | None, scale: float = 1.0) -> Iterator[tuple[str, float]]:
    """Nothing where either was not observed, or the whole is 0: then there is no such share."""
    if part is not None and whole:
        yield name, scale * part / whole


def cpus_of(cell: Cell, usage: Usage) -> float:
    """The CPUs that the system of a cell may use: as it was limited and pinned, or else all; 0 where not known."""
    limits = [usage.cpus] if usage.cpus else []
    if cell.host.machine.cpus is not None:
        limits.append(cell.host.machine.cpus)
    if cell.host.pin.system is not None:
        limits.append(float(len(cpus_named(cell.host.pin.system))))
    return min(limits, default=0.0)


def told(used: Table) -> list[str]:
    """The resources and shares that some run has, in the order in which they are shown."""
    return [name for name in (*resources(), *shares()) if name in used.values]


def why_none(study: Study, table: Table, used: Table) -> str:
    """Why nothing is told of what was used; empty where something is."""
    if told(used):
        return ""
    if not table.ok_runs:
        return "no run is ok"
    return why_unobserved(study, table.ok_runs) or "the runs left no samples of their measured parts"


def figures(study: Study, table: Table, used: Table) -> list[ResourceFigure]:
    """Each cell by each resource that some cell has, cell by cell."""
    names = told(used)
    found = {name: intervals(study, used, name, study.replicates.confidence) for name in names}
    return [_figure(table, used, cell, name, found[name].get(cell.index)) for cell in study.cells for name in names]


def _figure(table: Table, used: Table, cell: Cell, name: str, found: tuple[float, Interval] | None) -> ResourceFigure:
    known, values = resource(name), used.of(name, cell.index)
    described = stats.describe(values)
    rates = [usage.per_s[name] for usage in table.used.get(cell.index, {}).values() if name in usage.per_s]
    return ResourceFigure(
        cell=cell.index,
        levels=cell.levels,
        resource=name,
        title=known.title,
        unit=known.unit,
        relative=known.relative,
        n=described.n,
        mean=described.mean,
        sd=described.sd,
        ci=found[1] if found else None,
        per_s=stats.describe([rate * known.scale for rate in rates]).mean if rates and not known.relative else None,
        values=tuple(values),
        reason="" if found else _why_no_interval(table, used, cell, name),
    )


def _why_no_interval(table: Table, used: Table, cell: Cell, name: str) -> str:
    n, ok = len(used.of(name, cell.index)), table.outcomes[cell.index][Outcome.OK]
    if n:
        return f"{counted(n, 'run')}, and an interval needs 2"
    if not ok:
        return "no run is ok"
    if name in _AMPLIFICATIONS and not any(asked := used.of(_AMPLIFICATIONS[name][1], cell.index)):
        of_writes = _AMPLIFICATIONS[name][1] == "workload.written"
        if asked:
            return WROTE_NOTHING if of_writes else READ_NOTHING
        return f"what the workload {'wrote' if of_writes else 'read'} is not known"
    return f"none of {counted(ok, 'ok run')} tells of it"


@dataclass(frozen=True)
class _Compared:
    """What the runs of two cells say of one resource, before the number of such ratios is known."""

    pair: Pair
    name: str
    n: int
    paired: bool
    ratio: stats.Ratio | None
    equivalence: stats.Equivalence | None
    reason: str


def ratios(
    study: Study, table: Table, used: Table, confounded: Mapping[tuple[int, int], tuple[str, ...]]
) -> list[ResourceRatio]:
    """Each two cells that are compared by each resource that some cell has.

    p-values are Holm's over all of these, apart from those of responses; the foremost resources have half of the error.
    """
    found = [_compare(study, table, used, pair, name) for name in told(used) for pair in pairs(study)]
    if not found:
        return []
    read = foremost(told(used))
    weights = shares_of_error([each.name in read for each in found])
    adjusted = stats.holm([each.ratio.p if each.ratio else None for each in found], weights)
    equal = stats.holm([each.equivalence.p if each.equivalence else None for each in found], weights)
    family = sum(each.ratio is not None for each in found)
    return [
        _ratio(study, table, each, p, p_equal, family, confounded)
        for each, p, p_equal in zip(found, adjusted, equal, strict=True)
    ]


def _compare(study: Study, table: Table, used: Table, pair: Pair, name: str) -> _Compared:
    rule = study.replicates
    reason = _why_no_ratio(table, used, pair, name)
    if reason:
        n = min(len(used.of(name, cell.index)) for cell in (pair.a, pair.b))
        return _Compared(pair, name, n, False, None, None, reason)
    found = between(study, used, name, pair.a, pair.b, (pair.level_a, pair.level_b))
    ratio = found.ratio(rule.confidence)
    alpha, shift = 1 - rule.confidence, found.shift
    equivalence = stats.equivalence_of(shift, rule.equivalence, alpha) if shift is not None else None
    reason = "" if ratio else found.why_not or NO_MEANS
    return _Compared(pair, name, found.n, found.paired, ratio, equivalence, reason)


def _why_no_ratio(table: Table, used: Table, pair: Pair, name: str) -> str:
    """Where there is nothing to divide, or nothing to divide by; empty else."""
    sides = ((pair.level_a, pair.a), (pair.level_b, pair.b))
    for level, cell in sides:
        if not used.of(name, cell.index):
            return f"{level}: {_why_no_interval(table, used, cell, name)}"
    zero = [level for level, cell in sides if not any(used.of(name, cell.index))]
    if len(zero) == 2:
        return "it is 0 on both sides"
    return f"it is 0 in all runs of {zero[0]}" if zero else ""


def _ratio(
    study: Study,
    table: Table,
    found: _Compared,
    p: float | None,
    p_equal: float | None,
    family: int,
    confounded: Mapping[tuple[int, int], tuple[str, ...]],
) -> ResourceRatio:
    rule, pair, ratio = study.replicates, found.pair, found.ratio
    made = ResourceRatio(
        resource=found.name,
        factor=pair.factor,
        a=pair.level_a,
        b=pair.level_b,
        within=pair.within,
        cells=(pair.a.index, pair.b.index),
        ratio=ratio.ratio if ratio else None,
        ci=(ratio.lo, ratio.hi) if ratio else None,
        n=found.n,
        method=ratio.method if ratio else "none",
        verdict=_verdict(study, table, found, p, p_equal),
        reason=found.reason,
        p=ratio.p if ratio else None,
        p_adjusted=p,
        family=family if ratio else None,
        margin=rule.equivalence if found.equivalence else None,
        equivalent=None if p_equal is None or not study.judged else p_equal <= 1 - rule.confidence,
        p_equivalent=p_equal,
        confounded=confounded.get((pair.a.index, pair.b.index), ()),
        sentence="",
    )
    told_levels: Mapping[str, str] = study.telling(pair.within)
    return made.model_copy(update={"sentence": sentences.of_resource(made, told_levels, paired=found.paired)})


def _verdict(study: Study, table: Table, found: _Compared, p: float | None, p_equal: float | None) -> ResourceVerdict:
    cells = (found.pair.a.index, found.pair.b.index)
    if found.ratio is None and min(table.outcomes[cell][Outcome.OK] for cell in cells) >= 2:
        return "no ratio"
    return verdict_by(found.ratio, p, p_equal, 1 - study.replicates.confidence, judged=study.judged)
