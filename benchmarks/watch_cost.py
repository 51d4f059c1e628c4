"""What the sampler costs, beside mpstat, vmstat, iostat and pidstat in the same run.

    python benchmarks/watch_cost.py [--rounds 5] [--seconds 10] [--blocks 12]

Watched are the machine with all groups, two processes (a MariaDB server under load, and the load), and their control
groups. In a round `watch` runs once a second, ten times a second, and the four tools beside it, all at the same time.
CPU time is what the kernel counted of all their threads, in ns, between two looks while they run: neither start nor
end is in it. `alone` is the machine without processes and control groups. Then throughput of a MariaDB with the
observer that is made of it over that without, in so many pairs of runs at 1 Hz and at 10 Hz.

The bars: 0.6 ms a second at 1 Hz, 4 ms at 10 Hz, and 0.4 of what the four tools use together at 1 Hz. On a shared
machine compare ratios, not times.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from dyno.hosts import LocalHost, UndoJournal
from dyno.hosts.local import core_binary
from dyno.lab import Interrupt, Rooms
from dyno.model.study import KindSpec
from dyno.selfcheck.measure import Bench
from measuring import core, mariadb, program, spread, verdict
from watched import pairs

SYSSTAT = "apt-get install sysstat"
SETTLED_S = 2.5


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--blocks", type=int, default=12)
    options = parser.parse_args()
    watcher = core()
    rounds: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="dyno-watch-cost-") as name, mariadb() as server:
        load = subprocess.Popen([sys.executable, "-c", LOAD, server.socket, program("mariadb", "mariadb-client")])
        try:
            for _ in range(options.rounds):
                rounds.append(one_round(watcher, Path(name), [server.pid, load.pid], options.seconds))
                print(", ".join(f"{what} {used:.3f}" for what, used in rounds[-1].items()), "ms a second", flush=True)
        finally:
            load.kill()
            load.wait()
    print(f"ms of CPU a second, {options.rounds} rounds of {options.seconds:g} s: least / median / most")
    for what in rounds[0]:
        print(f"  {what}: {spread([each[what] for each in rounds], 3)}")
    four = [sum(each[tool] for tool in TOOLS) for each in rounds]
    print(f"  the four tools together: {spread(four, 3)}")
    held = [
        verdict("1 Hz, ms a second", [each["watch 1 Hz"] for each in rounds], 0.6),
        verdict("10 Hz, ms a second", [each["watch 10 Hz"] for each in rounds], 4.0),
        verdict(
            "1 Hz of the four tools", [each["watch 1 Hz"] / all_ for each, all_ in zip(rounds, four, strict=True)], 0.4
        ),
    ]
    if options.blocks:
        throughput(options.blocks)
    return 0 if all(held) else 1


def throughput(blocks: int) -> None:
    """With the observer and without."""
    with UndoJournal() as journal:
        host = LocalHost(journal)
        folder = host.temporary_folder(Path(tempfile.gettempdir()) / f"dyno-watch-cost-{journal.token}")
        folder.chmod(0o711)  # servers run as users of their own
        for hz in (1, 10):
            bench = Bench(Rooms.open(), host, core_binary(), folder / str(hz), Interrupt(), print)
            pairs(bench, blocks, KindSpec(kind="machine", options={"hz": hz}))


TOOLS = {
    "mpstat": "mpstat -P ALL 1",
    "vmstat": "vmstat 1",
    "iostat": "iostat -x 1",
    "pidstat": "pidstat -u -r -d -w -v -p {pids} 1",
}

# A client that asks and writes now and then: it must live through all rounds, and leave the machine to the others.
LOAD = """
import subprocess, sys, time
client = subprocess.Popen([sys.argv[2], "--no-defaults", f"--socket={sys.argv[1]}", "ycsb"],
                          stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, text=True)
say = lambda words: (client.stdin.write(words + ";\\n"), client.stdin.flush())
say("CREATE TABLE IF NOT EXISTS t (k INT AUTO_INCREMENT PRIMARY KEY, v TEXT)")
while client.poll() is None:
    say("INSERT INTO t (v) VALUES (REPEAT('x', 1000))")
    say("SELECT LENGTH(v) FROM t ORDER BY k DESC LIMIT 1")
    time.sleep(0.005)
"""


def one_round(watcher: str, folder: Path, pids: list[int], seconds: float) -> dict[str, float]:
    """CPU time in ms a second, by what used it."""
    subjects = dict(zip(("server", "driver"), pids, strict=True))
    groups = ["cpu", "per_cpu", "memory", "paging", "disk", "network", "pressure", "scheduler"]
    whole = {
        "groups": groups,
        "processes": [{"pid": pid, "subject": subject} for subject, pid in subjects.items()],
        "cgroups": [{"pid": pid, "subject": subject} for subject, pid in subjects.items()],
    }
    jobs = {"watch 1 Hz": {"hz": 1} | whole, "watch 10 Hz": {"hz": 10} | whole, "watch 1 Hz alone": {"hz": 1}}
    commands = {what: shlex.split(tool.format(pids=",".join(map(str, pids)))) for what, tool in TOOLS.items()}
    commands = {what: [program(words[0], SYSSTAT), *words[1:]] for what, words in commands.items()}
    for what, job in jobs.items():
        path = folder / f"{what.replace(' ', '-')}.json"
        path.write_text(json.dumps({"format": 1} | job))
        commands[what] = [watcher, "watch", "--job", str(path), "--out", str(path.with_suffix(".csv"))]
    with (folder / "said").open("wb") as said:
        running = {
            what: subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT)
            for what, command in commands.items()
        }
        try:
            # What they do once, at their start, is done by then.
            threading.Event().wait(SETTLED_S)
            begin, before = time.monotonic(), {what: cpu_ns(process.pid) for what, process in running.items()}
            threading.Event().wait(seconds)
            length = time.monotonic() - begin
            used = {what: cpu_ns(process.pid) - before[what] for what, process in running.items()}
        finally:
            for process in running.values():
                process.terminate()
            for process in running.values():
                process.wait()
    for what in jobs:
        rows = (folder / f"{what.replace(' ', '-')}.csv").read_text()
        if "cpu.idle" not in rows or (what != "watch 1 Hz alone" and ",server,proc.usr," not in rows):
            sys.exit(f"{what} has not watched: {(folder / 'said').read_text()}")
    return {what: ns / 1e6 / length for what, ns in used.items()}


def cpu_ns(pid: int) -> int:
    """CPU time of a process's threads so far. Ends the benchmark where it has ended."""
    try:
        threads = Path(f"/proc/{pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)
    except (OSError, IndexError):
        sys.exit(f"process {pid} ended, or this kernel does not count its time in ns (/proc/PID/schedstat)")


if __name__ == "__main__":
    sys.exit(main())
