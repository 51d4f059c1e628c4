"""What the benchmarks share: CPU time of whole processes, interleaved rounds, spreads, and servers of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dyno.stats import paired_ratio


@dataclass(frozen=True)
class Cost:
    """What a process used from its start to its end: CPU time in s, most memory in MiB."""

    user: float
    system: float
    memory: float
    output: str

    @property
    def both(self) -> float:
        """User and system time together."""
        return self.user + self.system


def cost(command: Sequence[str]) -> Cost:
    """Run it to its end. Ends the benchmark where it fails."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        # What `wait4` says of memory includes this process, as it was when it made the other.
        memory = 0.0
        ended = 0
        while not ended:
            memory = max(memory, _most_memory(process.pid))
            time.sleep(0.02)
            ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        # It was waited for here already.
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode(errors="replace")
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {process.returncode}\n{said}")
    return Cost(usage.ru_utime, usage.ru_stime, memory, said)


def _most_memory(pid: int) -> float:
    """What a process has used at the most so far, in MiB; 0 where it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    # In kB, as the kernel calls 1024 bytes.
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0.0)


def interleaved(rounds: int, kinds: Mapping[str, Callable[[], Cost]]) -> list[dict[str, Cost]]:
    """Each kind once a round, in an order that turns, so that drift of the machine meets all alike."""
    names = list(kinds)
    done = []
    for number in range(rounds):
        turned = names[number % len(names) :] + names[: number % len(names)]
        done.append({name: kinds[name]() for name in turned})
    return done


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Least, median and most."""
    return " / ".join(f"{value:.{digits}f}" for value in (min(values), statistics.median(values), max(values)))


def verdict(what: str, ratios: Sequence[float], most: float) -> bool:
    """Print whether the median of ratios within rounds keeps to a bar."""
    middle = statistics.median(ratios)
    held = middle <= most
    print(f"  {what}: {spread(ratios)} (bar {most}): {'held' if held else 'MISSED'}")
    return held


def limited(what: str, mine: Sequence[float], theirs: Sequence[float], most: float) -> bool:
    """Print whether the upper end of the 95 % interval of mine : theirs, paired within rounds, keeps to a bar."""
    ratio = paired_ratio(theirs, mine, 0.95)
    if ratio is None:
        sys.exit("an interval needs two rounds or more")
    held = ratio.hi <= most
    print(
        f"  {what}: {ratio.ratio:.2f}, 95 % interval {ratio.lo:.2f} to {ratio.hi:.2f} of {ratio.n} rounds "
        f"(bar of its end {most}): {'held' if held else 'MISSED'}"
    )
    return held


def program(name: str, package: str) -> str:
    """Where it is; those of administrators and Debian's of PostgreSQL are not on everybody's path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda folder: -float(folder.parent.name))
    more = ["/usr/sbin", "/usr/local/sbin", *map(str, folders)]
    path = shutil.which(name, path=":".join([os.environ.get("PATH", ""), *more]))
    if path is None:
        sys.exit(f"{name} is missing: {package}")
    return path


def built(folder: Path, name: str, *words: str) -> str:
    """A release build by cargo, made where that is needed."""
    command = [program("cargo", "install Rust"), "build", "--release", "--locked", "--quiet", *words]
    subprocess.run(command, cwd=folder, check=True)
    return str(folder / os.environ.get("CARGO_TARGET_DIR", "target") / "release" / name)


def core() -> str:
    """The driver, as it is installed."""
    return built(Path(__file__).parent.parent, "dyno-core", "-p", "dyno-core")


def carried_out(command: Sequence[str], operations: int | None = None) -> Cost:
    """The cost of `dyno-core drive`, which must have done all of what its last words name the folder of.

    Ends the benchmark where an operation failed, or not as many succeeded as were asked for.
    """
    used = cost(command)
    result = json.loads((Path(command[-1]) / "result.json").read_text())
    total = result["total"]
    if result["outcome"] != "ok" or total["errors"] or operations not in (None, total["count"]):
        sys.exit(f"dyno-core: {result['outcome']}, {total['count']} operations, errors {total['errors']}")
    return used


@dataclass(frozen=True)
class Server:
    """A server with an empty database `ycsb`, which `root` enters without a password."""

    port: int
    socket: str
    pid: int


@contextmanager
def mariadb(*options: str) -> Iterator[Server]:
    """Start one in a temporary folder; it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="dyno-benchmark-") as name:
        folder = Path(name)
        data = folder / "data"
        user = ["--user=root"] if os.geteuid() == 0 else []
        package = "apt-get install mariadb-server"
        install = [program("mariadb-install-db", package), "--no-defaults", *user, f"--datadir={data}"]
        subprocess.run([*install, "--auth-root-authentication-method=normal"], check=True, capture_output=True)
        # One statement a line, as --bootstrap wants it.
        bootstrap = [program("mariadbd", package), "--no-defaults", *user, f"--datadir={data}", "--bootstrap"]
        subprocess.run(
            bootstrap, input=b"CREATE DATABASE ycsb;\nCREATE DATABASE ycsb_go;\n", check=True, capture_output=True
        )
        port = _free_port()
        path = folder / "socket"
        command = [program("mariadbd", package), "--no-defaults", *user, f"--datadir={data}", f"--socket={path}"]
        command += [f"--port={port}", "--bind-address=127.0.0.1", "--skip-name-resolve", *options]
        with _running(command, folder / "log", path, signal.SIGKILL) as pid:
            yield Server(port, str(path), pid)


@contextmanager
def postgresql(*options: str) -> Iterator[Server]:
    """The same of PostgreSQL, which root runs as user `postgres`: as root it refuses to."""
    with tempfile.TemporaryDirectory(prefix="dyno-benchmark-") as name:
        folder = Path(name)
        data = folder / "data"
        account = "postgres" if os.geteuid() == 0 else None
        if account:
            shutil.chown(folder, account)
        package = "apt-get install postgresql"
        install = [program("initdb", package), "-D", str(data), "--no-sync", "--username=root", "--auth=trust"]
        install += ["--encoding=UTF8", "--locale=C"]
        subprocess.run(install, check=True, capture_output=True, cwd=folder, user=account)
        single = [program("postgres", package), "--single", "-D", str(data), "postgres"]
        subprocess.run(
            single, input=b"CREATE DATABASE ycsb\n", check=True, capture_output=True, cwd=folder, user=account
        )
        port = _free_port()
        command = [program("postgres", package), "-D", str(data), f"--unix_socket_directories={folder}"]
        command += [f"--port={port}", "--listen_addresses=127.0.0.1", *(f"--{option}" for option in options)]
        path = folder / f".s.PGSQL.{port}"
        # SIGKILL would leave its shared memory behind.
        with _running(command, folder / "log", path, signal.SIGQUIT, account) as pid:
            _until_it_answers(path, folder / "log")
            yield Server(port, str(path), pid)


@contextmanager
def _running(
    command: list[str], log: Path, path: Path, farewell: signal.Signals, account: str | None = None
) -> Iterator[int]:
    """The process, once its socket file is there."""
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, cwd=log.parent, user=account)
    try:
        end = time.monotonic() + 60
        while not path.is_socket():
            if server.poll() is not None or time.monotonic() > end:
                sys.exit(f"the server does not start:\n{log.read_text()}")
            time.sleep(0.05)
        yield server.pid
    finally:
        server.send_signal(farewell)
        server.wait()


def _until_it_answers(path: Path, log: Path) -> None:
    """PostgreSQL's socket is there a moment before it lets anybody in, which its log says."""
    end = time.monotonic() + 60
    while "ready to accept connections" not in log.read_text():
        if time.monotonic() > end:
            sys.exit(f"nobody answers at {path}:\n{log.read_text()}")
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
