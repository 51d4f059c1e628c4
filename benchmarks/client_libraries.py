"""What client libraries cost: CPU time of point reads of a YCSB row by dyno's clients, libraries of Rust and sysbench.

    python benchmarks/client_libraries.py [--rounds 5] [--operations 100000] [--threads 4] [mariadb] [postgresql]

Starts a MariaDB and a PostgreSQL in temporary folders. In each round every client reads the same rows by the same
prepared statement over TCP and by the socket file, one after the other, in an order that turns, so that drift of the
machine meets all alike. What is counted is the CPU time of the client's process from its start to its end; each fails
where a row is missing. Prints microseconds an operation, and ratios within rounds: on MariaDB to sysbench, where the
bars are 0.8 of its user time and 1.1 of its whole time over TCP, on PostgreSQL to the postgres crate.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from measuring import Cost, built, cost, interleaved, mariadb, postgresql, program, spread

HERE = Path(__file__).parent / "client_libraries"
RECORDS = 10_000
# Of each store, what starts it and its clients; ratios are to the last of them.
STORES = {
    "mariadb": (mariadb, "mysql", ("dyno-mysql", "mysql", "sysbench")),
    "postgresql": (postgresql, "postgresql", ("dyno-postgresql", "postgres")),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stores", nargs="*", default=list(STORES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    own = built(HERE, "client-libraries")
    for store in options.stores:
        start, protocol, clients = STORES[store]
        with start() as server:
            subprocess.run([own, "load", protocol, server.socket, str(RECORDS)], check=True)
            for way, address in (("TCP", str(server.port)), ("socket", server.socket)):
                kinds = {client: partial(cost, _command(own, client, address, options)) for client in clients}
                _print(f"{store} over {way}", clients, interleaved(options.rounds, kinds), options.operations)
    return 0


def _command(own: str, client: str, address: str, options: argparse.Namespace) -> list[str]:
    if client != "sysbench":
        return [own, client, address, str(RECORDS), str(options.threads), str(options.operations)]
    where = (
        ["--mysql-host=127.0.0.1", f"--mysql-port={address}"] if address.isdigit() else [f"--mysql-socket={address}"]
    )
    # A time of 0 is no limit; otherwise the default of ten seconds would end it too.
    return [
        program("sysbench", "apt-get install sysbench"),
        str(HERE / "point_select.lua"),
        "--db-driver=mysql",
        *where,
        "--mysql-user=root",
        "--mysql-db=ycsb",
        f"--records={RECORDS}",
        f"--threads={options.threads}",
        f"--events={options.operations}",
        "--time=0",
        "run",
    ]


def _print(where: str, clients: Sequence[str], rounds: list[dict[str, Cost]], operations: int) -> None:
    last = clients[-1]
    print(f"\nCPU time an operation on {where}, in microseconds: min / median / max of {len(rounds)} rounds\n")
    print(f"{'':16}{'user':>24}{'system':>24}{'both':>24}{f'user : {last}':>24}{f'both : {last}':>24}")
    for client in clients:
        user = [each[client].user * 1e6 / operations for each in rounds]
        system = [each[client].system * 1e6 / operations for each in rounds]
        both = [each[client].both * 1e6 / operations for each in rounds]
        user_ratio = [each[client].user / each[last].user for each in rounds]
        both_ratio = [each[client].both / each[last].both for each in rounds]
        columns = [user, system, both, user_ratio, both_ratio]
        print(f"{client:16}" + "".join(f"{spread(column):>24}" for column in columns))


if __name__ == "__main__":
    sys.exit(main())
