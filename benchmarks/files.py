"""The engine for workload files beside filebench: operations a second, CPU an operation; and thousands of threads.

    python benchmarks/files.py [--rounds 5] [--seconds 8] [--folder /var/tmp] [agree] [device] [cpu] [threads]

agree    webserver and oltp at a given rate of events, where both have processors to spare: operations a second of
         both must agree within 10 %. Of oltp those of the readers count: filebench counts its implicit opens as reads
device   webserver without a rate, where the device sets the pace: files larger than the memory that both are held to
         (a control group, so root), and a device of so many bytes a second. Both must agree likewise. Not oltp, whose
         readers all draw the same places: how often one finds a page that another has read hangs on their timing
cpu      the same two workloads as fast as they go: CPU an operation of the engine (`--compat`), at most 0.7 of
         filebench's, of whole runs, starting included, which is little of them. How many times as many operations a
         second the engine does is said beside it: what costs less is faster where processors set the pace, so there the
         two do not agree, and need not
threads  10,000 threads, in one process and in as many, start, do something and end within 10 s

filebench's master ends before most of its workers were waited for, so that whoever waits for the master alone is not
told of most of the CPU time: here all that a program leaves behind is waited for too.

Both are given the same text and the same folder, in rounds in which they take turns; ratios are taken within rounds.
filebench is looked for on the PATH, and started without address-space randomisation, which it does not survive. Where
there is none, nothing is compared, which is said, and makes the status 1, as a bar that is missed does.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dyno.hosts import LocalHost
from dyno.hosts.undo import UndoJournal
from dyno.model.study import Machine
from measuring import core, cost, spread, verdict

CPU_BAR, AGREE_BAR, THREADS_BAR_S = 0.7, 0.1, 10.0
RATES = {"webserver": 400, "oltp": 1000}
"""Events a second; of webserver each is 31 operations."""
DEVICES = {
    # A gigabyte of pages.
    "webserver": (
        Machine.model_validate({"memory": "256 MiB", "disk": {"read_bandwidth": "40 MiB/s"}}),
        {"files": "1000", "pagesize": "cvar(type=cvar-gamma,parameters=mean:1048576;gamma:1.5)", "nthreads": "10"},
    )
}
"""What both are held to, and what is set in the workload's text."""
COUNTED = {"webserver": None, "oltp": "reader-work"}
"""The flowop whose operations stand for the workload; none: the summary's."""
THREADS = 10_000

_SUMMARY = re.compile(r"IO Summary:\s+(\d+) ops\s+([\d.]+) ops/s")


@dataclass(frozen=True)
class Ran:
    """One run: CPU time in s, operations, and those a second."""

    cpu: float
    operations: int
    rate: float

    @property
    def cpu_per_operation(self) -> float:
        """In s."""
        return self.cpu / self.operations


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["agree", "device", "cpu", "threads"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"))
    options = parser.parse_args()
    driver = core()
    held = True
    with tempfile.TemporaryDirectory(prefix="dyno-files-", dir=options.folder) as name:
        bench = Bench(driver, Path(name), options.rounds, options.seconds)
        if {"agree", "device", "cpu"} & set(options.parts):
            if shutil.which("filebench") is None or shutil.which("setarch") is None:
                print("there is no filebench on the PATH (or no setarch): the engine could not be compared")
                held = False
            else:
                if "agree" in options.parts:
                    held &= min([bench.agree(workload) for workload in RATES])
                if "device" in options.parts:
                    with UndoJournal() as journal:
                        host = LocalHost(journal)
                        held &= min([bench.device(workload, host) for workload in DEVICES])
                if "cpu" in options.parts:
                    held &= min([bench.cpu(workload) for workload in RATES])
        if "threads" in options.parts:
            held &= min([bench.threads(processes) for processes in (1, THREADS)])
    return 0 if held else 1


@dataclass(frozen=True)
class Bench:
    driver: str
    folder: Path
    rounds: int
    seconds: int

    def agree(self, workload: str) -> bool:
        """Whether both keep the same rate."""
        path = self._written(workload, self.seconds * 2, RATES[workload])
        print(f"{workload} at {RATES[workload]} events a second")
        return self._agreed(path, workload, self._both())

    def device(self, workload: str, host: LocalHost) -> bool:
        """Whether both do what the device lets them."""
        machine, values = DEVICES[workload]
        path = self._written(workload, self.seconds * 2, values=values)
        confinement = host.confine(machine)
        host.limit_disk(confinement, machine.disk.limits, self.folder)
        told = ", ".join(f"{limit} {name}" for name, limit in machine.disk.limits.items())
        print(f"{workload} with {machine.memory} bytes of memory and a device of {told} a second")
        return self._agreed(path, workload, self._both(lambda words: confinement.around(words, None)[0]))

    def _agreed(self, path: Path, workload: str, both: dict[str, Callable[[Path, str], Ran]]) -> bool:
        rounds = [{name: run(path, workload) for name, run in both.items()} for _ in range(max(2, self.rounds // 2))]
        for name in both:
            print(f"  {name}: {spread([each[name].rate for each in rounds])} operations a second")
        ratios = [each["dyno"].rate / each["filebench"].rate for each in rounds]
        held = abs(statistics.median(ratios) - 1) <= AGREE_BAR
        print(f"  operations a second, dyno / filebench: {spread(ratios, 3)} (bar 1 +- {AGREE_BAR}): {_told(held)}")
        return held

    def cpu(self, workload: str) -> bool:
        """Whether an operation costs less."""
        path = self._written(workload, self.seconds)
        both = self._both()
        each = []
        for number in range(self.rounds):
            # In an order that turns, so that drift of the machine meets both alike.
            names = list(both)[:: 1 if number % 2 == 0 else -1]
            each.append({name: both[name](path, workload) for name in names})
        print(f"{workload} as fast as it goes")
        for name in both:
            print(f"  {name}: {spread([one[name].cpu_per_operation * 1e6 for one in each])} us of CPU an operation")
        times = [one["dyno"].rate / one["filebench"].rate for one in each]
        print(f"  operations a second, dyno / filebench: {spread(times)}")
        ratios = [one["dyno"].cpu_per_operation / one["filebench"].cpu_per_operation for one in each]
        return verdict("CPU an operation, dyno / filebench", ratios, CPU_BAR)

    def threads(self, processes: int) -> bool:
        """Whether so many threads start and end in time."""
        path = self.folder / "many.f"
        path.write_text(
            f"define fileset name=few,path={self.folder}/data,entries=100,size=4k,dirwidth=20,prealloc\n"
            f"define process name=p,instances={processes} {{ thread name=t,instances={THREADS // processes} {{\n"
            "  flowop openfile name=open,filesetname=few,fd=1\n"
            "  flowop read name=read,fd=1,iosize=4k\n"
            "  flowop closefile name=close,fd=1\n"
            "  flowop block name=block } }\n"
            "run 1\n"
        )
        took = []
        for _ in range(self.rounds):
            begun = time.monotonic()
            said = cost([self.driver, "files", str(path)]).output
            took.append(time.monotonic() - begun)
            if _count(said, "read") != THREADS:
                sys.exit(f"not every thread did its read:\n{said}")
        held = max(took) <= THREADS_BAR_S
        print(f"{THREADS} threads in {processes} processes, a run of 1 s")
        print(f"  from start to end, s: {spread(took)} (bar {THREADS_BAR_S}): {_told(held)}")
        return held

    def _both(self, held: Callable[[list[str]], list[str]] = list) -> dict[str, Callable[[Path, str], Ran]]:
        ours, theirs = [self.driver, "files", "--compat"], ["setarch", "-R", "filebench", "-f"]
        return {
            "dyno": lambda path, workload: _ran(held([*ours, str(path)]), workload),
            "filebench": lambda path, workload: _ran(held([*theirs, str(path)]), workload),
        }

    def _written(
        self, workload: str, seconds: int, rate: int | None = None, values: Mapping[str, str] | None = None
    ) -> Path:
        """The built-in workload's text, in this folder, for so long, at a rate, and with other values."""
        (self.folder / "data").mkdir(exist_ok=True)
        text = cost([self.driver, "files", "--print", workload]).output
        for name, value in {**(values or {}), "dir": f"{self.folder}/data", "seconds": str(seconds)}.items():
            text, count = re.subn(rf"(?m)^set \${name}=.*$", f"set ${name}={value}", text)
            assert count == 1, name
        if rate is not None:
            head, end, tail = text.rpartition("  }\n}\n")
            text = f"eventgen rate={rate}\n{head}    flowop eventlimit name=pace\n{end}{tail}"
        path = self.folder / f"{workload}-{seconds}-{rate or 'free'}{'-other' if values else ''}.f"
        path.write_text(text)
        return path


def _ran(command: list[str], workload: str) -> Ran:
    cpu, said = _with_orphans(command)
    summary = _SUMMARY.search(said)
    if summary is None:
        sys.exit(f"{' '.join(command)}: printed no summary\n{said}")
    flowop = COUNTED[workload]
    if flowop is None:
        return Ran(cpu, int(summary[1]), float(summary[2]))
    count = _count(said, flowop)
    # Of one flowop filebench prints whole operations a second: the time of the run says more.
    return Ran(cpu, count, count * float(summary[2]) / int(summary[1]))


def _with_orphans(command: list[str]) -> tuple[float, str]:
    """CPU time in s of a program and of all that it started, and what they printed."""
    # Whatever loses its parent becomes this process's child.
    set_child_subreaper = 36
    ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0)
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        cpu = 0.0
        while True:
            try:
                ended, status, usage = os.wait4(-1, 0)
            except ChildProcessError:
                break
            cpu += usage.ru_utime + usage.ru_stime
            if ended == process.pid:
                process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode(errors="replace")
    if process.returncode != 0:
        sys.exit(f"{' '.join(command)}: status {process.returncode}\n{said}")
    return cpu, said


def _count(said: str, flowop: str) -> int:
    line = re.search(rf"(?m)^{re.escape(flowop)}\s+(\d+)ops", said)
    return int(line[1]) if line else 0


def _told(held: bool) -> str:
    return "held" if held else "MISSED"


if __name__ == "__main__":
    sys.exit(main())
