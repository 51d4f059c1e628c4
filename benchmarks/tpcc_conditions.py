"""TPC-C on real stores: whether its consistency conditions 1 to 4 hold after many clients changed the data.

    python benchmarks/tpcc_conditions.py [--seconds 60] [--clients 8] [--warehouses 1] [mariadb] [postgresql] [sqlite]

Loads the specification's data into a MariaDB, a PostgreSQL and a SQLite of its own, drives all five transactions, and
has the driver check the store (clauses 3.3.2.1 to 3.3.2.4 of TPC-C, revision 5.11). Transactions that failed, such as a
deadlock's victims, are counted by kind and must have left nothing behind. The status is 1 where a condition does not
hold, or where nothing was driven or checked.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from measuring import core, mariadb, postgresql

CONDITIONS = 4


STORES = ("mariadb", "postgresql", "sqlite")


@contextmanager
def _opened(store: str, folder: Path, clients: int) -> Iterator[dict[str, Any]]:
    """A new store, as a job names it."""
    if store == "sqlite":
        yield {"kind": "sqlite", "path": str(folder / "tpcc.db"), "config": {"journal_mode": "wal"}}
    elif store == "mariadb":
        with mariadb(f"--max-connections={clients + 10}") as server:
            yield {"kind": "mysql", "socket": server.socket, "user": "root", "database": "ycsb"}
    else:
        with postgresql(f"max_connections={clients + 10}") as server:
            yield {"kind": "postgresql", "socket": server.socket, "user": "root", "database": "ycsb"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stores", nargs="*", metavar="STORE", help=", ".join(STORES))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--warehouses", type=int, default=1)
    options = parser.parse_args()
    if unknown := set(options.stores) - set(STORES):
        parser.error(f"no store {', '.join(sorted(unknown))}; there are {', '.join(STORES)}")
    driver = core()
    held = True
    for store in options.stores or STORES:
        with tempfile.TemporaryDirectory(prefix="dyno-tpcc-") as name:
            folder = Path(name)
            with _opened(store, folder, options.clients) as backend:
                print(f"\n{store}, {options.warehouses} warehouses, {options.clients} clients, {options.seconds:g} s")
                held &= _store(driver, folder, backend, options)
    return 0 if held else 1


def _store(driver: str, folder: Path, backend: dict[str, Any], options: argparse.Namespace) -> bool:
    job = {"backend": backend, "workload": {"kind": "tpcc", "warehouses": options.warehouses}, "seed": 1}
    loaded = _carry_out(driver, folder, {**job, "phase": "load", "clients": 1})
    if loaded["outcome"] != "ok" or loaded["total"]["errors"]:
        print(f"  not loaded: {loaded['error']}, errors {loaded['total']['errors']}")
        return False
    run = _carry_out(driver, folder, {**job, "phase": "run", "clients": options.clients, "duration_s": options.seconds})
    print(f"  transactions: {run['total']['count']:,} ({_told(run, 'count')})")
    print(f"  errors: {sum(run['total']['errors'].values()):,} ({_told(run, 'errors')})")
    driven = run["outcome"] == "ok" and all(figures["count"] for figures in run["operations"].values())
    if not driven:
        print(f"  NOT DRIVEN as asked: {run['outcome']}, {run['error']}")
    checks = _carry_out(driver, folder, {**job, "phase": "check", "clients": 1})["checks"]
    for check in checks:
        print(f"  {check['name']}: {'holds' if check['holds'] else 'DOES NOT HOLD'} ({check['detail']})")
    if len(checks) != CONDITIONS:
        print(f"  {len(checks)} conditions were checked, not {CONDITIONS}")
    return driven and len(checks) == CONDITIONS and all(check["holds"] for check in checks)


def _told(result: dict[str, Any], what: str) -> str:
    parts = [f"{name}: {figures[what]}" for name, figures in result["operations"].items() if figures[what]]
    return ", ".join(parts) or "none"


def _carry_out(driver: str, folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """A job's result, whatever it says. Ends the benchmark where there is none."""
    path, out = folder / "job.json", folder / job["phase"]
    path.write_text(json.dumps({"format": 1, **job}))
    done = subprocess.run(
        [driver, "drive", "--job", str(path), "--out", str(out)], capture_output=True, text=True, check=False
    )
    if not (out / "result.json").exists():
        sys.exit(f"the driver ended with status {done.returncode}: {done.stderr}")
    result: dict[str, Any] = json.loads((out / "result.json").read_text())
    return result


if __name__ == "__main__":
    sys.exit(main())
