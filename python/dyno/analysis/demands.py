"""What the operations of a run took of each resource that they share: the service demands of operational laws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

from dyno import stats
from dyno.analysis.device import amounts_a_second
from dyno.analysis.shape import counts_clients, is_clients
from dyno.analysis.table import Table
from dyno.model.findings import Interval
from dyno.model.forms import cpus_named
from dyno.model.looks import looks
from dyno.model.run import BATCH, BETWEEN, RunRecord
from dyno.model.study import Cell, Factor, Study
from dyno.model.usage import Usage

Shared = Literal["cpu", "disk", "network", "limit"]

LIMIT: Final = "limit."
"""How the names of limits of the disk begin; then comes what is limited, as `Disk.limits` has it."""
LIMITED: Final = {"read_bytes": "bytes read", "write_bytes": "bytes written", "reads": "reads", "writes": "writes"}


@dataclass(frozen=True)
class Use:
    """What one run took of a resource: seconds of one server's time, for an operation and in a second."""

    resource: Shared
    of: str
    servers: float
    per_op: float
    per_s: float


class Estimate(NamedTuple):
    """A mean over runs with its interval, which is None for a single run."""

    mean: float
    ci: Interval | None
    n: int


def uses(cell: Cell, used: Usage) -> Iterator[Use]:
    """Each pool of servers that operations shared, as far as it was observed.

    CPUs are several pools where a limit or a pin holds some processes back: those of the machine, and those that the
    held back may use. A quota counts as so many CPUs. A limit of the disk takes its time for each read
    or byte that it lets pass, but nobody's: who comes later than that does not wait.
    """
    per_op, per_s = used.per_op, used.per_s
    system = "server.cpu" if "server.cpu" in per_op else "driver.cpu"  # an embedded store runs in its driver
    pools: dict[str, float] = {}
    having: tuple[tuple[str, float | None], ...] = (
        ("machine.cpu", used.cpus or None),
        (system, cell.host.machine.cpus),
        (system, _number_of(cell.host.pin.system)),
        ("driver.cpu", _number_of(cell.host.pin.driver)),
    )
    for of, servers in having:
        if servers is not None and of in per_op:
            pools[of] = min(pools.get(of, servers), servers)
    for of, number in pools.items():
        yield Use("cpu", of, number, per_op[of], per_s[of])
    amounts = amounts_a_second(used, system.removesuffix(".cpu"))
    for name, limit in cell.host.machine.disk.limits.items():
        if name in amounts and used.operations > 0:
            share = amounts[name] / limit
            yield Use("limit", f"{LIMIT}{name}", 1.0, share * used.seconds / used.operations, share)
    busy = [of for of in ("disk.busy", "disk.waited") if of in per_op]
    if busy:
        # The kernel counts a disk as busy for a whole clock tick in which a request began or ended (since Linux 5.0),
        # but how long requests took exactly; it cannot be busy for longer than all of these together.
        of = min(busy, key=lambda name: per_op[name])
        yield Use("disk", of, 1.0, per_op[of], per_s[of])
    busiest = used.means.get("net.ifutil")
    if busiest is not None and used.operations > 0:
        yield Use("network", "net.ifutil", 1.0, busiest / 100 * used.seconds / used.operations, busiest / 100)


def _number_of(cpus: str | None) -> float | None:
    return None if cpus is None else float(len(cpus_named(cpus)))


def in_all(observed: Sequence[Sequence[Use]]) -> list[list[Use]]:
    """Of the uses of several runs those that all have and that took something in each: a list a run, in one order."""
    by_run = [{(use.resource, use.of): use for use in of_run} for of_run in observed]
    # What was used in some runs alone has no bound in the others.
    common = sorted(
        key
        for key in (set.intersection(*map(set, by_run)) if by_run else ())
        if all(of_run[key].per_op > 0 for of_run in by_run)
    )
    return [[of_run[key] for key in common] for of_run in by_run]


def tightest(observed: Sequence[Sequence[Use]]) -> list[list[Use]]:
    """Of the uses that all runs have, one pool a resource: that which allows the least. A list for each run."""
    chosen: dict[Shared, tuple[float, int]] = {}
    shared = in_all(observed)
    for place, of_runs in enumerate(zip(*shared, strict=True)):
        interval = sum(use.per_op / use.servers for use in of_runs)
        if interval > chosen.get(of_runs[0].resource, (0.0, 0))[0]:
            chosen[of_runs[0].resource] = interval, place
    return [[of_run[place] for _, place in chosen.values()] for of_run in shared]


def alone(shared: Sequence[Use], used: Usage, think: float) -> float:
    """Seconds of an operation that waits for nothing: what it takes itself of CPUs, disk and network, and think time.

    A limit takes nobody's time, and what others use of the machine's CPUs none of the operation's.
    """
    own = [used.per_op[name] for name in ("server.cpu", "driver.cpu") if name in used.per_op]
    cpu = sum(own) or used.per_op.get("machine.cpu", 0.0)
    return cpu + sum(use.per_op for use in shared if use.resource in ("disk", "network")) + think


def elsewhere(chosen: Sequence[Use], used: Usage, think: float) -> float:
    """Seconds of an operation at no chosen resource: think time, and CPU time of whoever is not held back."""
    of = next((use.of for use in chosen if use.resource == "cpu"), "machine.cpu")
    other = {"server.cpu": "driver.cpu", "driver.cpu": "server.cpu"}.get(of)
    return think + (used.per_op.get(other, 0.0) if other else 0.0)


def clients_of(study: Study, cell: Cell) -> float | None:
    """How many clients drive a cell: by its workload's setting, or by a factor that is their number."""
    factor = clients_factor(study)
    return clients_set(cell) or (float(cell.levels[factor.name]) if factor else None)


def clients_set(cell: Cell) -> float | None:
    """How many clients the workload's settings ask for; None where they do not say."""
    return next(
        (float(value) for name, value in cell.workload.options.items() if is_clients(name) and _is_number(value)), None
    )


def clients_factor(study: Study) -> Factor | None:
    """The ordered factor whose levels are numbers of clients."""
    return next((each for each in study.factors if each.ordered and counts_clients(study, each)), None)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0


def think_time(run: RunRecord) -> float | None:
    """That a client of a closed loop waits between operations, in s; None where the workload has waits of its own.

    As the jobs of dyno's own driver have it, or as a driver has measured it; of others none is known. None too of a
    loader, whose operations are rows and whose latencies are of batches.
    """
    if BETWEEN in run.status:
        return run.status[BETWEEN] / 1000
    loop, workload = (part if isinstance(part, dict) else {} for part in map(run.driver.get, ("loop", "workload")))
    if workload.get("keying_time") or workload.get("think_time") or BATCH in run.status:
        return None
    given = loop.get("think_time_s")
    return float(given) if given is not None and _is_number(given) else 0.0


def estimate(values: Sequence[float], confidence: float, widening: float) -> Estimate:
    """The mean with Student's interval, so many times as wide, which ends at 0."""
    mean = stats.describe(values).mean
    found = stats.mean_interval(values, confidence)
    assert mean is not None
    if found is None:
        return Estimate(mean, None, len(values))
    half = widening * (found[1] - found[0]) / 2
    return Estimate(mean, (max(mean - half, 0.0), mean + half), len(values))


def widening_of_means(study: Study) -> float:
    """How much wider the interval of a mean is made, for how often the study was looked at."""
    when = looks(study)
    return stats.widening_of_means(when.first, when.last)


def closed_loop(study: Study, table: Table, cell: Cell) -> tuple[float | None, float]:
    """Its clients and their think time in s, where both are known."""
    thinks = {think_time(run) for run in table.ok_runs if run.slot.cell == cell.index}
    if table.loops[cell.index] != {"closed"} or len(thinks) != 1:
        return None, 0.0
    (think,) = thinks
    return (None, 0.0) if think is None else (clients_of(study, cell), think)


def observed(table: Table, cell: Cell) -> list[tuple[int, Usage]]:
    """The runs of which use and throughput are known, by block."""
    throughputs = table.in_blocks("throughput", cell.index)
    return [(block, used) for block, used in sorted(table.used[cell.index].items()) if throughputs.get(block, 0.0) > 0]


def cells_over(study: Study, table: Table, factor: Factor) -> list[tuple[dict[str, str], list[Cell]]]:
    """For each combination of the other factors, its observed cells in the order of the factor; two at the least."""
    found: dict[tuple[tuple[str, str], ...], list[Cell]] = {}
    for cell in study.cells:
        if observed(table, cell):
            within = tuple((name, level) for name, level in cell.levels.items() if name != factor.name)
            found.setdefault(within, []).append(cell)
    return [
        (dict(within), sorted(curve, key=lambda cell: float(cell.levels[factor.name])))
        for within, curve in found.items()
        if len(curve) > 1
    ]
