"""CrateDB without a server: what is refused and why, how it is found, and what its script is told."""

from __future__ import annotations

import re
import resource
import subprocess
import zipfile
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from dyno import sql
from dyno.hosts import LocalHost, crate_home, java
from dyno.model.base import RunError
from dyno.systems import cratedb
from dyno.systems.base import Place
from dyno.systems.cratedb import CratedbOptions, CratedbSystem, counters_of

OWN = {"network": "own"}


def made(host: LocalHost, workspace: Path, **options: Any) -> CratedbSystem:
    place = Place(host=host, data=workspace / "live", logs=workspace / "logs", core="x")
    return CratedbSystem(CratedbOptions.model_validate(options), place)


def test_without_a_distribution_it_says_how_to_name_one(
    host: LocalHost, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(crate_home.VARIABLE, raising=False)
    with pytest.raises(RunError, match=r"there is no CrateDB: .* by system\.config\.home or by CRATE_HOME"):
        made(host, workspace).provision(1)
    with pytest.raises(RunError, match=r"is no distribution of CrateDB: it has no bin/crate, lib/crate-server-\*\.jar"):
        made(host, workspace, home=str(workspace)).provision(1)
    with pytest.raises(RunError, match=r"system\.config\.home: there is no folder .*/nowhere"):
        made(host, workspace, home=str(workspace / "nowhere")).provision(1)
    monkeypatch.setenv(crate_home.VARIABLE, str(workspace))
    with pytest.raises(RunError, match=f"{crate_home.VARIABLE}: {workspace} is no distribution"):
        made(host, workspace).provision(1)


def test_networks_of_their_own_are_refused_where_a_process_may_not_open_enough_files(
    host: LocalHost, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (1024, 20_000))
    with pytest.raises(RunError, match=r"network: own needs 65536 open files .* 20000 \(ulimit -Hn\): .*loopback"):
        made(host, workspace, **OWN).provision(1)
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(RunError, match="need root"):
        made(host, workspace, **OWN).provision(1)


@pytest.mark.parametrize(
    ("options", "kind", "why"),
    [
        ({"nodes": 1}, "kill", "there is one node"),
        ({}, "kill", None),
        ({}, "freeze", None),
        ({}, "cut", r"cut needs a network of each node's own: write system\.config\.network: own"),
        (OWN, "cut", None),
        (OWN, "disk-full", "disk-full needs a disk of each node's own"),
    ],
)
def test_faults_that_cannot_be_had_are_told_with_the_reason(
    options: dict[str, Any], kind: Any, why: str | None
) -> None:
    told = CratedbSystem.why_not_struck(CratedbOptions.model_validate(options), kind)
    if why is None:
        assert told is None
    else:
        assert told is not None
        assert re.search(why, told)


def test_more_replicas_than_other_nodes_are_refused() -> None:
    options = CratedbOptions.model_validate({"nodes": 2, "tables": {"replicas": 2}})
    why = CratedbSystem.refuses(options, "tsbs", rolls_back=False)
    assert why is not None
    assert "there are 2 nodes: write at most 1" in why
    fits = CratedbOptions.model_validate({"nodes": 3, "tables": {"replicas": 2}})
    assert CratedbSystem.refuses(fits, "tsbs", rolls_back=False) is None
    assert CratedbSystem.refuses(fits, "ycsb", rolls_back=True) is not None


def test_settings_that_are_dynos_own_are_refused_and_nested_names_are_taken() -> None:
    with pytest.raises(ValidationError, match=r"path\.data is dyno's own to set"):
        CratedbOptions.model_validate({"path.data": "/somewhere"})
    options = CratedbOptions.model_validate({"indices": {"breaker": {"query": {"limit": "100mb"}}}})
    assert options.settings == {"indices.breaker.query.limit": "100mb"}


@pytest.mark.parametrize(
    ("wish", "value", "same"),
    [
        ("100mb", "100mb", True),
        ("0.1gb", "100mb", False),
        ("1gb", "1024mb", True),
        (False, "false", True),
        (100, "100", True),
        ("60s", "60s", True),
    ],
)
def test_a_setting_is_compared_in_its_own_terms(wish: Any, value: str, same: bool) -> None:
    asked, effective = cratedb.canonical(wish, value)
    assert (asked == effective) == same


@pytest.mark.parametrize(
    ("expressions", "by"),
    [([], "none"), (["date_trunc('month', ts)"], "month"), (["date_trunc('day', ts)"], "day"), (["x"], "x")],
)
def test_partitions_are_told_by_what_their_column_is_cut_to(expressions: list[str], by: str) -> None:
    assert cratedb.partitioned_by(expressions) == by


# As CrateDB's own script passes them on: gathered, and read by a shell once more.
SCRIPT = """
while getopts "vhD:X:C:" opt; do case $opt in C) properties="$properties \\"-C$OPTARG\\"" ;; esac; done
eval exec printf '%s\\\\n' $properties
"""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    value=st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1).filter(lambda text: "  " not in text)
)
def test_whatever_is_in_a_value_reaches_the_server_as_it_is(value: str) -> None:
    words = ["sh", "-c", SCRIPT, "sh", cratedb.for_script("path.data", value)]
    answer = subprocess.run(words, capture_output=True, text=True, check=True)
    assert answer.stdout == f"-Cpath.data={value}\n"


def test_two_blanks_in_a_row_which_would_not_reach_it_are_refused() -> None:
    with pytest.raises(RunError, match=r"path\.data: of two blanks in a row"):
        cratedb.for_script("path.data", "/a  b")


def test_a_distribution_without_a_java_gets_one_by_a_folder_that_has_both(
    host: LocalHost, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = workspace / "crate"
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    (home / "bin" / "crate").write_text("#!/bin/sh\n")
    with zipfile.ZipFile(home / "lib" / "crate-server-9.9.jar", "w") as archive:
        archive.writestr("io/crate/A.class", b"\xca\xfe\xba\xbe\x00\x00\x00\x45" + bytes(4))  # of release 25
    assert crate_home.CrateHome(home).version == "9.9"
    assert crate_home.CrateHome(home).least_java == 25
    asked: list[int] = []

    def find(least: int, _home: Path | None = None) -> Path | None:
        asked.append(least)
        return workspace / "jdk" / "bin" / "java" if least <= 25 and (workspace / "jdk").exists() else None

    monkeypatch.setattr(java, "find", find)
    monkeypatch.setattr(java, "version_of", lambda _java: 25)
    with pytest.raises(RunError, match=r"CrateDB 9\.9 needs a Java of 25 or newer"):
        made(host, workspace, home=str(home)).provision(1)
    (workspace / "jdk" / "bin").mkdir(parents=True)
    (workspace / "jdk" / "bin" / "java").write_text("")
    workspace.parent.chmod(0o711)
    assert made(host, workspace, home=str(home)).provision(1) == {"cratedb": "9.9", "java": "25"}
    view = workspace / "crate-9.9"
    assert (view / "jdk" / "bin" / "java").is_file()
    assert (view / "lib" / "crate-server-9.9.jar").is_file()
    assert not (view / "bin" / "crate").is_symlink(), "its script would take the folder of the file that it is"


class Telling:
    """A connection to a node, of three of which one is away: as CrateDB 6 tells it."""

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        if "sys.nodes" in statement:
            return [("n1", 0.5, 40, 300, 600), ("n2", 0.5, None, 200, 400), ("n3", None, None, None, None)]
        if "sys.jobs_metrics" in statement:
            return [("select", 12, None)]
        if "sys.jobs" in statement:
            return [("n1", 1)]
        return [("n1", 100, 10), (None, None, 0)]


def test_a_node_that_is_away_has_no_figures_and_takes_none_of_the_others() -> None:
    found = counters_of(cast("sql.Connection", Telling()))
    assert found.now == {
        "n1.load1": 0.5, "n1.cpu_percent": 40.0, "n1.heap_used_bytes": 300.0, "n1.heap_share": 0.5, "n1.jobs": 1.0,
        "n1.shards_bytes": 100.0, "n1.shards_rows": 10.0, "n2.load1": 0.5, "n2.heap_used_bytes": 200.0,
        "n2.heap_share": 0.5,
    }  # fmt: skip
    assert found.grown == {"jobs.select": 12.0, "jobs_failed": 0.0}
    assert found.by == "n1 n2", "what all count together falls where one goes"
