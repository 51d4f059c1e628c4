"""What client libraries cost: CPU time of point reads of a YCSB row by dyno's client, the mysql crate and sysbench.

    python benchmarks/client_libraries/run.py [--rounds 5] [--operations 100000] [--threads 4]

Starts a MariaDB in a temporary folder. In each round every client reads the same rows over TCP and by the socket file,
one after the other, in an order that turns, so that drift of the machine meets all alike. What is counted is the CPU
time of the client's process from its start to its end. Prints microseconds an operation, and ratios to sysbench within
rounds: the bars are 0.8 of its user time and 1.1 of its whole time over TCP.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
RECORDS = 10_000
CLIENTS = ("dyno", "mysql", "sysbench")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--operations", type=int, default=100_000)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    for program in ("mariadbd", "sysbench"):
        _program(program)
    subprocess.run([_program("cargo"), "build", "--release", "--locked", "--quiet"], cwd=HERE, check=True)
    with tempfile.TemporaryDirectory(prefix="dyno-client-libraries-") as folder, _mariadb(Path(folder)) as addresses:
        subprocess.run([_own(), "load", addresses["socket"], str(RECORDS)], check=True)
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
        _program("sysbench"),
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
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        _, status, usage = os.wait4(process.pid, 0)
        # It was waited for here already.
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            output.seek(0)
            sys.exit(f"{' '.join(command)}: status {process.returncode}\n{output.read().decode()}")
    return usage.ru_utime * 1e6 / operations, usage.ru_stime * 1e6 / operations


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
        print(f"{client:10}" + "".join(f"{_spread(column):>24}" for column in columns))


def _spread(values: list[float]) -> str:
    return f"{min(values):.2f} / {statistics.median(values):.2f} / {max(values):.2f}"


@contextmanager
def _mariadb(folder: Path) -> Iterator[dict[str, str]]:
    """A server; gives its addresses by the way there."""
    data = folder / "data"
    user = ["--user=root"] if os.geteuid() == 0 else []
    install = [_program("mariadb-install-db"), "--no-defaults", *user, f"--datadir={data}"]
    subprocess.run([*install, "--auth-root-authentication-method=normal"], check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = folder / "socket"
    command = [_program("mariadbd"), "--no-defaults", *user, f"--datadir={data}", f"--socket={path}", f"--port={port}"]
    with (folder / "log").open("wb") as log:
        options = ["--bind-address=127.0.0.1", "--skip-name-resolve"]
        server = subprocess.Popen([*command, *options], stdout=log, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 60
        while not path.is_socket():
            if server.poll() is not None or time.monotonic() > end:
                sys.exit(f"the server does not start:\n{(folder / 'log').read_text()}")
            time.sleep(0.05)
        yield {"TCP": str(port), "socket": str(path)}
    finally:
        server.kill()
        server.wait()


def _program(name: str) -> str:
    """Where it is; those of administrators are not on everybody's path."""
    path = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if path is None:
        sys.exit(f"{name} is missing: apt-get install mariadb-server sysbench, and Rust")
    return path


def _own() -> str:
    return str(HERE / "target" / "release" / "client-libraries")


if __name__ == "__main__":
    sys.exit(main())
