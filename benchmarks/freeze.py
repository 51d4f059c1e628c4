"""The freeze test on a real server: what a load driver says of a server that stood still for 2 s of 10 s.

    python benchmarks/freeze.py [--rate 2000] [--rounds 3]

A MariaDB is stopped by a signal 4 s into a run of 10 s and goes on 2 s later. Of the requests that were due, a fifth
met the stop, and waited from 2 s down to nothing: the quantiles follow by arithmetic. The open loop must show them
(p99, p99.9 and the longest within 2 %, the median within 0.3 ms of the one without a stop); the closed loop cannot.
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

from measuring import MariaDB, core, cost, mariadb

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
        cost(_command(driver, folder, {**job, "phase": "load"}))
        loops = {"open": {"kind": "open", "rate_per_s": options.rate}, "closed": {"kind": "closed"}}
        held = [_round(driver, folder, server, {**job, "duration_s": RUN}, loops) for _ in range(options.rounds)]
    print(f"open loop within its bars in {sum(held)} of {len(held)} rounds; the closed loop is blind to the stop")
    return 0 if all(held) else 1


def _round(driver: str, folder: Path, server: MariaDB, job: dict[str, Any], loops: dict[str, Any]) -> bool:
    calm = _drive(driver, folder, {**job, "loop": loops["open"]}, None)
    seen = {name: _drive(driver, folder, {**job, "loop": loop}, server.pid) for name, loop in loops.items()}
    print(f"\n{'':8}{'truth':>12}{'open':>12}{'closed':>12}   ms")
    held = True
    for name, quantile in (("p99", 0.99), ("p999", 0.999), ("max", 1.0)):
        truth = (quantile - (1 - STOP / RUN)) / (STOP / RUN) * STOP * 1000
        print(f"{name:8}{truth:12.1f}{seen['open'][name]:12.1f}{seen['closed'][name]:12.1f}")
        held &= abs(seen["open"][name] / truth - 1) <= 0.02
    print(f"{'p50':8}{calm['p50']:12.3f}{seen['open']['p50']:12.3f}{seen['closed']['p50']:12.3f}")
    return held and abs(seen["open"]["p50"] - calm["p50"]) <= 0.3


def _drive(driver: str, folder: Path, job: dict[str, Any], stop: int | None) -> dict[str, float]:
    with subprocess.Popen(_command(driver, folder, {**job, "phase": "run"})):
        if stop is not None:
            time.sleep(AFTER)
            os.kill(stop, signal.SIGSTOP)
            try:
                time.sleep(STOP)
            finally:
                os.kill(stop, signal.SIGCONT)
    result = json.loads((folder / "out" / "result.json").read_text())
    if result["outcome"] != "ok":
        sys.exit(f"the driver failed: {result['error']}")
    return {name: value / 1000 for name, value in result["total"]["latency_us"].items()}


def _command(driver: str, folder: Path, job: dict[str, Any]) -> list[str]:
    path = folder / "job.json"
    path.write_text(json.dumps(job))
    return [driver, "drive", "--job", str(path), "--out", str(folder / "out")]


def _job(server: MariaDB) -> dict[str, Any]:
    return {
        "format": 1,
        "backend": {"kind": "mysql", "socket": server.socket, "user": "root", "database": "ycsb"},
        "workload": {"kind": "ycsb", "records": 1000, "proportions": {"read": 1}},
        "clients": 8,
        "seed": 1,
    }


if __name__ == "__main__":
    sys.exit(main())
