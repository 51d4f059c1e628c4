"""What fio 3.33 wrote of real files, read figure by figure, what is made of runs that went wrong, and a real run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dyno.hosts import LocalHost
from dyno.model.base import InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.workloads import beside, fio, fio_jobs
from dyno.workloads.base import INTERVAL_COLUMNS, rates
from dyno.workloads.fio import FioOptions, FioWorkload
from dyno.workloads.fio_jobs import JobFileError
from tests.contract.conftest import PlainRunner
from tests.unit.workloads.making import TOOLS, Saying

JOBS = (TOOLS / "fio-3.33.fio").read_text()
RUN = (TOOLS / "fio-3.33-run.json").read_text()
CREATE = (TOOLS / "fio-3.33-create.json").read_text()


class Reporting(Saying):
    """Its fio leaves this report where it is told to."""

    def execute(self, argv: Sequence[str], *, kept_as: str | None = None) -> int:
        where = next(word.removeprefix("--output=") for word in argv if word.startswith("--output="))
        if self._output:
            Path(where).write_text(self._output)
        return super().execute(argv, kept_as=kept_as)


def make(**options: Any) -> FioWorkload:
    return FioWorkload(FioOptions.model_validate({"text": JOBS, **options}))


def files(folder: Path) -> Endpoint:
    return Endpoint("files", {"folder": str(folder)})


def changed(**of_last: Any) -> str:
    """The golden report, its last state with other figures of the first job."""
    states = RUN.rstrip().split("\n}\n{")
    last = json.loads("{" + states[-1])
    last["jobs"][0].update(of_last)
    return "\n}\n{".join(states[:-1]) + "\n}\n" + json.dumps(last)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fio, "_program", lambda: "fio")


@pytest.mark.usefixtures("program")
def test_its_run_is_measured(tmp_path: Path) -> None:
    runner = Reporting(tmp_path, RUN)
    measured = make(interval="400 ms").drive(runner, files(tmp_path), seed=7)
    responses = measured.responses
    # 140 reads and 60 writes of the two that were held to 70 and 30 a second, then the 128 of the log.
    assert responses["throughput"] * responses["elapsed"] == pytest.approx(328)
    assert responses["reads"] == responses["read.throughput"] == pytest.approx(140 / responses["elapsed"])
    assert responses["asked_read_per_op"] == pytest.approx(140 * 4096 / 328)
    assert responses["bandwidth"] * responses["elapsed"] == pytest.approx(328 * 4096 / 2**20)
    assert responses["latency_p50"] <= responses["latency_p90"] <= responses["latency_p999"] <= responses["latency_max"]
    assert measured.written == {"read": 0.0, "write": 4096.0}
    assert measured.read == {"read": 4096.0, "write": 0.0}
    assert (measured.loop, measured.ended_by, measured.versions) == ("closed", "operations", {"fio": "3.33"})
    assert {"--status-interval=400ms", "--output-format=json+"} <= set(runner.commands[0])


@pytest.mark.usefixtures("program")
def test_the_counts_of_its_intervals_are_those_of_the_whole(tmp_path: Path) -> None:
    measured = make(interval="400 ms").drive(Reporting(tmp_path, RUN), files(tmp_path), seed=7)
    table = measured.intervals
    assert table is not None
    assert dict(table.schema) == INTERVAL_COLUMNS
    assert table["count"].sum() == 328
    assert table["start_ns"].min() == measured.measured_from_ns
    assert table["end_ns"].max() == measured.measured_to_ns
    assert (table["start_ns"] < table["end_ns"]).all()
    assert (table["p50_us"] <= table["max_us"]).all()


def test_quantiles_of_the_histogram_are_those_that_fio_makes_of_it() -> None:
    last = json.loads("{" + RUN.rstrip().split("\n}\n{")[-1])["jobs"][0]["read"]["lat_ns"]
    histogram = fio._direction({"total_ios": 0, "io_bytes": 0, "lat_ns": last})
    for share, value in last["percentile"].items():
        assert histogram.quantile(float(share) / 100) == value, share


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize(
    ("report", "error", "message"),
    [
        ("", RunError, "fio run left no report"),
        (RUN[:-400], RunError, "not as fio 3 writes it"),
        (RUN.replace('"jobname" : "log"', '"jobname" : "other"'), RunError, "says nothing of 1 job: log"),
        (changed(job_runtime=400), InvalidRun, "job mixed ran for 0.4 s, 1 s were asked for"),
        (changed(error=28, total_err=3, first_error=28), InvalidRun, "3 of 331 operations failed .errno 28: 3."),
    ],
)
def test_what_was_not_as_asked_is_no_run(report: str, error: type[Exception], message: str, tmp_path: Path) -> None:
    with pytest.raises(error, match=message):
        make().drive(Reporting(tmp_path, report), files(tmp_path), seed=1)


@pytest.mark.usefixtures("program")
def test_a_rate_that_was_not_reached_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match=r"job mixed: the rate was not reached: 69.* of 100 I/Os a second .read."):
        make(text=JOBS.replace("rate_iops=70,30", "rate_iops=100,30")).drive(
            Reporting(tmp_path, RUN), files(tmp_path), seed=1
        )


@pytest.mark.usefixtures("program")
def test_jobs_that_were_not_laid_out_are_no_population(tmp_path: Path) -> None:
    make().populate(Reporting(tmp_path, CREATE), files(tmp_path), seed=1)
    with pytest.raises(RunError, match="says nothing of 1 job: log"):
        make().populate(Reporting(tmp_path, CREATE.replace('"jobname" : "log"', '"jobname" : "x"')), files(tmp_path), 1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[a]\nfilename=/dev/sda", r"mine.fio:2: filename: /dev/sda leads out of the folder"),
        ("[a]\nfilename=one:../two", r"mine.fio:2: filename: one:../two leads out of the folder"),
        ("[a]\nmem=mmap:/tmp/x", r"mine.fio:2: mem: .* leads out of the folder"),
        ("[a]\n\nexec_prerun = rm -rf x", r"mine.fio:3: exec_prerun: it would run a command"),
        ("[global]\nioengine=net\n[a]\n", r"mine.fio:2: ioengine: net is no engine for files"),
        ("include other.fio\n[a]", r"mine.fio:1: include: .* put it into one file"),
        ("rw=read", r"mine.fio:1: rw: stands before any section"),
        ("[a]\nnumjobs=many", r"mine.fio:2: numjobs: should be a number of jobs"),
        ("[a]\nsize=${SIZE}", r"mine.fio:2: size: \$\{SIZE\} has no value; give it under variables"),
        ("; nothing", r"mine.fio:1: has no job"),
        ("[a\nrw=read", r"mine.fio:1: '\[a' is no section"),
        ("[a]\nruntime=soon", r"mine.fio:2: runtime: should be a time"),
        ("[global]\n[../../escaped]", r"mine.fio:2: \[../../escaped\]: its files would lie out of the folder"),
        ("[in/side]", r"mine.fio:1: \[in/side\]: .* write a name without / or .."),
        ("[a]\n[..]", r"mine.fio:2: \[..\]: its files would lie out of the folder"),
        ("[.]\nfilename_format=$jobname$jobname/x", r"mine.fio:1: \[.\]: its files would lie out of the folder"),
        ("[a\tb]", r"mine.fio:1: .* has a control character"),
        ("[a]\nname=../escaped", r"mine.fio:2: name: ../escaped leads out of the folder"),
        ("[a]\nname=in/side", r"mine.fio:2: name: its files would lie out of the folder"),
        ("[a]\nbs=4\0k", r"mine.fio:2: bs: .* has a control character"),
    ],
)
def test_what_a_job_may_not_do_is_refused_by_line_and_key(text: str, message: str) -> None:
    with pytest.raises(JobFileError, match=message):
        fio_jobs.parse(text, "mine.fio")


def test_shares_and_ranges_with_a_slash_are_no_paths() -> None:
    jobs = fio_jobs.parse("[a]\nbssplit=4k/50:64k/50\nrandom_distribution=zoned:50/5:50/95", "mine.fio")
    assert jobs[0].get("bssplit") == "4k/50:64k/50"


def test_what_a_study_sets_takes_the_place_of_a_jobs_own_under_either_name() -> None:
    workload = make(
        text="[global]\nblocksize=4k\nsize=${S}\n[a]\n[b]\nbs=8k\nstonewall", size="2 MiB", runtime="1500 ms",
        options={"bs": "64k"}, variables={"S": "1g"},
    )  # fmt: skip
    written = fio_jobs.written(workload._jobs, 3)
    assert written.count("bs=64k") == 2
    assert "8k" not in written
    assert "size=2097152" in written
    assert "runtime=1500ms" in written
    assert workload.expected_seconds() == 3.0
    assert workload.data_bytes() == 2 * 2 * 2**20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"text": None}, "give file, the path of a job file, or text"),
        ({"options": {"directory": "/tmp"}}, "directory: the folder is that of the system"),
        ({"options": {"filename": "/dev/sda"}}, "filename: /dev/sda leads out of the folder"),
        ({"options": {"filename": " ../a"}}, "filename:  ../a leads out of the folder"),
        # What fio would read as a line, a comment or a variable of its own.
        ({"options": {"bs": "4k\nexec_prerun=touch x"}}, "bs: .* has a control character: a value is on one line"),
        ({"options": {"exec_prerun=touch x;": 1}}, "exec_prerun=touch x;: is no name of an option of fio's"),
        ({"options": {"exec_prerun ": "touch x"}}, "exec_prerun : is no name of an option of fio's"),
        ({"options": {"filename": "${HOME}"}}, r"filename: .* begins a comment .; or #. or a variable"),
        ({"options": {"filename": "a/..;"}}, r"filename: .* begins a comment"),
        (
            {"text": "[a]\nbs=${B}", "variables": {"B": "4k\nexec_prerun=touch x"}},
            "text:2: bs: .* has a control character",
        ),
        ({"text": "[a]\nfilename=${B}", "variables": {"B": "${HOME}"}}, "text:2: filename: .* or a variable"),
    ],
)
def test_options_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make(**options)


def test_a_job_file_is_read_from_beside_the_study_and_kept(tmp_path: Path) -> None:
    (tmp_path / "mine.fio").write_text(JOBS)
    context = {beside.FOLDER: tmp_path}
    read = FioOptions.model_validate({"file": "mine.fio"}, context=context)
    (tmp_path / "mine.fio").unlink()
    assert FioOptions.model_validate(read.model_dump(mode="json")).text == JOBS
    for name, message in (("mine.fio", "No such file"), ("/etc/passwd", "should be a path from the study file")):
        with pytest.raises(ValidationError, match=message):
            FioOptions.model_validate({"file": name}, context=context)


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed: apt-get install fio")
@pytest.mark.parametrize(
    ("options", "key", "why"),
    [
        ({"options": {"bs": "abc"}}, "options.bs", "failed parsing bs=abc"),
        ({"options": {"blksz": "4k"}}, "options.blksz", "Bad option <blksz=4k>"),
        ({"text": f"{JOBS}\nno_such=1\n"}, "text", "Bad option <no_such=1>"),
    ],
)
def test_what_fio_itself_refuses_is_told_before_anything_runs(options: dict[str, Any], key: str, why: str) -> None:
    ((about, said),) = make(**{"text": JOBS, **options}).misfits()
    assert about == key
    assert why in said
    assert list(make(text=JOBS).misfits()) == []


@pytest.mark.skipif(shutil.which("fio") is None, reason="fio is not installed: apt-get install fio")
def test_fio_itself_lays_out_and_runs_what_it_is_given(host: LocalHost, workspace: Path) -> None:
    workload = make(
        text="[global]\nsize=256k\nbs=4k\n[both]\nrw=randrw\nnumjobs=2\nthinktime=1000\n[sync]\nrw=write\nfsync=4\n"
        "thinktime=1000",
        runtime="600 ms",
        interval="200 ms",
    )
    data = workspace / "data"
    data.mkdir()
    assert workload.provision(host, workspace / "logs", 30.0)["fio"].startswith("3.")
    runner = PlainRunner(host, "dyno-core", workspace / "drive")
    workload.populate(runner, files(data), seed=1)
    assert sorted(path.name for path in data.iterdir()) == ["both.0.0", "both.1.0", "sync.0.0"]
    measured = workload.drive(runner, files(data), seed=1)
    assert measured.ended_by == "duration"
    # On a busy machine it is told late that its time is up, and an interval begins late.
    assert measured.responses["elapsed"] == pytest.approx(0.6, abs=0.3)
    assert measured.responses["syncs"] > 0
    series, length, _ = rates(measured)
    assert length == pytest.approx(0.2, abs=0.1)
    assert len(series) >= 2
