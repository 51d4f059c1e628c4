"""Handing a job to `dyno-core drive` and reading the folder that it fills. Shared by the kinds that it carries out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl

from dyno.model.base import InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.workloads.base import INTERVAL_COLUMNS, Measured, Runner

JOB_FORMAT = 1
RESULT_FORMAT = 1

_QUANTILES = ("mean", "p50", "p90", "p95", "p99", "p999", "max")


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

    Raises RunError where the driver failed, InvalidRun where more operations failed than allowed.
    """
    runner.folder.mkdir(parents=True, exist_ok=True)
    runner.logs.mkdir(parents=True, exist_ok=True)
    # Kept, so that a run that failed can be tried again by hand with what it was given.
    path = runner.logs / f"job-{job['phase']}.json"
    path.write_text(json.dumps(job, indent=1) + "\n")
    out = runner.folder / "driver"
    status = runner.execute(
        [runner.core, "drive", "--job", str(path), "--out", str(out), "--progress", "--stop-on-stdin-eof"]
    )
    result = _read(out / "result.json", status, runner.complaint)
    measured = _measured(result, job, out)
    if result["outcome"] == "failed":
        error = result["error"] or {"kind": "unknown", "message": "the driver gave no reason"}
        raise RunError(f"{error['kind']}: {error['message']}")
    if measured.complete:
        _refuse_errors(result, max_errors)
        if result["total"]["count"] == 0:
            raise InvalidRun("the driver ended without a single successful operation")
    return measured


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


def _measured(result: dict[str, Any], job: dict[str, Any], out: Path) -> Measured:
    intervals = out / "intervals.jsonl"
    log = out / "latency.hlog"
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
    for name, figures in result["operations"].items():
        responses[f"{name}.throughput"] = figures["throughput_per_s"]
        responses |= _latencies(f"{name}.", figures)
    return responses


def _latencies(prefix: str, figures: dict[str, Any]) -> dict[str, float]:
    latency = figures["latency_us"]
    if latency is None:
        return {}
    return {f"{prefix}latency_{quantile}": latency[quantile] / 1000 for quantile in _QUANTILES}


def _intervals(path: Path) -> pl.DataFrame:
    rows = []
    for line in path.read_text().splitlines():
        row = json.loads(line)
        latency = row.pop("latency_us") or {}
        rows.append(
            {**row, **{f"{quantile}_us": latency.get(quantile) for quantile in ("mean", "p50", "p95", "p99", "max")}}
        )
    return pl.DataFrame(rows, schema=INTERVAL_COLUMNS)


def _errors(result: dict[str, Any]) -> dict[str, dict[str, int]]:
    """By operation and kind; those of the warm-up, which the driver does not tell apart by operation, as `warmup`."""
    by_operation = {name: figures["errors"] for name, figures in result["operations"].items()}
    return {**by_operation, "warmup": result["warmup"]["errors"]}


def _refuse_errors(result: dict[str, Any], max_errors: float) -> None:
    failed = {f"{name} {kind}": count for name, kinds in _errors(result).items() for kind, count in kinds.items()}
    total = sum(failed.values())
    asked = total + result["total"]["count"] + result["warmup"]["operations"]
    if total > max_errors * asked:
        kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(failed.items()))
        raise InvalidRun(f"{total} of {asked} operations failed ({kinds}); allowed is {max_errors:.3%}")
