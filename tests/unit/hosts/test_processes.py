"""What is told of a process is what two of them may differ by, and nothing that is another in each run."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

from dyno.hosts.processes import facts_of


def environment_of(folder: Path, variables: Mapping[str, str]) -> object:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=variables) as process:
        try:
            # Once it answers: until a moment after exec the kernel shows an empty one.
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"here\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"here\n"
            return facts_of(process.pid, folder)["environment"]
        finally:
            process.kill()


def test_folders_of_one_run_are_no_difference_of_its_environment(tmp_path: Path) -> None:
    # Each of CrateDB's nodes has one for its heap: all its cells differed in that, and a report warned of it.
    first = environment_of(tmp_path, {"DUMPS": "/tmp/dyno-0123abcd", "LOGS": "/tmp/dyno-0123abcd/logs", "N": "1"})
    assert first == "DUMPS=/tmp/dyno-* LOGS=/tmp/dyno-*/logs N=1"
    assert first == environment_of(
        tmp_path, {"DUMPS": "/tmp/dyno-89ef4567", "LOGS": "/tmp/dyno-89ef4567/logs", "N": "1"}
    )
    assert environment_of(tmp_path, {"DATA": "/srv/dyno-production"}) == "DATA=/srv/dyno-production"
