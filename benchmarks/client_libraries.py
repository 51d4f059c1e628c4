"""What client libraries cost: CPU time of point reads of a YCSB row by dyno's client, the mysql crate and sysbench.

    python benchmarks/client_libraries.py [--rounds 5] [--operations 100000] [--threads 4]

Starts a MariaDB in a temporary folder. In each round every client reads the same rows over TCP and by the socket file,
one after the other, in an order that turns, so that drift of the machine meets all alike. What is counted is the CPU
time of the client's process from its start to its end. Prints microseconds an operation, and ratios to sysbench within
rounds: the bars are 0.8 of its user time and 1.1 of its whole time over TCP.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from measuring import cost, mariadb, program, spread

HERE = Path(__file__).parent / "client_libraries"
RECORDS = 10_000
CLIENTS = ("dyno", "mysql", "sysbench")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    build = [program("cargo", "install Rust"), "build", "--release", "--locked", "--quiet"]
    subprocess.run(build, cwd=HERE, check=True)
    with mariadb() as server:
        addresses = {"TCP": str(server.port), "socket": server.socket}
        subprocess.run([_own(), "load", server.socket, str(RECORDS)], check=True)
        for way, address in addresses.items():
            rounds = [_round(number, address, options) for number in range(options.rounds)]
            _print(way, rounds)
    return 0


Cost = tuple[float, float]


def _round(number: int, address: str, options: argparse.Namespace) -> dict[str, Cost]:
    """User and system time of each client, in microseconds an operation."""
    turned = CLIENTS[number % len(CLIENTS) :] + CLIENTS[: number % len(CLIENTS)]
    return {client: _cost(_command(client, address, options), options.operations) for client in turned}


def _command(client: str, address: str, options: argparse.Namespace) -> list[str]:
    if client != "sysbench":
        return [_own(), client, address, str(RECORDS), str(options.threads), str(options.operations)]
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


def _cost(command: list[str], operations: int) -> Cost:
    used = cost(command)
    return used.user * 1e6 / operations, used.system * 1e6 / operations


def _print(way: str, rounds: list[dict[str, Cost]]) -> None:
    print(f"\nCPU time an operation over {way}, in microseconds: min / median / max of {len(rounds)} rounds\n")
    print(f"{'':10}{'user':>24}{'system':>24}{'both':>24}{'user : sysbench':>24}{'both : sysbench':>24}")
    for client in CLIENTS:
        user = [costs[client][0] for costs in rounds]
        system = [costs[client][1] for costs in rounds]
        both = [sum(costs[client]) for costs in rounds]
        user_ratio = [costs[client][0] / costs["sysbench"][0] for costs in rounds]
        both_ratio = [sum(costs[client]) / sum(costs["sysbench"]) for costs in rounds]
        columns = [user, system, both, user_ratio, both_ratio]
        print(f"{client:10}" + "".join(f"{spread(column):>24}" for column in columns))


def _own() -> str:
    return str(HERE / "target" / "release" / "client-libraries")


if __name__ == "__main__":
    sys.exit(main())
