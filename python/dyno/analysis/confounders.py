"""In what the levels of the compared factor differ besides: what was found while they ran, and nobody asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, Final

from dyno.analysis.folders import differences
from dyno.analysis.promises import promised
from dyno.analysis.sentences import joined
from dyno.analysis.table import Table
from dyno.model.findings import Confounder
from dyno.model.pairs import Pair, pairs
from dyno.model.study import Cell, Study

NOT_TOLD = "not told"
_UNLESS_TOLD = {"deployed.node.cpus": "none", "deployed.node.memory": "none", "deployed.node.disk": "shared"}
"""Limits of a node: a system that has no nodes has none, like a cluster whose nodes have none."""
_OF_CHECKSUM = 12
MOST_VALUES = 3  # of a level; run.json has them all

# What a key has in its name, and why it matters; what weighs most first.
_WHY = {
    "emulated": "CPUs that software emulates compute slower by far, devices hardly do: no times of the two compare.",
    "settings.version": "Another server is measured, with defaults and a code of its own.",
    "io_engine": "Another I/O engine asks the device in another way, so a difference may be its own.",
    "isolation": "Transactions that see less of each other take more locks, or are undone more often.",
    "binary": "Another program is measured.",
    "seccomp": "A filter costs time at each system call, and may forbid some, such as those of io_uring.",
    "innodb_log_file_buffering": "Whether the redo log goes through the page cache decides what a flush of it costs.",
    "innodb_flush_method": "How data files are opened decides whether the page cache keeps them a second time.",
    "innodb_buffer_pool_size": "A larger buffer pool reads less from the device.",
    "mount": "Mount options decide what a write and a flush cost.",
    "device": "Another device, or another place on one, may be faster or slower by itself. Where each deployment has a "
    "file system of its own in a file, these files share the device below.",
    "root": "Programs and temporary files are read from there, not the data.",
    "file_system": "Another file system reads, writes and flushes in its own way.",
    "network": "Requests take another way to the server.",
    "io.limit": "It may read or write only so much a second of its device.",
    "memory": "Less memory leaves less page cache, so that more is read from the device.",
    "cpus": "The system may use other CPUs, or another share of them.",
    "cpu": "The system may use other CPUs, or another share of them.",
    "cgroup": "Its processes are accounted for in another group, whose limits may be others.",
    "nofile": "A server sizes its table and connection caches by how many files it may open.",
    "capab": "What a process may do decides whether it locks memory or raises its priority.",
    "privileges": "What a process may do decides whether it locks memory or raises its priority.",
}


def confounders(study: Study, table: Table) -> list[Confounder]:
    """Each key of `deployed` and of the effective settings that differs between levels, all else equal.

    Left out are those that the study varies itself, those that no two runs share (a process id), and paths: where files
    lie is told by their device. Systems of two kinds have settings of their own, which are not compared.
    """
    if study.compare is None:
        return []
    found = _found(table)
    compared = [pair for pair in pairs(study) if found.get(pair.a.index) and found.get(pair.b.index)]
    passing = _of_each_run_alone([found[index] for index in {i for p in compared for i in (p.a.index, p.b.index)}])
    differing: dict[str, list[Pair]] = {}
    for pair in compared:
        for key in _differing(pair, found[pair.a.index], found[pair.b.index]):
            if key not in passing:
                differing.setdefault(key, []).append(pair)
    made = [_confounder(study, key, of_key, found, len(compared)) for key, of_key in differing.items()]
    return sorted(made, key=lambda each: (_weight(each.key), each.key))


def of_pairs(study: Study, table: Table, confounding: Sequence[Confounder]) -> dict[tuple[int, int], tuple[str, ...]]:
    """The keys in which two compared cells differ besides, by the numbers of both, what weighs most first."""
    keys, found = [each.key for each in confounding], _found(table)
    differing: dict[tuple[int, int], tuple[str, ...]] = {}
    for pair in pairs(study) if keys else ():
        a, b = found.get(pair.a.index), found.get(pair.b.index)
        if a and b:
            own = set(_differing(pair, a, b))
            differing[pair.a.index, pair.b.index] = tuple(key for key in keys if key in own)
    return differing


def plain(key: str) -> str:
    """Without the part of run.json that it stands in."""
    return key.partition(".")[2]


def beside(confounding: Sequence[Confounder], *, briefly: bool = False) -> str:
    """What must be said beside an answer; empty where nothing differs. Briefly it leaves out the values."""
    if not confounding:
        return ""
    first, *others = confounding
    values = "" if briefly else f" ({_by_level(first)})"
    told = joined([f"{plain(first.key)}{values}", *(plain(each.key) for each in others)])
    return f" Besides {first.factor}, {told} {'differ' if others else 'differs'}."


_Found = dict[str, list[str]]  # key -> its values in the ok runs of a cell, in order of execution


def _found(table: Table) -> dict[int, _Found]:
    """Of runs that told nothing of their deployment, settings alone; a cell of which nothing is known is left out."""
    found: dict[int, _Found] = {}
    for run in table.ok_runs:
        told = {f"deployed.{key}": value for key, value in run.deployed.items()}
        told |= {f"settings.{key}": value for key, value in _flat(run.settings)}
        if isolation := promised(run.settings).isolation:
            told["promises.isolation"] = isolation
        for key, value in told.items():
            # Of a checksum a dozen digits tell as much as all of it.
            shown = _shown(value)[:_OF_CHECKSUM] if key.endswith("sha256") else _shown(value)
            found.setdefault(run.slot.cell, {}).setdefault(key, []).append(shown)
    return found


def _flat(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _of_each_run_alone(cells: Sequence[_Found]) -> set[str]:
    """Keys whose value is another one in each run of a cell, wherever there are two runs: they say nothing of a level.

    A key that is constant in some cell is none of these.
    """
    several = [(key, values) for cell in cells for key, values in cell.items() if len(values) > 1]
    constant = {key for key, values in several if len(set(values)) < len(values)}
    return {key for key, _ in several} - constant


_MOUNTED: Final = "deployed.file_system.options"


def _differing(pair: Pair, a: _Found, b: _Found) -> Iterator[str]:
    asked = _asked(pair.a, pair.b)
    alike = pair.a.system.kind == pair.b.system.kind
    for key in {**a, **b}:
        part, _, name = key.partition(".")
        # A side that told nothing at all of a part is of an earlier dyno, or its system has nothing to tell.
        if not all(any(other.startswith(f"{part}.") for other in side) for side in (a, b)):
            continue
        # Which server it is, systems of two kinds may tell in the same way.
        server = name == "version" and key in a and key in b
        if part == "settings" and not server and (not alike or name.rpartition(".")[2] in asked):
            continue
        if part == "promises" and alike:  # a setting of theirs says it already
            continue
        if part == "deployed" and any(each in name for each in asked):
            continue
        # A file system of another type is another in all of this.
        if part == "deployed" and "type" in asked and name.startswith("file_system."):
            continue
        values_a, values_b = set(_of(key, a)), set(_of(key, b))
        if key == _MOUNTED:
            values_a, values_b = ({_without(value, asked) for value in each} for each in (values_a, values_b))
        if values_a != values_b and not all(value.startswith("/") for value in values_a | values_b):
            yield key


def _of(key: str, found: _Found) -> list[str]:
    return found.get(key, [_UNLESS_TOLD.get(key, NOT_TOLD)])


def _asked(a: Cell, b: Cell) -> set[str]:
    """The names of what two cells were asked for that is not the same."""
    everywhere = {"host", "system", "config", "settings", "workload", "kind"}
    asked = {part for key in differences(a, b) for part in key.split(".")} - everywhere
    limits = (cell.host.machine.disk.limits for cell in (a, b))
    return asked | {f"io.limit.{name}" for name, _ in set.symmetric_difference(*(set(each.items()) for each in limits))}


def _confounder(
    study: Study, key: str, differing: Sequence[Pair], found: Mapping[int, _Found], compared: int
) -> Confounder:
    factor = differing[0].factor
    values: dict[str, dict[str, None]] = {level.name: {} for level in study.factor(factor).levels}
    for pair in differing:
        for level, cell in ((pair.level_a, pair.a), (pair.level_b, pair.b)):
            values[level] |= dict.fromkeys(_of(key, found[cell.index]))
    if key == _MOUNTED:
        asked = {name for pair in differing for name in _asked(pair.a, pair.b)}
        values = _apart(values, asked)
    note = next((why for word, why in _WHY.items() if word in key), "")
    made = Confounder(
        factor=factor,
        key=key,
        values={level: tuple(of_level) for level, of_level in values.items() if of_level},
        pairs=len(differing),
        of=compared,
        note=note,
        sentence="",
    )
    where = f" in {len(differing):,} of {compared:,} comparisons" if len(differing) < compared else ""
    sentence = f"{plain(key)} differs{where} ({_by_level(made)})."
    return made.model_copy(update={"sentence": f"{sentence} {note}".rstrip()})


def _apart(values: Mapping[str, Mapping[str, None]], asked: Set[str]) -> dict[str, dict[str, None]]:
    """Mount options without those that all levels have and those that were asked for: what data=journal brings, say."""
    lists = [set(value.split(",")) for of_level in values.values() for value in of_level]
    shared = set.intersection(*lists) if lists else set()
    return {
        level: dict.fromkeys(_without(value, asked | shared) or "none of these" for value in of_level)
        for level, of_level in values.items()
    }


def _without(options: str, names: Set[str]) -> str:
    return ",".join(word for word in options.split(",") if not {word, word.partition("=")[0]} & names)


def _by_level(found: Confounder) -> str:
    """`native: io_uring; container-layered, container-volume: libaio`."""
    by_values: dict[tuple[str, ...], list[str]] = {}
    for level, values in found.values.items():
        by_values.setdefault(values, []).append(level)
    return "; ".join(f"{', '.join(levels)}: {_values(values)}" for values, levels in by_values.items())


def _values(values: Sequence[str]) -> str:
    shown = " or ".join(values[:MOST_VALUES])
    return f"{shown} or {len(values) - MOST_VALUES:,} more" if len(values) > MOST_VALUES else shown


def _weight(key: str) -> int:
    return next((place for place, word in enumerate(_WHY) if word in key), len(_WHY))
