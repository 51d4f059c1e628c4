"""What the load driver costs, beside its peers: own cost, CPU of the client on MariaDB, many clients.

    python benchmarks/driver_cost.py [--rounds 7] [--operations 200000] [own] [client] [many]

own     the driver's loop on the null backend beside sysbench's empty event, one thread: a thin loop (a number and one
        histogram), and YCSB C (key text, exact Zipfian, intervals) closed, and open with intended and service times
client  CPU of the client an operation on MariaDB, YCSB C and A, 4 threads, over TCP and the socket file, beside
        sysbench (a Lua script with the same rows, columns and mix) and go-ycsb (where `dyno get go-ycsb` built it)
many    200 clients beside 4: CPU an operation, and memory

No cost counts of a program that did not do what it was asked: rows must be found, and errors end the benchmark. A peer
that is not there is said, and makes the status 1, as a bar that is missed does.

Everything runs in interleaved rounds; ratios are taken within rounds. On a shared machine compare ratios, not times.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.workloads import foreign, go_ycsb, sysbench
from measuring import Cost, Server, carried_out, core, cost, interleaved, limited, mariadb, program, spread, verdict

HERE = Path(__file__).parent
RECORDS = 10_000
SYSBENCH = "apt-get install sysbench"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["own", "client", "many"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--operations", type=int, default=200_000)
    options = parser.parse_args()
    driver = core()
    held = True
    with tempfile.TemporaryDirectory(prefix="dyno-driver-cost-") as name:
        bench = Bench(driver, Path(name), options.rounds, options.operations)
        if "own" in options.parts:
            held &= bench.own()
        if {"client", "many"} & set(options.parts):
            with mariadb("--innodb-flush-log-at-trx-commit=0", "--max-connections=500") as server:
                bench.load(server)
                if "client" in options.parts:
                    held &= bench.client(server)
                if "many" in options.parts:
                    held &= bench.many(server)
    return 0 if held else 1


class Bench:
    """One session of measuring, with a scratch folder of its own."""

    def __init__(self, driver: str, folder: Path, rounds: int, operations: int) -> None:
        self.driver = driver
        self.folder = folder
        self.rounds = rounds
        self.operations = operations
        self.seeds = itertools.count(1)

    def drive(self, **job: Any) -> Cost:
        """Carry out a job of the run phase, or another that `job` says; all of it must succeed."""
        path = self.folder / "job.json"
        path.write_text(json.dumps({"format": 1, "phase": "run", "clients": 1, "seed": 1, **job}))
        command = [self.driver, "drive", "--job", str(path), "--out", str(self.folder / "out")]
        return carried_out(command, job.get("operations"))

    def own(self) -> bool:
        """Beside an event of sysbench that does nothing."""
        events = 25 * self.operations
        empty = self.folder / "empty.lua"
        empty.write_text("function event() end\n")
        empty_event = [program("sysbench", SYSBENCH), f"--events={events}", "--time=0", str(empty), "run"]
        null = {"backend": {"kind": "null"}, "operations": events}
        ycsb = {"kind": "ycsb", "records": 1_000_000, "proportions": {"read": 1}}
        # A rate out of reach: whenever a request is done, the next is due.
        open_loop = {"kind": "open", "rate_per_s": 1e9}
        done = interleaved(
            self.rounds,
            {
                "sysbench": lambda: _events(cost(empty_event), events),
                "thin": lambda: self.drive(**null, workload={"kind": "null"}),
                "ycsb c, closed": lambda: self.drive(**null, workload=ycsb),
                "ycsb c, open": lambda: self.drive(**null, workload=ycsb, loop=open_loop),
            },
        )
        print(f"\nOwn cost on the null backend, ns an operation: min / median / max of {self.rounds} rounds")
        for name in done[0]:
            print(f"  {name:16}{spread([each[name].both * 1e9 / events for each in done], 0):>24}")
        ratios = {name: [each[name].both / each["sysbench"].both for each in done] for name in done[0]}
        held = verdict("thin loop : sysbench's empty event", ratios["thin"], 1.0)
        held &= verdict("YCSB C, closed loop : sysbench's empty event", ratios["ycsb c, closed"], 1.5)
        return verdict("YCSB C, open loop : sysbench's empty event", ratios["ycsb c, open"], 1.5) and held

    def load(self, server: Server) -> None:
        """The table that the driver and sysbench both use, and the one of go-ycsb."""
        self.drive(phase="load", clients=2, workload=_ycsb({"read": 1}), backend=_backend(server, "socket"))
        if _go_ycsb():
            _by_go_ycsb(server, "load", {"read": 1.0}, RECORDS)

    def client(self, server: Server) -> bool:
        """The client's CPU beside that of its peers."""
        held = True
        for mix, shares in (("c", {"read": 1.0}), ("a", {"read": 0.5, "update": 0.5})):
            for way in ("TCP", "socket"):
                kinds = {
                    "dyno": lambda way=way, shares=shares: self.drive(
                        backend=_backend(server, way), workload=_ycsb(shares), clients=4, operations=self.operations
                    ),
                    "sysbench": lambda way=way, shares=shares: self._by_sysbench(server, way, shares),
                }
                # It knows TCP only.
                if way == "TCP" and _go_ycsb():
                    kinds["go-ycsb"] = lambda shares=shares: _by_go_ycsb(server, "run", shares, self.operations)
                done = interleaved(self.rounds, kinds)
                print(f"\nYCSB {mix.upper()} over {way}, 4 threads: CPU of the client, us an operation")
                for name in kinds:
                    user = spread([each[name].user * 1e6 / self.operations for each in done])
                    both = spread([each[name].both * 1e6 / self.operations for each in done])
                    print(f"  {name:10} user {user:>22}   both {both:>22}")
                user = [each["dyno"].user / each["sysbench"].user for each in done]
                both = [each["dyno"].both / each["sysbench"].both for each in done]
                held &= verdict("user, dyno : sysbench", user, 0.8)
                print(f"  both, dyno : sysbench: {spread(both)}")
                # On the socket nearly all of it is the kernel's.
                if way == "TCP":
                    sides = ([each[name].both for each in done] for name in ("dyno", "sysbench"))
                    held &= limited("both, dyno : sysbench, mean", *sides, 1.1)
                if "go-ycsb" in kinds:
                    held &= verdict("both, dyno : go-ycsb", [e["dyno"].both / e["go-ycsb"].both for e in done], 0.5)
                elif way == "TCP":
                    print("  both, dyno : go-ycsb: not measured: run `dyno get go-ycsb`")
                    held = False
        return held

    def _by_sysbench(self, server: Server, way: str, shares: dict[str, float]) -> Cost:
        """One query an event, without an error; its script sees to the rows that are read, its counts to the others."""
        used = cost(self._sysbench(server, way, shares))
        try:
            said = sysbench.parse(used.output)
        except RunError as error:
            sys.exit(f"{error}\n{used.output}")
        whole = said.events == said.queries == self.operations and not said.ignored and not said.reconnects
        # A write that met no row is none, and stands among the others.
        if not whole or not re.search(r"^\s*other:\s+0$", used.output, re.MULTILINE):
            sys.exit(f"sysbench did not do {self.operations} queries without an error:\n{used.output}")
        return used

    def _sysbench(self, server: Server, way: str, shares: dict[str, float]) -> list[str]:
        where = ["--mysql-host=127.0.0.1", f"--mysql-port={server.port}"]
        if way == "socket":
            where = [f"--mysql-socket={server.socket}"]
        return [
            program("sysbench", SYSBENCH),
            str(HERE / "ycsb.lua"),
            "--db-driver=mysql",
            *where,
            "--mysql-user=root",
            "--mysql-db=ycsb",
            f"--records={RECORDS}",
            f"--updates={shares.get('update', 0) * 100:.0f}",
            "--threads=4",
            f"--events={self.operations}",
            "--time=0",
            "--percentile=99",  # the one that is read
            # By its clock two runs within a second would write the same values, which changes no row.
            f"--rand-seed={next(self.seeds)}",
            "run",
        ]

    def many(self, server: Server) -> bool:
        """Two hundred clients beside four."""
        kinds = {
            f"{clients} clients": lambda clients=clients: self.drive(
                backend=_backend(server, "TCP"),
                workload=_ycsb({"read": 0.5, "update": 0.5}),
                clients=clients,
                operations=self.operations,
            )
            for clients in (4, 200)
        }
        done = interleaved(self.rounds, kinds)
        print("\nYCSB A over TCP: CPU of the client, us an operation, and its memory")
        for name in kinds:
            both = spread([each[name].both * 1e6 / self.operations for each in done])
            print(f"  {name:12}{both:>22}   {spread([each[name].memory for each in done], 1)} MiB")
        held = verdict("CPU, 200 : 4 clients", [e["200 clients"].both / e["4 clients"].both for e in done], 1.3)
        return verdict("memory of 200 clients, of 64 MiB", [e["200 clients"].memory / 64 for e in done], 1.0) and held


def _backend(server: Server, way: str) -> dict[str, Any]:
    where: dict[str, Any] = {"socket": server.socket}
    if way == "TCP":
        where = {"host": "127.0.0.1", "port": server.port}
    return {"kind": "mysql", **where, "user": "root", "database": "ycsb"}


def _ycsb(shares: dict[str, float]) -> dict[str, Any]:
    # Keys that sysbench can write too.
    return {"kind": "ycsb", "records": RECORDS, "proportions": shares, "insert_order": "ordered"}


def _events(used: Cost, events: int) -> Cost:
    """What sysbench says of a script that asks no database: its number of events alone."""
    found = re.search(r"total number of events:\s+(\d+)\s", used.output)
    if found is None or int(found[1]) != events:
        sys.exit(f"sysbench did not do {events} events:\n{used.output}")
    return used


def _by_go_ycsb(server: Server, phase: str, shares: dict[str, float], operations: int) -> Cost:
    """Its status is 0 whatever happened, and a read of no row is a success of its: the rows must be there."""
    used = cost(_go_ycsb_command(server, phase, shares, operations, 4))
    try:
        said = go_ycsb.parse(used.output)
    except RunError as error:
        sys.exit(f"{error}\n{used.output}")
    if said.errors or said.operations != operations:
        sys.exit(f"go-ycsb did {said.operations} of {operations} operations, errors {said.errors}")
    at = {"host": "127.0.0.1", "port": server.port, "user": "root", "password": "", "database": "ycsb_go"}
    if (rows := foreign.stored_rows(Endpoint("mysql", at))) != RECORDS:
        sys.exit(f"the table of go-ycsb has {rows} rows, not {RECORDS}")
    return used


def _go_ycsb() -> str | None:
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache"))
    return next((str(path) for path in sorted(cache.glob("dyno/tools/**/go-ycsb")) if path.is_file()), None)


def _go_ycsb_command(server: Server, phase: str, shares: dict[str, float], operations: int, threads: int) -> list[str]:
    properties = {
        "workload": "core",
        "recordcount": RECORDS,
        "operationcount": operations,
        "threadcount": threads,
        "readproportion": shares.get("read", 0),
        "updateproportion": shares.get("update", 0),
        "scanproportion": 0,
        "insertproportion": 0,
        "requestdistribution": "zipfian",
        "mysql.host": "127.0.0.1",
        "mysql.port": server.port,
        "mysql.user": "root",
        "mysql.password": "",
        "mysql.db": "ycsb_go",
        # It opens a profiling port on all addresses otherwise.
        "debug.pprof": "127.0.0.1:0",
    }
    words = [f"{key}={value}" for key, value in properties.items()]
    return [str(_go_ycsb()), phase, "mysql", *(word for pair in words for word in ("-p", pair))]


if __name__ == "__main__":
    sys.exit(main())
