"""A stand-in for `dyno-core drive` whose result is planted, written by another HdrHistogram implementation.

`planted_driver.py CORE PLAN WORDS...`: PLAN is JSON, a list of `[count, latency_us, errors, cpu_s]`, one an interval.
Every other subcommand is the real one's, which reads what was planted.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from hdrh.histogram import HdrHistogram

HOUR_NS = 3_600_000_000_000
NO_QUANTILES = {"latency_us": None, "service_us": None, "failed_us": None}


def main(core: str, plan: str, words: list[str]) -> None:
    if words[0] != "drive":
        os.execv(core, [core, *words])
    job = json.loads(Path(words[words.index("--job") + 1]).read_text())
    out = Path(words[words.index("--out") + 1])
    planted = out.with_name(f"{out.name}-planted")
    planted.mkdir(parents=True)
    intervals = json.loads(Path(plan).read_text()) if job["phase"] == "run" else []
    began_ns = job.get("start_at_ns", time.time_ns())
    (planted / "errors.jsonl").write_text("")
    (planted / "intervals.jsonl").write_text("".join(_lines(intervals, began_ns, job)))
    (planted / "latency.hlog").write_text("".join(_log(intervals, began_ns, job)))
    (planted / "result.json").write_text(json.dumps(_result(intervals, began_ns, job)))
    # It adds the histograms up, whose quantiles then stand in the result.
    os.execv(core, [core, "cut", "--from-interval", "0", "--out", str(out), str(planted)])


def _lines(intervals: list[Any], began_ns: int, job: dict[str, Any]) -> list[str]:
    length = job.get("interval_ms", 0) * 1_000_000
    return [
        json.dumps(
            {
                "start_ns": began_ns + number * length,
                "end_ns": began_ns + (number + 1) * length,
                "warmup": False,
                "operation": "read",
                "count": count,
                "errors": errors,
                "error_kinds": {"busy": errors} if errors else {},
                "reconnects": 0,
                "latency_us": None,
                "service_us": None,
                "cpu": {"user_s": cpu_s, "system_s": 0.0},
            }
        )
        + "\n"
        for number, (count, _, errors, cpu_s) in enumerate(intervals)
    ]


def _log(intervals: list[Any], began_ns: int, job: dict[str, Any]) -> list[str]:
    lines = ["#[Histogram log format version 1.3]\n", f"#[StartTime: {began_ns / 1e9:.3f} (seconds since epoch)]\n"]
    for number, (count, latency_us, _, _) in enumerate(intervals):
        histogram = HdrHistogram(1, HOUR_NS, 3)
        histogram.record_value(latency_us * 1000, count)
        at_s, length_s = number * job["interval_ms"] / 1000, job["interval_ms"] / 1000
        lines.append(f"Tag=read,{at_s:.3f},{length_s:.3f},{latency_us * 1000}.000,{histogram.encode().decode()}\n")
    return lines


def _result(intervals: list[Any], began_ns: int, job: dict[str, Any]) -> dict[str, Any]:
    seconds = len(intervals) * job.get("interval_ms", 0) / 1000
    count, errors = sum(each[0] for each in intervals), sum(each[2] for each in intervals)
    rate = count / seconds if seconds else 0.0
    figures = {"count": count, "errors": {"busy": errors} if errors else {}, "throughput_per_s": rate, **NO_QUANTILES}
    return {
        "format": 1, "outcome": "ok", "ended_by": "operations", "error": None, "phase": job["phase"], "loop": "closed",
        "open": None, "clients": job["clients"], "drivers": 1, "driver": {"number": 0, "of": 1} | job.get("driver", {}),
        "seed": job["seed"], "workload": job["workload"], "reconnects": 0, "checks": [], "ledger": None,
        "started_ns": began_ns, "measured_from_ns": began_ns, "ended_ns": began_ns + round(seconds * 1e9),
        "elapsed_s": seconds, "warmup": {"operations": 0, "errors": {}, "elapsed_s": 0.0},
        "operations": {"read": figures}, "total": figures, "versions": {},
        "cpu": {"user_s": sum(each[3] for each in intervals), "system_s": 0.0},
        "backend": {"kind": "null", "version": "1", "effective": {}, "status": {}},
    }  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
