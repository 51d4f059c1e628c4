"""What a process is held to is so before its first instruction, in which order it takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dyno.hosts import LocalHost
from dyno.hosts.accounts import Account
from dyno.hosts.confinement import Confinement
from dyno.hosts.leftovers import TOKEN_VARIABLE
from dyno.hosts.programs import SYSTEM_PATH
from dyno.model.base import RunError
from tests.unit.hosts.rights import needs_root

LIMIT_S = 30
NOBODY = Account("nobody", 65534, 65534, (65533, 65534))


def test_where_nothing_is_asked_the_command_and_its_account_are_left_as_they_are() -> None:
    assert Confinement().around(["server", "-x"], NOBODY) == (["server", "-x"], NOBODY)


def test_cpus_alone_need_no_rights_of_root(host: LocalHost, tmp_path: Path) -> None:
    cpu = str(min(os.sched_getaffinity(0)))
    argv, account = Confinement(cpus=cpu).around(["grep", "Cpus_allowed_list", "/proc/self/status"], NOBODY)
    assert account == NOBODY, "the process is started as it"
    assert host.run(argv, limit=LIMIT_S, log=tmp_path / "log") == f"Cpus_allowed_list:\t{cpu}\n"


@needs_root
def test_a_group_is_joined_as_root_and_the_account_taken_on_after_that(host: LocalHost, tmp_path: Path) -> None:
    procs = tmp_path / "cgroup.procs"  # in a folder: what joining writes can be seen
    argv, account = Confinement(procs=(procs,)).around(["sh", "-c", "echo $$; id -u; id -g; id -G"], NOBODY)
    assert account is None
    pid, *ids = host.run(argv, limit=LIMIT_S, log=tmp_path / "log").splitlines()
    assert procs.read_text() == f"{pid}\n", "the very process that becomes the program, and that alone"
    assert (procs.stat().st_uid, ids) == (0, ["65534", "65534", "65534 65533"])


@needs_root
def test_an_account_without_groups_keeps_none_of_roots(host: LocalHost, tmp_path: Path) -> None:
    alone = Account("nobody", 65534, 65534, ())
    argv, _ = Confinement(procs=(tmp_path / "cgroup.procs",)).around(["id", "-G"], alone)
    of_root = ["setpriv", "--groups=0,4", *argv]
    assert host.run(of_root, limit=LIMIT_S, log=tmp_path / "log") == "65534\n"


def test_what_joins_a_group_has_the_environment_that_it_was_given_and_no_more(host: LocalHost, tmp_path: Path) -> None:
    argv, _ = Confinement(procs=(tmp_path / "cgroup.procs",)).around(["env"], None)
    process = host.start(argv, log=tmp_path / "log", environment={"PATH": SYSTEM_PATH, "B": "2"})
    assert process.wait(LIMIT_S) == 0
    shown = (tmp_path / "log.stdout").read_text().splitlines()
    assert sorted(line for line in shown if not line.startswith(f"{TOKEN_VARIABLE}=")) == ["B=2", f"PATH={SYSTEM_PATH}"]


def test_words_reach_the_program_as_they_are(host: LocalHost, tmp_path: Path) -> None:
    odd = ["a b", "", "--", "$HOME", "'", '"', "\\", "*", "ä"]
    confined = Confinement(procs=(tmp_path / "my procs",), cpus=str(min(os.sched_getaffinity(0))))
    argv, _ = confined.around(["printf", "%s\n", *odd], None)
    assert host.run(argv, limit=LIMIT_S, log=tmp_path / "log").splitlines() == odd


def test_a_program_whose_group_is_gone_does_not_run_outside(host: LocalHost, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    argv, _ = Confinement(procs=(tmp_path / "no group" / "cgroup.procs",)).around(["touch", str(ran)], None)
    with pytest.raises(RunError, match=r"status 126.*no group/cgroup\.procs"):
        host.run(argv, limit=LIMIT_S, log=tmp_path / "log")
    assert not ran.exists()
