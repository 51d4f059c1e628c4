"""callgrind on programs that do what is known: its profiles hold what they did, and what is kept of them is that."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from dyno.deployments.base import Launch, Site
from dyno.deployments.native import NativeServer
from dyno.hosts import LocalHost
from dyno.lab.callgrind import Function, self_costs
from dyno.lab.counting import INSTRUCTIONS, Counted
from dyno.model.base import RunError
from tests.contract.conftest import LIMIT_S
from tests.making import until

PROGRAM = r"""
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void planted(int n) { for (volatile int i = 0; i < n; i++); }
__attribute__((noinline)) int deeper(int n) { return n ? 1 + deeper(n - 1) : 0; }
static int in_order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) void child_begins(void) { planted(1000); }

int main(int count, char **words) {
    int numbers[500];
    for (int i = 0; i < 500; i++) numbers[i] = (i * 7919) % 500;
    qsort(numbers, 500, sizeof(int), in_order);
    planted(100000);
    if (deeper(50) != 50) return 1;
    if (count > 1 && fork() == 0) { child_begins(); exit(0); }
    while (wait(0) > 0);
    return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    (folder / "program.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-g", "-o", folder / "program", folder / "program.c"], check=True, capture_output=True)
    return folder / "program"


def profiles(folder: Path, *words: str | Path) -> tuple[list[Path], int]:
    """The profiles of a program and its children, and all that valgrind says it counted."""
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'callgrind.out'}.%p"]
    told = subprocess.run([*valgrind, *words], check=True, capture_output=True, text=True).stderr
    return sorted(folder.glob("callgrind.out.*")), sum(map(int, re.findall(r"Collected\s*:\s*(\d+)", told)))


def read(profile: Path) -> Counter[Function]:
    with profile.open() as lines:
        return self_costs(lines, profile.name)


def test_of_a_real_profile_it_reads_what_callgrind_annotate_does(program: Path, tmp_path: Path) -> None:
    (profile,), counted = profiles(tmp_path, program)
    found = read(profile)
    assert found.total() == counted
    said = subprocess.run(
        ["callgrind_annotate", "--threshold=100", "--auto=no", "--show-percs=no", profile],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    expected: Counter[str] = Counter()
    # `1,234  file:function [object]`; a function that others are inlined into has a line for each file.
    for cost, name in re.findall(r"^ *([\d,]+)  .*?:([^:\n]+?)(?: \[[^\]\n]*\])?$", said, re.M):
        symbol = re.sub(r"'\d+$|@@?GLIBC.*", "", name)  # neither the level of recursion nor the version
        expected[symbol] += int(cost.replace(",", ""))
    del expected["PROGRAM TOTALS"]
    by_symbol: Counter[str] = Counter()
    for function, count in found.items():
        by_symbol[function.symbol or ""] += count
    known = {symbol: count for symbol, count in expected.items() if symbol in by_symbol}
    assert len(known) > 50
    assert {symbol: by_symbol[symbol] for symbol in known} == known
    assert found[Function("planted", "program")] > 300_000
    assert found[Function("deeper", "program")] > 50 * 3, "of all levels of recursion together"


def test_of_a_child_only_what_came_after_its_first_function_is_in_its_profile(program: Path, tmp_path: Path) -> None:
    (whole,), _ = profiles(tmp_path, program)
    whole_counts = read(whole)
    forked = tmp_path / "forked"
    forked.mkdir()
    both, counted = profiles(forked, "--zero-before=child_begins", program, "fork")
    assert len(both) == 2
    of_child, of_parent = sorted(map(read, both), key=Counter.total)
    planted = Function("planted", "program")
    # A hundredth of what its parent did, which it would have had too.
    assert of_child[planted] < whole_counts[planted] / 50
    assert Function("deeper", "program") not in of_child
    assert of_parent[planted] == whole_counts[planted]
    assert of_child.total() + of_parent.total() == counted


@pytest.fixture
def counted(host: LocalHost, tmp_path: Path) -> Counted:
    return Counted(Site(host=host, folder=tmp_path, work=tmp_path, logs=tmp_path))


def started(deployment: Counted, folder: Path) -> NativeServer:
    """A program that ends when there is a file `on`."""
    argv = ("sh", "-c", 'while [ ! -e "$0" ]; do :; done', str(folder / "on"))
    launch = Launch(argv=argv, log=folder / "log", marker=argv[-1], data=folder, folders=(folder,))
    running = deployment.start(launch, LIMIT_S)
    until(lambda: (folder / "callgrind").exists())
    return running


def test_a_program_that_ends_tells_what_it_took_by_function(counted: Counted, tmp_path: Path) -> None:
    running = started(counted, tmp_path)
    (tmp_path / "on").touch()
    running.wait(LIMIT_S)
    assert counted.end(running, limit=LIMIT_S) == 0
    functions = counted.functions()
    assert functions is not None
    assert counted.counted() == {INSTRUCTIONS: functions["instructions"].sum()}
    assert {"dash", "libc.so.6"} <= set(functions["module"])


def test_one_that_is_killed_tells_nothing_and_its_end_is_for_the_system_to_judge(
    counted: Counted, tmp_path: Path
) -> None:
    running = started(counted, tmp_path)
    running.process.send(signal.SIGKILL)
    running.wait(LIMIT_S)
    assert counted.end(running, limit=LIMIT_S) == -signal.SIGKILL
    assert (counted.counted(), counted.functions()) == ({}, None)


def test_one_that_leaves_no_profile_is_an_error_of_one_line(
    counted: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # valgrind itself, which is told to throw its profile away.
    wrapper = tmp_path / "bin" / "valgrind"
    wrapper.parent.mkdir()
    words = r"${@/#--callgrind-out-file=*/--callgrind-out-file=\/dev\/null}"
    wrapper.write_text(f'#!/bin/bash\nexec {shutil.which("valgrind")} "{words}"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    running = started(counted, tmp_path)
    (tmp_path / "on").touch()
    running.wait(LIMIT_S)
    with pytest.raises(RunError, match=r"^valgrind counted \d+ instructions, and its profiles .* have 0: [^\n]*$"):
        counted.end(running, limit=LIMIT_S)
    assert (counted.counted(), counted.functions()) == ({}, None)
