"""Handing a job to `dyno-core drive` and reading the folder that it fills. Shared by the kinds that it carries out.

`dyno-core files` fills a folder of the same kind, which `collect`, `told` and `accept` read too.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from dyno.model.base import InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.units import format_percent
from dyno.workloads.base import INTERVAL_COLUMNS, Checked, Measured, Runner

JOB_FORMAT = 1
RESULT_FORMAT = 1

_QUANTILES = ("mean", "p50", "p90", "p95", "p99", "p999", "max")
_SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_SHOWN = ("mean", "p50", "p95", "p99", "max")
_CONNECTED = ("mysql", "postgresql")
DRIVE = "dyno-core drive"
_KEPT = ("errors.jsonl", "acknowledged-*", "in-doubt.jsonl")
"""Of a run phase, beside its figures: operations that failed, what a store said it had taken, and rows in doubt."""
ATTEMPTS = {"due_ns": pl.Int64, "sent_ns": pl.Int64, "ended_ns": pl.Int64, "operation": pl.String, "outcome": pl.String}
"""Columns of a run's attempts where a fault is struck; `outcome` is ok, or the kind of an error."""
READS = {
    "acknowledged_ns": pl.Int64,
    "sent_ns": pl.Int64,
    "ended_ns": pl.Int64,
    "outcome": pl.String,
    "seen_ns": pl.Int64,
}
"""Columns of what was looked for elsewhere: seen, stale, or an error's kind; `seen_ns` is null where it never was."""
_OF_CONNECTIONS = ("connect", "connection_lost", "timeout", "unavailable")  # kinds of errors; the cause of the others
_ONLY_TO_CUT = ("reconnects", "cpu")  # keys of an interval that are not kept


def job(
    endpoint: Endpoint, workload: dict[str, Any], *, phase: str, clients: int, seed: int, **rest: Any
) -> dict[str, Any]:
    """A job as `schema/job.schema.json` has it; keys of `rest` that are None are left out."""
    # How many may fail is judged here, by the study's own bound over warm-up and measured part.
    judged = {"max_share_failed": 1.0} if phase == "run" else {}
    return {
        "format": JOB_FORMAT,
        "phase": phase,
        "backend": {"kind": endpoint.backend, **endpoint.settings},
        "workload": workload,
        "clients": clients,
        "seed": seed,
        **judged,
        **{key: value for key, value in rest.items() if value is not None},
    }


def drive(runner: Runner, job: dict[str, Any], *, max_errors: float) -> Measured:
    """Run one job and read its result. `max_errors` is the share of operations that may fail.

    Raises RunError where the driver failed, InvalidRun where more operations failed than allowed or the rate asked for
    was not reached.
    """
    return drive_together(runner, [job], max_errors=max_errors)


def drive_together(runner: Runner, jobs: Sequence[dict[str, Any]], *, max_errors: float) -> Measured:
    """The same for several drivers at once, of whose results one is made without loss."""
    results = carry_out(runner, jobs)
    parts = [_folder(runner, jobs, number) for number in range(len(jobs))]
    first = keep(runner, parts)
    out, result = parts[0], results[0]
    if len(jobs) > 1:
        for each in results:
            _refuse_failed(each, first)
        out = runner.folder / "merged"
        result = _merged(runner, parts, out)
    measured = replace(
        told(result, jobs[0], out), attempts=rows(parts, "attempts", ATTEMPTS), reads=rows(parts, "reads", READS)
    )
    return accept(runner, result, measured, max_errors=max_errors, first=first)


def rows(parts: Sequence[Path], name: str, columns: dict[str, type[pl.DataType]]) -> pl.DataFrame | None:
    """What each client of each driver wrote down row by row; None where none did. Raises RunError."""
    paths = [path for part in parts for path in sorted(part.glob(f"{name}-*.csv"))]
    if not paths:
        return None
    try:
        return pl.concat([pl.read_csv(path, schema=columns, glob=False) for path in paths])
    except (OSError, pl.exceptions.PolarsError) as error:
        raise RunError(f"cannot read what the driver wrote ({name}): {error}") from error


def accept(runner: Runner, result: dict[str, Any], measured: Measured, *, max_errors: float, first: str) -> Measured:
    """What was measured, where the driver did what it was asked. `first` tells of the first operation that failed."""
    runner.measured = measured
    _refuse_failed(result, first)
    if measured.complete:
        _refuse_errors(result, max_errors, first)
        if result["total"]["count"] == 0:
            raise InvalidRun("the driver ended without a single successful operation")
    return measured


def cut(runner: Runner, measured: Measured, drivers: int, first: int) -> Measured:
    """What a run phase measured from its interval number `first` on, exactly. Raises RunError."""
    whole = runner.folder / ("merged" if drivers > 1 else "run")
    out = runner.folder / "cut"
    words = [runner.core, "cut", "--from-interval", str(first), "--out", str(out), str(whole)]
    status = runner.execute(words, kept_as="cut")
    if status != 0:
        raise RunError(f"dyno-core cut ended with status {status}: {runner.complaint or 'it said nothing'}")
    return told(read(out / "result.json", status, runner.complaint), measured.job, out)


def load(runner: Runner, job: dict[str, Any]) -> None:
    """Run a job of phase load, of which nothing may fail. Raises RunError."""
    (result,) = carry_out(runner, [job])
    _refuse_failed(result)
    if result["outcome"] != "ok":
        raise RunError("the load was cut short")
    if failed := _failed(result):
        first = _first_error([_folder(runner, [job], 0)])
        raise RunError(f"{failed} operations of the load failed ({_told(result)}){first}")


def carry_out(runner: Runner, jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run drivers to their ends and read what each left. Raises RunError where one left no result."""
    runner.folder.mkdir(parents=True, exist_ok=True)
    runner.logs.mkdir(parents=True, exist_ok=True)
    argvs = []
    for number, job in enumerate(jobs):
        # Kept, so that a run that failed can be tried again by hand with what it was given.
        path = runner.logs / (f"job-{job['phase']}.json" if len(jobs) == 1 else f"job-{job['phase']}-{number}.json")
        path.write_text(json.dumps(job, indent=1) + "\n")
        words = ["--progress", "--stop-on-stdin-eof"]
        argvs.append([runner.core, "drive", "--job", str(path), "--out", str(_folder(runner, jobs, number)), *words])
    return collect(runner, argvs, [_folder(runner, jobs, number) for number in range(len(jobs))])


def collect(
    runner: Runner, argvs: Sequence[Sequence[str]], folders: Sequence[Path], program: str = DRIVE
) -> list[dict[str, Any]]:
    """Run drivers to their ends and read what each left in its folder. Raises RunError where one left no result."""
    statuses = runner.execute_all(argvs)
    return [
        read(folder / "result.json", status, runner.complaint, program)
        for folder, status in zip(folders, statuses, strict=True)
    ]


def keep(runner: Runner, parts: Sequence[Path]) -> str:
    """Keep what `_keep` does; the first operation that failed, as the end of a cause."""
    _keep(runner, parts)
    return _first_error(parts)


def _keep(runner: Runner, parts: Sequence[Path]) -> None:
    """Keep among the logs what a run that went wrong, and one that did not, is looked into by. Raises RunError."""
    try:
        for number, part in enumerate(parts):
            for path in (path for pattern in _KEPT for path in sorted(part.glob(pattern)) if path.stat().st_size):
                own = path.name.startswith("acknowledged-") or len(parts) == 1  # the names of these tell the driver
                shutil.copyfile(path, runner.logs / (path.name if own else f"{path.stem}-{number}{path.suffix}"))
    except OSError as error:
        raise RunError(f"cannot keep what the driver wrote: {error}") from error


def _first_error(parts: Sequence[Path]) -> str:
    """The first operation that failed, as the end of a cause; empty where none did, or none was written down."""
    for path in (part / "errors.jsonl" for part in parts):
        if not path.exists():
            continue
        with path.open(errors="replace") as lines:
            try:
                first = json.loads(lines.readline())
                return f"; the first: {first['operation']}: {first['message']}"
            except (ValueError, KeyError, TypeError):
                continue  # nothing in it, or a line that was torn when the driver was killed
    return ""


def folders(runner: Runner, drivers: int) -> list[Path]:
    """Where the drivers of a run phase left their files."""
    return [runner.folder / _name("run", drivers, number) for number in range(drivers)]


def check(runner: Runner, job: dict[str, Any]) -> tuple[Checked, dict[str, Any]]:
    """Run a job of phase check: whether all that must hold holds, and the whole result. Raises RunError."""
    (result,) = carry_out(runner, [job])
    broken = [each for each in result["checks"] if not each["holds"]]
    if broken:
        more = f" (and {len(broken) - 1} more)" if len(broken) > 1 else ""
        return Checked(wrong=f"{broken[0]['name']} does not hold: {broken[0]['detail']}{more}"), result
    if result["ledger"] is None:  # else it was counted, and what was found says more than that it failed
        _refuse_failed(result)
    if result["outcome"] == "partial":
        raise RunError("the check of the store was cut short")
    return Checked(status={"checks": float(len(result["checks"]))}), result


def count(runner: Runner, job: dict[str, Any]) -> dict[str, float]:
    """Run a job that counts: what the driver says of it, by name. No transaction may fail. Raises RunError."""
    (result,) = carry_out(runner, [job])
    _refuse_failed(result)
    if result["outcome"] != "ok":
        raise RunError("counting was cut short")
    if failed := _failed(result):
        first = _first_error([_folder(runner, [job], 0)])
        raise RunError(f"{failed} transactions that were to be counted failed ({_told(result)}){first}")
    return {name: float(value) for name, value in result["backend"]["status"].items()}


def _folder(runner: Runner, jobs: Sequence[dict[str, Any]], number: int) -> Path:
    return runner.folder / _name(jobs[number]["phase"], len(jobs), number)


def _name(phase: str, drivers: int, number: int) -> str:
    return phase if drivers == 1 else f"{phase}-{number}"


def _merged(runner: Runner, parts: Sequence[Path], out: Path) -> dict[str, Any]:
    status = runner.execute([runner.core, "merge", "--out", str(out), *map(str, parts)])
    if status != 0:
        raise RunError(f"dyno-core merge ended with status {status}: {runner.complaint or 'it said nothing'}")
    return read(out / "result.json", status, runner.complaint)


def _refuse_failed(result: dict[str, Any], first: str = "") -> None:
    if result["outcome"] == "failed":
        error = result["error"] or {"kind": "unknown", "message": "the driver gave no reason"}
        if error["kind"] == "rate_not_reached":
            missed = f"the rate was not reached: {error['message']}"
            # Where operations failed, that is what went wrong, and the rate is what came of it.
            failed = _failed(result)
            raise InvalidRun(f"{failed} operations failed ({_told(result)}){first}; so {missed}" if failed else missed)
        if error["kind"] == "operations_failed":
            raise InvalidRun(error["message"])
        raise RunError(f"{error['kind']}: {error['message']}")


def read(path: Path, status: int, complaint: str, program: str = DRIVE) -> dict[str, Any]:
    """The result that a driver left. Raises RunError where it left none that can be read."""
    try:
        result = json.loads(path.read_text())
    except FileNotFoundError:
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        raise RunError(f"{program} {how} without a result: {complaint or 'it said nothing'}") from None
    except ValueError as error:
        raise RunError(f"{program} left a result that cannot be read: {error}") from error
    if result.get("format") != RESULT_FORMAT:
        raise RunError(f"{program} wrote format {result.get('format')!r}, this dyno reads {RESULT_FORMAT}")
    return dict(result)


def told(result: dict[str, Any], job: dict[str, Any], out: Path) -> Measured:
    """What a result folder tells, be it as it was asked for or not."""
    intervals = out / "intervals.jsonl"
    log = out / "latency.hlog"
    opened = result["open"]
    responses = _responses(result)
    unknown = [name for name in responses if not _is_known(name, opened)]
    return Measured(
        complete=result["outcome"] == "ok",
        responses={name: value for name, value in responses.items() if name not in unknown},
        withheld=dict.fromkeys(unknown, _why_unknown(opened)) if opened else {},
        errors={name: kinds for name, kinds in _errors(result).items() if kinds},
        measured_from_ns=result["measured_from_ns"],
        measured_to_ns=result["ended_ns"],
        settings=result["backend"]["effective"],
        status={f"{result['backend']['kind']}.{name}": value for name, value in result["backend"]["status"].items()},
        versions=result["versions"],
        loop=result["loop"],
        rate_per_s=opened["rate_per_s"] if opened else None,
        notes=tuple(_notes(unknown)),
        ended_by=result["ended_by"],
        job=job,
        intervals=_intervals(intervals) if intervals.exists() else None,
        histogram_log=log if log.exists() else None,
    )


def _responses(result: dict[str, Any]) -> dict[str, float]:
    total = result["total"]
    responses = {"throughput": total["throughput_per_s"], "elapsed": result["elapsed_s"], **_latencies("", total)}
    if total["count"]:
        responses["cpu_per_op"] = (result["cpu"]["user_s"] + result["cpu"]["system_s"]) * 1e6 / total["count"]
    for name, of_kind in result["operations"].items():
        responses[f"{name}.throughput"] = of_kind["throughput_per_s"]
        responses |= _latencies(f"{name}.", of_kind)
    if result["backend"]["kind"] in _CONNECTED:
        responses["failed_operations"] = float(sum(result["total"]["errors"].values()))
        responses["reconnects"] = float(result["reconnects"])
    if new_orders := result["operations"].get("new_order"):
        responses["new_orders_per_min"] = new_orders["throughput_per_s"] * 60
    return responses | _of_open_loop(result["open"])


def _of_open_loop(opened: dict[str, Any] | None) -> dict[str, float]:
    if opened is None:
        return {}
    lag = opened["lag_us"]
    lags = {} if lag is None else {"lag_p99": lag["p99"] / 1000, "lag_max": lag["max"] / 1000}
    return {"unsent": float(opened["unsent"]), "share_sent": opened["share_sent"], **lags}


def _is_known(response: str, opened: dict[str, Any] | None) -> bool:
    """A request that was never sent would have waited, nobody knows how long: it may be any of the longest.

    Then no quantile above the share that was sent is known, nor is the longest latency, nor the mean.
    """
    name, _, quantile = response.rpartition(".")[2].partition("_")
    return opened is None or name != "latency" or _SHARES.get(quantile, 1.0) <= opened["share_sent"]


def _why_unknown(opened: dict[str, Any]) -> str:
    return (
        f"{opened['unsent']} of {opened['due']} requests that were due were never sent, and how long they would have "
        "waited nobody knows"
    )


def _notes(unknown: Sequence[str]) -> Iterator[str]:
    # Without the numbers, which stand beside it as responses: what many runs say alike, a report says once.
    names = [name for name in unknown if "." not in name]
    if names:
        yield (
            "Some requests that were due were never sent (unsent), and how long they would have waited is not known: "
            f"{', '.join(names)} of such a run are left out, so that what is shown of them is of the other runs alone."
        )


def _latencies(prefix: str, figures: dict[str, Any]) -> dict[str, float]:
    return {
        f"{prefix}{name}_{quantile}": measured[quantile] / 1000
        for name, measured in (("latency", figures["latency_us"]), ("service", figures["service_us"]))
        if measured is not None
        for quantile in _QUANTILES
    }


def _intervals(path: Path) -> pl.DataFrame:
    rows = []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        latency, service, kinds = row.pop("latency_us") or {}, row.pop("service_us") or {}, row.pop("error_kinds")
        for name in _ONLY_TO_CUT:
            row.pop(name, None)
        rows.append(
            {
                **row,
                **{f"{quantile}_us": latency.get(quantile) for quantile in _SHOWN},
                **{f"service_{quantile}_us": service.get(quantile) for quantile in _SHOWN},
                "error_kinds": json.dumps(kinds, sort_keys=True) if kinds else None,
            }
        )
    return pl.DataFrame(rows, schema=INTERVAL_COLUMNS)


def _errors(result: dict[str, Any]) -> dict[str, dict[str, int]]:
    """By operation and kind; those of the warm-up, which the driver does not tell apart by operation, as `warmup`."""
    by_operation = {name: figures["errors"] for name, figures in result["operations"].items()}
    return {**by_operation, "warmup": result["warmup"]["errors"]}


def _refuse_errors(result: dict[str, Any], max_errors: float, first: str) -> None:
    total = _failed(result)
    asked = total + result["total"]["count"] + result["warmup"]["operations"]
    if total > max_errors * asked:
        allowed = f"allowed is {format_percent(max_errors)}"
        raise InvalidRun(f"{total} of {asked} operations failed ({_told(result)}); {allowed}{first}")


def _failed(result: dict[str, Any]) -> int:
    return sum(count for kinds in _errors(result).values() for count in kinds.values())


def _told(result: dict[str, Any]) -> str:
    """How many of which kind, those of connections first: a server that is gone makes all the others."""
    failed = [(kind, name, count) for name, kinds in _errors(result).items() for kind, count in kinds.items()]
    failed.sort(key=lambda each: (each[0] not in _OF_CONNECTIONS, each[1], each[0]))
    return ", ".join(f"{name} {kind}: {count}" for kind, name, count in failed)
