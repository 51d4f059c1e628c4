"""Workload files of filebench, by the real `dyno-core files`: checked with the study, carried out, and read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from dyno.hosts import LocalHost
from dyno.hosts.local import core_binary
from dyno.model import responses
from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.workloads import beside
from dyno.workloads.base import INTERVAL_COLUMNS
from dyno.workloads.filebench import FilebenchOptions, FilebenchWorkload
from tests.contract.conftest import PlainRunner

SMALL = {"files": 6, "meansize": 65536, "minsize": 32768, "maxsize": 131072, "iosize": "64k"}
"""Of webserver-study."""

SCRIPT = """\
set $dir=/tmp
set $files=4
set $iosize=4k
define fileset name=data, path=$dir, entries=$files, size=16k, dirwidth=10, prealloc=100
define process name=worker, instances=2
{
  thread name=thread, instances=2
  {
    flowop openfile name=open, filesetname=data, fd=1
    flowop write name=put, fd=1, iosize=$iosize, random
    flowop fsync name=sync, fd=1
    flowop closefile name=close, fd=1
    flowop hog name=think, value=10
  }
}
run 5
"""


def make(**options: Any) -> FilebenchWorkload:
    return FilebenchWorkload(FilebenchOptions.model_validate(options))


@pytest.fixture
def runner(host: LocalHost, workspace: Path) -> PlainRunner:
    return PlainRunner(host, core_binary(), workspace / "drive")


@pytest.fixture
def endpoint(workspace: Path) -> Endpoint:
    # A name that means something in the language: users have such folders.
    folder = workspace / "100% a#b $c, d=e"
    folder.mkdir()
    return Endpoint("files", {"folder": str(folder)})


def test_a_built_in_workload_is_measured(runner: PlainRunner, endpoint: Endpoint) -> None:
    workload = make(file="webserver-study", set=SMALL, duration="300 ms", interval="100 ms")
    workload.populate(runner, endpoint, seed=1)
    measured = workload.drive(runner, endpoint, seed=1)
    found = measured.responses
    assert (measured.complete, measured.ended_by, measured.loop, measured.errors) == (True, "duration", "closed", {})
    assert found["elapsed"] == pytest.approx(0.3)
    assert found["operations"] == pytest.approx(found["throughput"] * 0.3, rel=0.01)
    # Of 31 flowops ten read a page, and one adds to the log.
    assert found["reads"] == pytest.approx(10 * found["writes"], rel=0.1)
    assert found["reads"] == pytest.approx(found["throughput"] * 10 / 31, rel=0.1)
    assert found["bandwidth"] > found["asked_read_per_op"] * found["throughput"] / 2**20
    assert found["creation"] > 0
    assert found["creation_rate"] * found["creation"] == pytest.approx(7)
    assert all(responses.lookup(name) for name in found)
    json.dumps([measured.status, measured.versions])


def test_flowops_that_a_number_tells_apart_are_told_of_together_and_kept_one_by_one(
    runner: PlainRunner, endpoint: Endpoint
) -> None:
    workload = make(file="webserver-study", set=SMALL, duration="200 ms", interval="100 ms")
    workload.populate(runner, endpoint, seed=1)
    measured = workload.drive(runner, endpoint, seed=1)
    of_flowops = {name.partition(".")[0] for name in measured.responses if "." in name}
    assert of_flowops == {"open", "read", "close", "append-log"}
    assert measured.responses["read.throughput"] == pytest.approx(measured.responses["reads"], rel=0.01)
    assert measured.responses["read.latency_mean"] <= measured.responses["read.latency_max"]
    assert any("read-1 to read-10" in note for note in measured.notes)
    assert measured.intervals is not None
    assert dict(measured.intervals.schema) == INTERVAL_COLUMNS
    assert {"read-1", "read-10", "append-log"} <= set(measured.intervals["operation"])
    assert measured.intervals["count"].sum() == measured.responses["operations"]
    log = measured.histogram_log
    assert log is not None
    assert "Tag=append-log," in log.read_text()


def test_what_its_operations_asked_for_is_told_by_flowop(runner: PlainRunner, endpoint: Endpoint) -> None:
    workload = make(text=SCRIPT, set={"iosize": "8k"}, duration="200 ms", interval="100 ms")
    workload.populate(runner, endpoint, seed=1)
    measured = workload.drive(runner, endpoint, seed=1)
    assert measured.written == {"open": 0.0, "put": 8192.0, "sync": 0.0, "close": 0.0}
    assert set(measured.read.values()) == {0.0}
    # What only takes time is no operation.
    assert measured.intervals is not None
    assert measured.intervals.filter(pl.col("operation") == "think").is_empty()
    assert measured.responses["syncs"] == pytest.approx(measured.responses["writes"], rel=0.2)


def test_what_is_to_be_known_before_a_run_is_asked_of_the_engine() -> None:
    workload = make(text=SCRIPT)
    assert (workload.clients(), workload.data_bytes(), workload.expected_seconds()) == (4, 4 * 16384, 5.0)
    assert make(text=SCRIPT, duration="2 s").expected_seconds() == 2.0
    assert list(workload.misfits()) == []


@pytest.mark.parametrize(
    ("options", "about", "why"),
    [
        ({"text": SCRIPT.replace("name=put", "name=put, iosiz=4k")}, "file", "text.f:10:28: "),
        ({"text": SCRIPT, "set": {"nosuch": 1}}, "set.nosuch", "has no variable $nosuch, expected one of: dir, files"),
        ({"text": SCRIPT, "set": {"files": 2, "iosize": "much"}}, "set.iosize", "text.f:10:41: found $iosize"),
        ({"text": SCRIPT.replace("path=$dir", 'path="/srv"')}, "file", "fileset data is made in /srv/data, which"),
        (
            {"text": SCRIPT.replace("path=$dir", 'path="$dir/../../escaped"')},
            "file",
            "fileset data is made in /dyno/../../escaped/data, which no system has",
        ),
        ({"text": SCRIPT.replace("path=$dir", 'path="$dir/../dyno"')}, "file", "fileset data is made in /dyno/../dyno"),
        ({"text": SCRIPT.replace("$dir", "$where")}, "file", "has no variable $dir"),
        (
            {"text": SCRIPT.replace("run 5", 'system "date"\nrun 5')},
            "allow_system",
            "has a command for a shell, `date`, which is run with",
        ),
        ({"text": f"{SCRIPT}\nload other\n"}, "file", "the workload `other` is not there"),
        ({"file": "webservr"}, "file", "webservr: there is no such workload, expected one of fileserver, oltp"),
    ],
)
def test_what_the_engine_finds_wrong_is_told_with_its_option(options: dict[str, Any], about: str, why: str) -> None:
    ((key, text),) = make(**options).misfits()
    assert key == about
    assert why in text, text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give file, the name of a built-in workload or the path of one, or text"),
        ({"text": SCRIPT, "loads": {"../x": ""}}, "is no name that a workload file can load"),
        ({"file": "Web Server"}, "is neither a name such as webserver nor a path"),
        ({"file": "webserver", "set": {"dir": "/home"}}, "dir is the folder of the system"),
        ({"file": "webserver", "set": {"$files": 3}}, "is no name of a variable; write it without its"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make(**options)


def test_a_file_is_read_from_beside_the_study_and_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.f").write_text(SCRIPT)
    read = FilebenchOptions.model_validate({"file": "mine.f"}, context={beside.FOLDER: tmp_path})
    (tmp_path / "mine.f").unlink()
    kept = FilebenchWorkload(FilebenchOptions.model_validate(read.model_dump(mode="json")))
    assert (kept.options.text, kept.clients()) == (SCRIPT, 4)
    with pytest.raises(ValidationError, match=r"mine.f cannot be read: No such file"):
        FilebenchOptions.model_validate({"file": "mine.f"}, context={beside.FOLDER: tmp_path})


def test_a_text_that_would_stand_for_the_workload_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.f").write_text(SCRIPT)
    given = {"file": "./mine.f", "loads": {"mine": SCRIPT}}
    with pytest.raises(ValidationError, match=r"loads.mine has the name of the workload itself"):
        FilebenchOptions.model_validate(given, context={beside.FOLDER: tmp_path})


def test_files_that_it_loads_are_read_from_beside_it_and_kept(
    tmp_path: Path, runner: PlainRunner, endpoint: Endpoint
) -> None:
    folder = tmp_path / "workloads"
    folder.mkdir()
    (folder / "mine.f").write_text('load "middle"\n')
    (folder / "middle.f").write_text("foreach $i in 1 { load inner }\n")
    (folder / "inner.f").write_text(SCRIPT)
    read = FilebenchOptions.model_validate({"file": "workloads/mine.f"}, context={beside.FOLDER: tmp_path})
    shutil.rmtree(folder)
    assert read.loads == {"middle": "foreach $i in 1 { load inner }\n", "inner": SCRIPT}
    kept = FilebenchWorkload(FilebenchOptions.model_validate(read.model_dump(mode="json")))
    assert list(kept.misfits()) == []
    kept.populate(runner, endpoint, 1)
    assert kept.drive(runner, endpoint, 1).complete


def test_a_text_beside_a_file_is_one_too_many(tmp_path: Path) -> None:
    for file in ("mine.f", "webserver"):
        with pytest.raises(ValidationError, match="file and text are both given"):
            FilebenchOptions.model_validate({"file": file, "text": SCRIPT}, context={beside.FOLDER: tmp_path})


def test_where_there_is_no_engine_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _name: "/nonexistent")
    workload = make(text=SCRIPT, set={"nosuch": 1})
    assert list(workload.misfits()) == []
    assert (workload.clients(), workload.data_bytes(), workload.expected_seconds()) == (1, 0, None)


def test_files_that_cannot_be_made_are_told_with_their_cause(runner: PlainRunner) -> None:
    nowhere = Endpoint("files", {"folder": "/proc/nowhere"})
    with pytest.raises(RunError, match=r"the files were not made: .*nowhere"):
        make(text=SCRIPT).populate(runner, nowhere, seed=1)


def test_a_run_on_files_that_were_not_made_is_no_run(runner: PlainRunner, endpoint: Endpoint) -> None:
    with pytest.raises(RunError):
        make(text=SCRIPT, duration="200 ms").drive(runner, endpoint, seed=1)
