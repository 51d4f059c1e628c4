"""perf on processes that do what is known: what they do has to be counted, named and grouped rightly."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from dyno.analysis.hot_spots import Grouping, built_in
from dyno.hosts import LocalHost, Process, perf
from dyno.model.base import RunError
from dyno.observers.base import STACK_COLUMNS, Observer
from tests.contract.conftest import LIMIT_S
from tests.contract.test_observers import make
from tests.making import until

BURNER = r"""
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char from[8 << 20], to[8 << 20];

__attribute__((noinline)) void btr_cur_planted(void) { for (volatile int i = 0; i < 10000000; i++); }
__attribute__((noinline)) void memcpy_planted(void) {
    for (size_t i = 0; i < sizeof to; i++) to[i] = from[i];
    __asm__ volatile("" : : "r"(to) : "memory");
}
__attribute__((noinline)) void planted_calls(void) { for (int i = 0; i < 10000; i++) syscall(SYS_getppid); }
__attribute__((noinline)) void planted_writes(int file) { pwrite(file, from, 1 << 20, 0); }

static void *in_a_thread(void *none) { for (;;) btr_cur_planted(); return none; }

int main(int count, char **words) {
    if (!strcmp(words[1], "rest")) for (;;) pause();
    if (!strcmp(words[1], "thread")) {
        pthread_t thread;
        /* It begins when it is told to, so that it is younger than what watches the process. */
        char letter;
        if (read(0, &letter, 1) != 1) return 1;
        pthread_create(&thread, 0, in_a_thread, 0);
        for (;;) pause();
    }
    int file = !strcmp(words[1], "write") ? open(words[2], O_RDWR | O_CREAT, 0600) : -1;
    memset(from, 1, sizeof from);
    for (;;) {
        if (!strcmp(words[1], "tree")) btr_cur_planted();
        else if (!strcmp(words[1], "copy")) memcpy_planted();
        else if (!strcmp(words[1], "call")) planted_calls();
        else planted_writes(file);
    }
}
"""

Burn = Callable[..., Process]


@pytest.fixture(scope="module")
def burner(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("burner")
    (folder / "burner.c").write_text(BURNER)
    # With frame pointers, as a program has to have whose callers are to be found without its debug data.
    argv = ["cc", "-O1", "-fno-omit-frame-pointer", "-pthread", "-o", folder / "burner", folder / "burner.c"]
    subprocess.run(argv, check=True, capture_output=True)
    return folder / "burner"


@pytest.fixture
def burn(burner: Path, host: LocalHost, tmp_path: Path) -> Iterator[Burn]:
    """Start it; it ends with the test."""
    started: list[Process] = []

    def start(*words: str) -> Process:
        started.append(host.start([str(burner), *words], log=tmp_path / f"burner-{len(started)}"))
        return started[-1]

    yield start
    for each in started:
        each.kill()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def watched(observer: Observer[Any], process: Process, seconds: float = 0.5) -> tuple[int, int]:
    """Let a process have that much CPU time while it is watched; from when to when."""
    observer.start(LIMIT_S)
    observer.watch(process.pid, "server")
    began, had = time.time_ns(), cpu_seconds(process.pid)
    until(lambda: cpu_seconds(process.pid) >= had + seconds)
    return began, time.time_ns()


# ---- counting


def test_what_a_process_does_is_counted_at_the_time_at_which_it_did_it(
    burn: Burn, host: LocalHost, core: str, workspace: Path
) -> None:
    observer = make("perf-stat", host, core, workspace, hz=10)
    before = time.time_ns()
    process = burn("call")
    began, ended = watched(observer, process, 1.0)
    had = cpu_seconds(process.pid)
    samples = observer.stop(LIMIT_S)
    after = time.time_ns()
    assert set(samples["source"]) == {"perf"}
    assert set(samples["subject"]) == {"server"}
    assert samples["time_ns"].is_between(before, after).all()
    clock = samples.filter(pl.col("metric") == "task-clock").sort("time_ns")
    assert clock.height >= 5
    # CPU seconds a second, times the seconds since the sample before, are what the kernel has told of it.
    lengths = clock["time_ns"].diff().cast(pl.Float64) / 1e9
    assert float((clock["value"] * lengths.fill_null(0.1)).sum()) == pytest.approx(had, abs=0.35)
    assert began < ended


def test_a_thread_that_begins_later_is_counted_and_seen(
    burn: Burn, host: LocalHost, core: str, workspace: Path
) -> None:
    stat = make("perf-stat", host, core, workspace, hz=10, events=["task-clock"])
    record = make("perf-record", host, core, workspace, frequency=499)
    process = burn("thread")
    for each in (stat, record):
        each.start(LIMIT_S)
        each.watch(process.pid, "server")
    began = time.time_ns()
    process.tell("go")
    until(lambda: cpu_seconds(process.pid) >= 0.5)
    samples, _ = stat.stop(LIMIT_S), record.stop(LIMIT_S)
    assert float(samples["value"].max() or 0) > 0.1  # type: ignore[arg-type]  # of a float column
    stacks = record.stacks(began, time.time_ns(), LIMIT_S)
    assert stacks is not None
    # But for interrupts of the machine's other work, which are served on top of whatever runs.
    found = groups(stacks)
    assert found["B-tree"] > 0.9 * (1 - found.get("interrupts", 0.0)), found
    assert found["B-tree"] > 0.3, found


def test_what_the_machine_does_not_count_is_said_and_is_no_0(
    burn: Burn, host: LocalHost, core: str, workspace: Path
) -> None:
    counted = perf.counts(perf.program(), "cycles")
    observer = make("perf-stat", host, core, workspace, hz=10)
    watched(observer, burn("tree"), 0.3)
    samples = observer.stop(LIMIT_S)
    cycles = samples.filter(pl.col("metric") == "cycles")
    assert bool(cycles.height) == counted
    assert any("no hardware counters" in note for note in observer.notes()) != counted
    assert (cycles["value"] > 0).any() == counted
    # It was never asked to wait for anything, and whatever ran on the machine besides, the clock went on.
    assert (samples.filter(pl.col("metric") == "task-clock")["value"] > 0).any()


def test_a_process_that_rests_has_counts_of_0(burn: Burn, host: LocalHost, core: str, workspace: Path) -> None:
    observer = make("perf-stat", host, core, workspace, hz=10, events=["task-clock", "page-faults"])
    process = burn("rest")
    observer.start(LIMIT_S)
    observer.watch(process.pid, "server")
    log = workspace / "observe-perf-stat" / "stat-0" / "perf.stderr"
    until(lambda: log.read_text().count("task-clock") >= 3)
    samples = observer.stop(LIMIT_S)
    last = samples.filter(pl.col("time_ns") == samples["time_ns"].max())
    assert sorted(last.select("metric", "value").iter_rows()) == [("page-faults", 0.0), ("task-clock", 0.0)]


def test_processes_have_times_of_their_own(burn: Burn, host: LocalHost, core: str, workspace: Path) -> None:
    """Told as one source, the time since the sample before would be that since another process's sample."""
    observer = make("perf-stat", host, core, workspace, hz=10, events=["task-clock"])
    server, driver = burn("tree"), burn("tree")
    observer.start(LIMIT_S)
    observer.watch(server.pid, "mariadbd")
    observer.watch(driver.pid, "driver")
    until(lambda: min(cpu_seconds(server.pid), cpu_seconds(driver.pid)) > 0.4)
    samples = observer.stop(LIMIT_S)
    assert set(samples.select("source", "subject").iter_rows()) == {("perf", "mariadbd"), ("perf.1", "driver")}


@pytest.mark.parametrize("kind", ["perf-stat", "perf-record"])
def test_a_perf_that_ends_before_what_it_watches_makes_the_run_fail(
    kind: str, burn: Burn, host: LocalHost, core: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = burn("rest")
    started: list[int] = []
    start = host.start

    def remembered(*args: Any, **kwargs: Any) -> Any:
        made = start(*args, **kwargs)
        started.append(made.pid)
        return made

    monkeypatch.setattr(host, "start", remembered)
    observer = make(kind, host, core, workspace)
    observer.start(LIMIT_S)
    observer.watch(process.pid, "server")
    os.kill(started[0], signal.SIGKILL)
    os.waitid(os.P_PID, started[0], os.WEXITED | os.WNOWAIT)
    with pytest.raises(RunError, match="perf ended before what it watched did"):
        observer.stop(LIMIT_S)


# ---- what it needs


def test_without_perf_a_study_is_refused_in_a_line(
    host: LocalHost, core: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(workspace))
    for kind in ("perf-stat", "perf-record"):
        with pytest.raises(RunError, match=r"^perf is not installed: install Debian's linux-perf$"):
            make(kind, host, core, workspace).provision(LIMIT_S)


def test_a_user_who_may_not_count_is_told_which_setting_it_is(
    host: LocalHost, core: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root nothing is forbidden: a perf that answers as it does to others."""
    (workspace / "perf").write_text("#!/bin/sh\necho 'Error:' >&2\necho 'No permission to enable.' >&2\nexit 255\n")
    (workspace / "perf").chmod(0o755)
    monkeypatch.setenv("PATH", f"{workspace}:{os.environ['PATH']}")
    with pytest.raises(RunError, match=r"^perf may not count here \(kernel.perf_event_paranoid is -?\d\): run as root"):
        make("perf-stat", host, core, workspace).provision(LIMIT_S)


def test_events_that_perf_does_not_know_are_refused_before_anything_runs(
    host: LocalHost, core: str, workspace: Path
) -> None:
    with pytest.raises(RunError, match=r"perf does not take these events: .*no-such-event"):
        make("perf-stat", host, core, workspace, events=["task-clock", "no-such-event"]).provision(LIMIT_S)
    with pytest.raises(RunError, match="event: this machine does not count no-such-event, or perf does not know it"):
        make("perf-record", host, core, workspace, event="no-such-event").provision(LIMIT_S)
    make("perf-stat", host, core, workspace).provision(LIMIT_S)
    make("perf-record", host, core, workspace).provision(LIMIT_S)


def test_more_samples_than_the_kernel_takes_are_refused(
    host: LocalHost, core: str, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perf, "fastest", lambda: 50)
    with pytest.raises(RunError, match=r"frequency: 99 samples a second are more than the kernel takes"):
        make("perf-record", host, core, workspace).provision(LIMIT_S)


# ---- hot spots


def groups(stacks: pl.DataFrame) -> dict[str, float]:
    grouping = Grouping(built_in())
    total = int(stacks["samples"].sum())
    found: dict[str, float] = {}
    for stack, samples in stacks.select("stack", "samples").iter_rows():
        group = grouping.group(stack)
        found[group] = found.get(group, 0.0) + samples / total
    return found


@pytest.mark.parametrize(
    ("word", "of", "function"),
    [
        ("tree", {"B-tree"}, "btr_cur_planted"),
        ("copy", {"copy"}, "memcpy_planted"),
        ("call", {"system calls"}, "main"),
        ("write", {"copy", "file system"}, "main"),
    ],
)
def test_a_planted_hot_spot_is_named_and_grouped_rightly(
    word: str, of: set[str], function: str, burn: Burn, host: LocalHost, core: str, workspace: Path, tmp_path: Path
) -> None:
    observer = make("perf-record", host, core, workspace, frequency=499)
    part = watched(observer, burn(word, str(tmp_path / "written")), 0.6)
    assert observer.stop(LIMIT_S).height == 0
    stacks = observer.stacks(*part, LIMIT_S)
    assert stacks is not None
    assert dict(stacks.schema) == STACK_COLUMNS
    assert set(stacks["event"]) == {"cycles" if perf.counts(perf.program(), "cycles") else "cpu-clock"}
    assert int(stacks["samples"].sum()) > 100
    found = groups(stacks)
    assert sum(found.get(group, 0.0) for group in of) > 0.5, found
    assert max(found, key=lambda each: found[each]) in of, found
    # A function of the C library that has no frame pointer hides its caller, and no more than that.
    named = stacks.filter(pl.col("stack").str.contains(f";{function}@burner"))
    assert int(named["samples"].sum()) > 0.5 * int(stacks["samples"].sum())
    assert not list((workspace / "observe-perf-record").rglob("perf.data")), "megabytes that nobody reads"


def test_stacks_are_of_the_measured_part_alone(burn: Burn, host: LocalHost, core: str, workspace: Path) -> None:
    observer = make("perf-record", host, core, workspace, frequency=499)
    began, ended = watched(observer, burn("tree"), 0.8)
    observer.stop(LIMIT_S)
    half = observer.stacks(began, (began + ended) // 2, LIMIT_S)
    assert half is not None
    # The burner has at most the whole of one CPU.
    assert 0 < int(half["samples"].sum()) <= 499 * (ended - began) / 2e9 * 1.2 + 5


def test_a_system_within_the_driver_is_looked_at_there_and_a_driver_beside_it_is_not(
    burn: Burn, host: LocalHost, core: str, workspace: Path
) -> None:
    for number, subjects in enumerate((("driver",), ("mariadbd", "driver"))):
        observer = make("perf-record", host, core, workspace / str(number), frequency=499)
        observer.start(LIMIT_S)
        began = time.time_ns()
        processes = [burn("tree") for _ in subjects]
        for process, subject in zip(processes, subjects, strict=True):
            observer.watch(process.pid, subject)
        until(lambda processes=processes: min(cpu_seconds(each.pid) for each in processes) > 0.5)  # type: ignore[misc]
        observer.stop(LIMIT_S)
        stacks = observer.stacks(began, time.time_ns(), LIMIT_S)
        assert stacks is not None
        assert set(stacks["subject"]) == {subjects[0]}
        for process in processes:
            process.kill()


def test_callers_are_found_by_copies_of_the_stack_where_that_is_asked(
    burn: Burn, host: LocalHost, core: str, workspace: Path
) -> None:
    observer = make("perf-record", host, core, workspace, frequency=199, call_graph="dwarf")
    part = watched(observer, burn("call"), 0.5)
    observer.stop(LIMIT_S)
    stacks = observer.stacks(*part, LIMIT_S)
    assert stacks is not None
    # Called from it is a function of the C library, which has no frame pointer.
    named = stacks.filter(pl.col("stack").str.contains("planted_calls@burner"))
    assert int(named["samples"].sum()) > 0.5 * int(stacks["samples"].sum())


def test_nothing_of_perf_is_left_in_the_users_home(
    burn: Burn, host: LocalHost, core: str, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Perf keeps a copy of every program that it saw in ~/.debug, unless it is told not to."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    monkeypatch.setattr(host, "_environment", {**host._environment, "HOME": str(tmp_path / "home")})
    observer = make("perf-record", host, core, workspace)
    part = watched(observer, burn("tree"), 0.2)
    observer.stop(LIMIT_S)
    observer.stacks(*part, LIMIT_S)
    assert list((tmp_path / "home").iterdir()) == []


def test_perf_is_there() -> None:
    """`make servers` brings it; without it all the rest here would be skipped in silence."""
    assert shutil.which("perf")
