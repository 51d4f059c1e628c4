"""What the database observer costs: CPU time of a look, and throughput with it and without.

    python benchmarks/database_cost.py [--looks 300] [--blocks 12] [--hz 1]

A look is asked of an idle server, again and again: CPU time is what the kernel counted of the server's threads and of
dyno's own, in ns. Throughput is of YCSB C on a MariaDB whose data are in its buffer pool, which has nothing but CPU to
do it with: pairs of runs in random order, one of them watched. Servers that are not there are left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from dyno.hosts import LocalHost, UndoJournal
from dyno.hosts.local import core_binary
from dyno.lab import Interrupt, Rooms
from dyno.model.base import RunError
from dyno.model.study import KindSpec
from dyno.selfcheck.measure import Bench
from dyno.systems.base import Place
from measuring import verdict
from watched import pairs

LIMIT_S = 60.0
SERVERS: dict[str, tuple[str, dict[str, Any]]] = {
    "mariadb": ("mariadb", {}),
    "mariadb, performance_schema on": ("mariadb", {"performance_schema": True}),
    "mysql, performance_schema off": ("mysql", {"performance_schema": False}),
    "mysql": ("mysql", {}),
    "postgresql": ("postgresql", {}),
}


def main() -> int:
    """Print the figures; 1 where a look takes more of a server's CPU than 5 ms, which is 0.5 % of one once a second."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--looks", type=int, default=300)
    parser.add_argument("--blocks", type=int, default=12)
    parser.add_argument("--hz", type=float, default=1.0)
    options = parser.parse_args()
    held = []
    with UndoJournal() as journal:
        host = LocalHost(journal)
        folder = host.temporary_folder(Path(tempfile.gettempdir()) / f"dyno-database-cost-{journal.token}")
        folder.chmod(0o711)
        print(f"ms of a look, of {options.looks}:")
        for title in SERVERS:
            if (cost := look(title, options.looks, host, folder)) is not None:
                server, own, took = cost
                print(f"  {title}: {server:.2f} CPU of the server, {own:.2f} CPU of dyno, {took:.2f} until answered")
                held.append(verdict(f"{title}: ms of the server's CPU", [server], 5.0))
        if options.blocks:
            bench = Bench(Rooms.open(), host, core_binary(), folder, Interrupt(), print)
            pairs(bench, options.blocks, KindSpec(kind="database", options={"hz": options.hz}))
    return 0 if all(held) else 1


def look(title: str, looks: int, host: LocalHost, folder: Path) -> tuple[float, float, float] | None:
    """Milliseconds of a look: CPU of the server, of dyno, and until it is answered; None where there is no server."""
    kind, options = SERVERS[title]
    system_kind = Rooms.open().systems[kind]
    own = folder / title.replace(" ", "-").replace(",", "")
    own.mkdir(mode=0o711)
    place = Place(host=host, data=own / "live", logs=own / "logs", core=core_binary(), shared=folder / "shared")
    system = system_kind(system_kind.Options.model_validate(options), place)
    try:
        system.provision(LIMIT_S)
    except RunError as error:
        print(f"  {title}: {error}")
        return None
    system.prepare(LIMIT_S)
    system.start(1, LIMIT_S)
    (pid,) = system.ready(LIMIT_S).processes.values()
    source = system.counters(LIMIT_S)
    assert source is not None
    for _ in range(20):
        source.read()
    begun, server, mine = time.monotonic(), cpu_s(pid), time.thread_time()
    for _ in range(looks):
        source.read()
    found = cpu_s(pid) - server, time.thread_time() - mine, time.monotonic() - begun
    source.close()
    system.destroy()
    server_ms, own_ms, took_ms = (1000 * each / looks for each in found)
    return server_ms, own_ms, took_ms


def cpu_s(pid: int) -> float:
    """CPU time of a process and its children so far, by the threads that live."""
    used = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            used += int((task / "schedstat").read_text().split()[0])
            children = (task / "children").read_text().split()
        except OSError:
            continue  # it ended meanwhile
        used += sum(round(1e9 * cpu_s(int(child))) for child in children)
    return used / 1e9


if __name__ == "__main__":
    sys.exit(main())
