"""Counting what an embedded system does for a transaction: it is driven again, under valgrind, once it was measured."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from dyno.lab.attribution import DEPTH, Attributed, attribute
from dyno.lab.callgrind import COMPRESSED, Chains, chains
from dyno.lab.runner import WatchedRunner
from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.observers.base import COUNT_COLUMNS, Counting
from dyno.systems.base import Parts
from dyno.workloads.base import Workload

SLOWER: Final = 30.0
"""Of the limit of driving: a program under callgrind is 20 to 50 times as slow, and has fewer transactions to do."""

_PROFILE: Final = "callgrind.out"
OPTIMISED: Final = "optimised"
_Row = tuple[str, str, str, str, str, str, float]


def count(
    runner: WatchedRunner,
    workload: Workload[Any],
    endpoint: Endpoint,
    seed: int,
    *,
    build: str,
    by: str,
    counting: Counting,
    parts: Parts,
    again: bool = False,
) -> pl.DataFrame:
    """Drive one build, `by` callgrind or hardware: a table of `COUNT_COLUMNS`. Raises RunError.

    The runner must be a new one: its folder is scratch, and what it logs is kept under the build's name.
    """
    logs, runner.logs = runner.logs, runner.folder / "logs"
    runner.logs.mkdir(parents=True)
    profile = runner.folder / _PROFILE
    if by == "callgrind":
        runner.under = _callgrind(profile, runner.folder / "callgrind.log", apart=build != OPTIMISED)
    try:
        told = workload.count(runner, endpoint, seed, transactions=counting.transactions, settling=counting.settling)
    finally:
        _keep(runner.logs, logs, f"counted-{build}-{by}{'-again' if again else ''}")
    kinds = {name.removeprefix("counted."): int(value) for name, value in told.items() if name.startswith("counted.")}
    if not kinds or not all(kinds.values()):
        raise RunError("the driver does not say how many transactions it counted")
    rows = _by_callgrind(profile, build, kinds, parts) if by == "callgrind" else _by_hardware(told, build, kinds)
    return pl.DataFrame([(*row, again) for row in rows], schema=COUNT_COLUMNS, orient="row")


def per_transaction(counts: pl.DataFrame) -> dict[str, float]:
    """As responses: of each kind of transaction what the build that was measured takes, by the first that counted."""
    whole = counts.filter(pl.col("build") == OPTIMISED, pl.col("event") != "calls", ~pl.col("again"))
    return {
        f"{kind}.{event}": value
        for kind, event, value in whole.unique(["transaction", "event"], keep="first", maintain_order=True)
        .select("transaction", "event", "value")
        .iter_rows()
    }


def _callgrind(profile: Path, log: Path, *, apart: bool) -> tuple[str, ...]:
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        raise RunError("valgrind is not installed: install Debian's valgrind")
    return (
        valgrind,
        "--tool=callgrind",
        f"--callgrind-out-file={profile}.%p",
        f"--log-file={log}.%p",
        "--trace-children=yes",  # what pins the driver to its CPUs becomes the driver
        "--instr-atstart=no",  # the driver says from when on, and what
        "--collect-atstart=no",
        *((f"--separate-callers={DEPTH}", COMPRESSED) if apart else ()),
    )


def _by_callgrind(profile: Path, build: str, kinds: Mapping[str, int], parts: Parts) -> Iterator[_Row]:
    found = dict(_profiles(profile))
    for kind, transactions in kinds.items():
        if kind not in found:
            raise RunError(f"valgrind wrote no profile of transaction {kind}; it wrote {', '.join(found) or 'none'}")
        if not (total := found[kind].costs.total()):
            raise RunError(f"valgrind counted nothing of transaction {kind}")
        if build == OPTIMISED:
            # It does not keep them apart: what is in which component is where the compiler put it.
            attributed = Attributed(Counter({("", ""): total}), Counter())
        else:
            attributed = attribute(found[kind], parts)
        for (call, component), instructions in sorted(attributed.instructions.items()):
            yield build, "callgrind", kind, call, component, "instructions", instructions / transactions
        for call, times in sorted(attributed.calls.items()):
            yield build, "callgrind", kind, call, "", "calls", times / transactions


def _profiles(profile: Path) -> Iterator[tuple[str, Chains]]:
    for path in sorted(profile.parent.glob(f"{profile.name}.*")):
        with path.open(errors="replace") as lines:
            found = chains(lines, path.name)
        if found.word is not None:
            yield found.word, found


def _by_hardware(told: Mapping[str, float], build: str, kinds: Mapping[str, int]) -> Iterator[_Row]:
    """Of whole transactions, and in builds that keep calls apart of each call and of what is in none."""
    for kind, transactions in kinds.items():
        for event in ("instructions", "cycles"):
            total = told.get(f"{event}.{kind}")
            if total is None:
                raise RunError(f"the driver does not say how many {event} it counted of transaction {kind}")
            prefix = f"{event}.{kind}."
            calls = {name.removeprefix(prefix): value for name, value in told.items() if name.startswith(prefix)}
            for call, value in {"": total - sum(calls.values()), **calls}.items():
                yield build, "hardware", kind, call, "", event, value / transactions


def _keep(scratch: Path, logs: Path, name: str) -> None:
    for path in sorted(scratch.iterdir()):
        path.rename(logs / f"{name}-{path.name}")
