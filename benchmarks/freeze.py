"""The freeze test on a real server: what a load driver says of a server that stood still for 2 s of 10 s.

    python benchmarks/freeze.py [--rate 2000] [--rounds 3]

A MariaDB is stopped by a signal 4 s into a run of 10 s and goes on 2 s later. Of the requests that were due, a fifth
met the stop, and waited from 2 s down to nothing: the quantiles follow by arithmetic. The open loop must show them
(p99, p99.9 and the longest within 2 %, the median within 0.3 ms of the one without a stop), else the status is 1. A
closed loop is blind to the stop where its p99 is below a tenth of the true one: that is counted, and no bar.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from measuring import Server, carried_out, core, mariadb

RUN = 10.0
STOP = 2.0
AFTER = 4.0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rate", type=float, default=2000.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    driver = core()
    with tempfile.TemporaryDirectory(prefix="dyno-freeze-") as name, mariadb() as server:
        folder = Path(name)
        job = _job(server)
        carried_out(_command(driver, folder, {**job, "phase": "load"}))
        loops = {"open": {"kind": "open", "rate_per_s": options.rate}, "closed": {"kind": "closed"}}
        job = {**job, "duration_s": RUN}
        rounds = [_round(driver, folder, server, job, loops) for _ in range(options.rounds)]
    held, blind = (sum(each) for each in zip(*rounds, strict=True))
    print(f"\nopen loop within its bars in {held} of {len(rounds)} rounds; closed loop blind to the stop in {blind}")
    return 0 if held == len(rounds) else 1


def _round(driver: str, folder: Path, server: Server, job: dict[str, Any], loops: dict[str, Any]) -> tuple[bool, bool]:
    """Whether the open loop kept to its bars, and whether the closed one was blind."""
    calm = _drive(driver, folder, {**job, "loop": loops["open"]}, None)
    seen = {name: _drive(driver, folder, {**job, "loop": loop}, server.pid) for name, loop in loops.items()}
    print(f"\n{'':8}{'truth':>12}{'open':>12}{'closed':>12}   ms")
    truth = {name: _truth(quantile) for name, quantile in (("p99", 0.99), ("p999", 0.999), ("max", 1.0))}
    for name, true in truth.items():
        print(f"{name:8}{true:12.1f}{seen['open'][name]:12.1f}{seen['closed'][name]:12.1f}")
    print(f"{'p50':8}{calm['p50']:12.3f}{seen['open']['p50']:12.3f}{seen['closed']['p50']:12.3f}")
    held = {name: abs(seen["open"][name] / true - 1) <= 0.02 for name, true in truth.items()}
    held["p50"] = abs(seen["open"]["p50"] - calm["p50"]) <= 0.3
    missed = [name for name, kept in held.items() if not kept]
    print(f"open loop: {'MISSED in ' + ', '.join(missed) if missed else 'held'}")
    return not missed, seen["closed"]["p99"] < truth["p99"] / 10


def _truth(quantile: float) -> float:
    """In ms, of waits that are even between 0 and the stop for the share of requests that met it."""
    return (quantile - (1 - STOP / RUN)) / (STOP / RUN) * STOP * 1000


def _drive(driver: str, folder: Path, job: dict[str, Any], stop: int | None) -> dict[str, float]:
    with subprocess.Popen(_command(driver, folder, {**job, "phase": "run"})) as process:
        if stop is not None:
            time.sleep(AFTER)
            os.kill(stop, signal.SIGSTOP)
            try:
                time.sleep(STOP)
            finally:
                os.kill(stop, signal.SIGCONT)
    if process.returncode != 0:
        sys.exit(f"the driver ended with status {process.returncode}")
    result = json.loads((folder / "out" / "result.json").read_text())
    if result["total"]["errors"]:
        sys.exit(f"operations failed: {result['total']['errors']}")
    return {name: value / 1000 for name, value in result["total"]["latency_us"].items()}


def _command(driver: str, folder: Path, job: dict[str, Any]) -> list[str]:
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    return [driver, "drive", "--job", str(path), "--out", str(folder / "out")]


def _job(server: Server) -> dict[str, Any]:
    return {
        "format": 1,
        "backend": {"kind": "mysql", "socket": server.socket, "user": "root", "database": "ycsb"},
        "workload": {"kind": "ycsb", "records": 1000, "proportions": {"read": 1}},
        "clients": 8,
        "seed": 1,
    }


if __name__ == "__main__":
    sys.exit(main())
