"""Handing a job to `dyno-core drive` and reading the folder that it fills. Shared by the kinds that it carries out."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from dyno.model.base import InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.workloads.base import INTERVAL_COLUMNS, Checked, Measured, Runner

JOB_FORMAT = 1
RESULT_FORMAT = 1

_QUANTILES = ("mean", "p50", "p90", "p95", "p99", "p999", "max")
_SHOWN = ("mean", "p50", "p95", "p99", "max")
_CONNECTED = ("mysql", "postgresql")
_ONLY_TO_CUT = ("reconnects", "cpu")  # keys of an interval that are not kept


def job(
    endpoint: Endpoint, workload: dict[str, Any], *, phase: str, clients: int, seed: int, **rest: Any
) -> dict[str, Any]:
    """A job as `schema/job.schema.json` has it; keys of `rest` that are None are left out."""
    return {
        "format": JOB_FORMAT,
        "phase": phase,
        "backend": {"kind": endpoint.backend, **endpoint.settings},
        "workload": workload,
        "clients": clients,
        "seed": seed,
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
    for result in results:
        _refuse_failed(result)
    out, result = _folder(runner, jobs, 0), results[0]
    if len(jobs) > 1:
        out = runner.folder / "merged"
        result = _merged(runner, [_folder(runner, jobs, number) for number in range(len(jobs))], out)
    measured = _measured(result, jobs, out)
    if measured.complete:
        _refuse_errors(result, max_errors)
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
    part = _measured(_read(out / "result.json", status, runner.complaint), [measured.job], out)
    return replace(part, notes=measured.notes)


def load(runner: Runner, job: dict[str, Any]) -> None:
    """Run a job of phase load, of which nothing may fail. Raises RunError."""
    (result,) = carry_out(runner, [job])
    _refuse_failed(result)
    if result["outcome"] != "ok":
        raise RunError("the load was cut short")
    if failed := sum(count for kinds in _errors(result).values() for count in kinds.values()):
        raise RunError(f"{failed} operations of the load failed ({_told(result)})")


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
    statuses = runner.execute_all(argvs)
    return [
        _read(_folder(runner, jobs, number) / "result.json", status, runner.complaint)
        for number, status in enumerate(statuses)
    ]


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


def _folder(runner: Runner, jobs: Sequence[dict[str, Any]], number: int) -> Path:
    return runner.folder / _name(jobs[number]["phase"], len(jobs), number)


def _name(phase: str, drivers: int, number: int) -> str:
    return phase if drivers == 1 else f"{phase}-{number}"


def _merged(runner: Runner, parts: Sequence[Path], out: Path) -> dict[str, Any]:
    status = runner.execute([runner.core, "merge", "--out", str(out), *map(str, parts)])
    if status != 0:
        raise RunError(f"dyno-core merge ended with status {status}: {runner.complaint or 'it said nothing'}")
    return _read(out / "result.json", status, runner.complaint)


def _refuse_failed(result: dict[str, Any]) -> None:
    if result["outcome"] == "failed":
        error = result["error"] or {"kind": "unknown", "message": "the driver gave no reason"}
        if error["kind"] == "rate_not_reached":
            raise InvalidRun(f"the rate was not reached: {error['message']}")
        raise RunError(f"{error['kind']}: {error['message']}")


def _read(path: Path, status: int, complaint: str) -> dict[str, Any]:
    try:
        result = json.loads(path.read_text())
    except FileNotFoundError:
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        raise RunError(f"dyno-core drive {how} without a result: {complaint or 'it said nothing'}") from None
    except ValueError as error:
        raise RunError(f"dyno-core drive left a result that cannot be read: {error}") from error
    if result.get("format") != RESULT_FORMAT:
        raise RunError(f"dyno-core drive wrote format {result.get('format')!r}, this dyno reads {RESULT_FORMAT}")
    return dict(result)


def _measured(result: dict[str, Any], jobs: Sequence[dict[str, Any]], out: Path) -> Measured:
    intervals = out / "intervals.jsonl"
    log = out / "latency.hlog"
    opened = result["open"]
    return Measured(
        complete=result["outcome"] == "ok",
        responses=_responses(result),
        errors={name: kinds for name, kinds in _errors(result).items() if kinds},
        measured_from_ns=result["measured_from_ns"],
        measured_to_ns=result["ended_ns"],
        settings=result["backend"]["effective"],
        status={f"{result['backend']['kind']}.{name}": value for name, value in result["backend"]["status"].items()},
        versions=result["versions"],
        loop=result["loop"],
        rate_per_s=opened["rate_per_s"] if opened else None,
        ended_by=result["ended_by"],
        job=jobs[0],
        intervals=_intervals(intervals) if intervals.exists() else None,
        histogram_log=log if log.exists() else None,
    )


def _responses(result: dict[str, Any]) -> dict[str, float]:
    total = result["total"]
    responses = {"throughput": total["throughput_per_s"], "elapsed": result["elapsed_s"], **_latencies("", total)}
    if total["count"]:
        responses["cpu_per_op"] = (result["cpu"]["user_s"] + result["cpu"]["system_s"]) * 1e6 / total["count"]
    if result["backend"]["kind"] in _CONNECTED:
        responses["failed_operations"] = float(sum(total["errors"].values()))
        responses["reconnects"] = float(result["reconnects"])
    for name, figures in result["operations"].items():
        responses[f"{name}.throughput"] = figures["throughput_per_s"]
        responses |= _latencies(f"{name}.", figures)
    if new_orders := result["operations"].get("new_order"):
        responses["new_orders_per_min"] = new_orders["throughput_per_s"] * 60
    return responses | _of_open_loop(result["open"])


def _of_open_loop(opened: dict[str, Any] | None) -> dict[str, float]:
    if opened is None:
        return {}
    lag = opened["lag_us"]
    lags = {} if lag is None else {"lag_p99": lag["p99"] / 1000, "lag_max": lag["max"] / 1000}
    return {"unsent": float(opened["unsent"]), "share_sent": opened["share_sent"], **lags}


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


def _refuse_errors(result: dict[str, Any], max_errors: float) -> None:
    total = sum(count for kinds in _errors(result).values() for count in kinds.values())
    asked = total + result["total"]["count"] + result["warmup"]["operations"]
    if total > max_errors * asked:
        raise InvalidRun(f"{total} of {asked} operations failed ({_told(result)}); allowed is {max_errors:.3%}")


def _told(result: dict[str, Any]) -> str:
    failed = {f"{name} {kind}": count for name, kinds in _errors(result).items() for kind, count in kinds.items()}
    return ", ".join(f"{kind}: {count}" for kind, count in sorted(failed.items()))
