"""fio's job files, carried out by fio itself: for those whose habit it is, and to set dyno's figures beside theirs.

What its output means was seen at fio 3.33. It is asked for its whole state at every interval (`--status-interval`),
from which the time series are made exactly: its own logs of averages cannot be added up. Faults of its that are guarded
against: jobs that a group's report hides; an end before the time that was asked for, of which the exit status says
nothing; latencies of syncs that begin at the epoch (with libaio), for which reason syncs are counted alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import polars as pl
from pydantic import Field, ValidationInfo, field_validator, model_validator

from dyno.hosts import LocalHost, asking, programs
from dyno.hosts.gist import gist
from dyno.model.base import Frozen, InvalidRun, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.units import Duration, PositiveDuration, Share, Size, counted
from dyno.workloads import beside, fio_jobs, foreign
from dyno.workloads.base import INTERVAL_COLUMNS, Measured, Runner, Workload
from dyno.workloads.fio_jobs import Job

_TOOL = foreign.Tool("fio")
DIRECTIONS = ("read", "write", "trim")
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}
_SHOWN = ("p50", "p95", "p99")
_LEAST_REACHED = 0.99
_SLACK_S = 0.05  # of a runtime: fio looks at its clock between I/Os, and rounds to milliseconds
_MIB = 2**20


class FioOptions(Frozen):
    """A job file, and what a study sets in each of its jobs."""

    variables: Annotated[dict[str, str | int], Field(description="what to put in for ${NAME} in the job file")] = {}
    options: Annotated[
        dict[str, str | int | float | bool],
        Field(description="fio's own options by its names, for each job in place of its own: {bs: 4k, iodepth: 8}"),
    ] = {}
    size: Annotated[Size | None, Field(ge=4096, description="of each job's files, in place of its own")] = None
    runtime: Annotated[
        PositiveDuration | None, Field(ge=0.001, description="of each job, for all of that time, in place of its own")
    ] = None
    interval: Annotated[Duration, Field(ge=0.1, le=60, description="of the time series")] = 1.0
    max_errors: Annotated[
        Share, Field(le=1, description="share of I/Os that may fail, where the jobs have continue_on_error")
    ] = 0.0
    text: Annotated[str | None, Field(max_length=2**20, description="instead of a file: what would stand in it")] = None
    # Last, since whether it can be read hangs on what is put in.
    file: Annotated[
        str | None, Field(validate_default=True, description="a job file, by its path from the study file")
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _has_its_text(cls, given: Any, info: ValidationInfo) -> Any:
        return beside.with_text(given, info)

    @field_validator("options")
    @classmethod
    def _may_be_set(cls, value: dict[str, str | int | float | bool]) -> dict[str, str | int | float | bool]:
        fio_jobs.given((), {name: _as_fio(each) for name, each in value.items()})
        return value

    @field_validator("file")
    @classmethod
    def _can_be_read(cls, value: str | None, info: ValidationInfo) -> str | None:
        text = info.data.get("text")
        if value is None and text is None:
            raise ValueError("give file, the path of a job file, or text")
        if text is not None and "variables" in info.data:  # else nobody has said where to look for it
            variables = {name: str(each) for name, each in info.data["variables"].items()}
            fio_jobs.parse(text, value or "text", variables)
        return value

    def jobs(self) -> list[Job]:
        """The jobs with all that is set. Raises ValueError, which names the job file's line."""
        if self.text is None:
            raise ValueError(f"{self.file} has not been read")
        variables = {name: str(value) for name, value in self.variables.items()}
        jobs = fio_jobs.parse(self.text, self.file or "text", variables)
        mine = {name: _as_fio(value) for name, value in self.options.items()}
        if self.size is not None:
            mine["size"] = str(self.size)
        if self.runtime is not None:
            mine |= {"runtime": f"{round(self.runtime * 1000)}ms", "time_based": "1"}
        return fio_jobs.given(jobs, mine)


class FioWorkload(Workload[FioOptions]):
    """`fio --create_only=1` lays the files out, then fio runs the same jobs."""

    kind = "fio"
    Options = FioOptions
    backends = frozenset({"files"})
    populates = True
    forks = True  # each job is a process, but with thread=1

    def __init__(self, options: FioOptions) -> None:
        super().__init__(options)
        self._jobs = options.jobs()

    def needs(self) -> Sequence[str]:
        """Itself."""
        return ("fio",)

    def provision(self, host: LocalHost, logs: Path, limit: float) -> dict[str, str]:
        """Debian's package, or any other on the PATH."""
        said = host.run([_program(), "--version"], limit=limit, log=logs / "fio-version")
        return {"fio": said.removeprefix("fio-").strip()}

    def misfits(self) -> Iterator[tuple[str, str]]:
        """As fio finds it, which has hundreds of options; nothing where there is no fio to ask."""
        program = programs.find("fio")
        if program is None:
            return
        if why := _refused(str(program), fio_jobs.written(self._jobs, 1)):
            given = [name for name in self.options.options if re.search(rf"\b{re.escape(name)}=", why)]
            yield (f"options.{given[0]}" if given else "file" if self.options.file else "text", why)

    def clients(self) -> int:
        """As many jobs as run at once."""
        return max(sum(job.instances for job in stage) for stage in fio_jobs.stages(self._jobs))

    def at_once(self) -> int:
        """Each of them may have several I/Os under way."""
        return max(
            sum(job.instances * (fio_jobs.size(job.get("iodepth", "1")) or 1) for job in stage)
            for stage in fio_jobs.stages(self._jobs)
        )

    def rate(self) -> float | None:
        """As asked for, where each job is held to so many I/Os a second."""
        targets = [sum(amount for amount, unit in job.rates().values() if unit == "I/Os") for job in self._jobs]
        if not all(targets) or len(fio_jobs.stages(self._jobs)) > 1:
            return None
        asked = (
            job.instances * sum(amount for direction, (amount, _) in job.rates().items() if direction in _asked(job))
            for job in self._jobs
        )
        return float(sum(asked))

    def warms_up(self) -> bool:
        """What comes before `ramp_time` is over counts for nothing."""
        return any(job.ramp > 0 for job in self._jobs)

    def data_bytes(self) -> int:
        """Files of each job's own."""
        return sum(job.instances * (fio_jobs.size(job.get("size")) or 0) for job in self._jobs)

    def expected_seconds(self) -> float | None:
        """Known where each job has a time."""
        if not all(job.lasts for job in self._jobs):
            return None
        lengths = [[job.delay + job.ramp + (job.runtime or 0.0) for job in stage] for stage in self._stages()]
        return sum(max(each) for each in lengths)

    def populate(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """Lay the files out, which is no part of what is measured."""
        words = [*self._words(runner, endpoint, seed, "create"), "--create_only=1"]
        _TOOL.execute(runner, "create", words)
        _Report.read(runner, "create").refuse_missing(self._jobs)

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Run the jobs, and see whether each of them did what was asked."""
        words = [
            *self._words(runner, endpoint, seed, "run"),
            f"--status-interval={round(self.options.interval * 1000)}ms",
        ]
        _TOOL.execute(runner, "run", words)
        report = _Report.read(runner, "run")
        report.refuse_missing(self._jobs)
        said = report.measured(self._stages())
        responses = dict(_responses(said))
        self._refuse(said)
        return Measured(
            complete=True,
            responses=responses,
            errors={"io": dict(said.errors)} if said.errors else {},
            measured_from_ns=said.from_ns,
            measured_to_ns=said.to_ns,
            status=dict(_status(said)),
            versions={"fio": report.version},
            loop="closed",
            rate_per_s=self.rate(),
            notes=tuple(self._notes(said)),
            ended_by="duration" if all(job.lasts for job in self._jobs) else "operations",
            intervals=said.intervals(),
            written={name: each.bytes / each.ios if name == "write" else 0.0 for name, each in said.of.items()},
            read={name: each.bytes / each.ios if name == "read" else 0.0 for name, each in said.of.items()},
        )

    def _stages(self) -> list[list[Job]]:
        return fio_jobs.stages(self._jobs)

    def _words(self, runner: Runner, endpoint: Endpoint, seed: int, phase: str) -> list[str]:
        """The job file is kept, so that a run that failed can be tried again by hand with what it was given."""
        runner.folder.mkdir(parents=True, exist_ok=True)
        runner.logs.mkdir(parents=True, exist_ok=True)
        path = runner.logs / "jobs.fio"
        path.write_text(fio_jobs.written(self._jobs, seed))
        folder = str(endpoint.settings["folder"]).replace(":", "\\:")  # a colon parts folders
        return [
            _program(),
            "--output-format=json+",
            f"--output={_output(runner, phase)}",
            "--eta=never",
            f"--aux-path={runner.folder}",
            f"--directory={folder}",
            str(path),
        ]

    def _refuse(self, said: _Said) -> None:
        """Raise InvalidRun where a job is not what was asked, though fio has nothing to say of it."""
        done = sum(each.ios for each in said.of.values())
        failed = sum(said.errors.values())
        _TOOL.refuse_failed(done, failed, self.options.max_errors, _told(said.errors))
        for job, told in said.by_job:
            if not any(each.ios for each in told.of.values()) and not told.syncs:
                raise InvalidRun(f"job {job.name} did nothing")
            if job.lasts and job.runtime is not None and told.seconds < job.runtime * (1 - _SLACK_S) - _SLACK_S:
                raise InvalidRun(f"job {job.name} ran for {told.seconds:g} s, {job.runtime:g} s were asked for")
            for direction, (target, unit) in job.rates().items():
                did = told.of[direction]
                if not did.ios or not told.seconds:
                    continue
                reached = (did.ios if unit == "I/Os" else did.bytes) / told.seconds
                if reached < _LEAST_REACHED * target:
                    raise InvalidRun(
                        f"job {job.name}: the rate was not reached: {reached:.1f} of {target:g} {unit} a second "
                        f"({direction})"
                    )

    def _notes(self, said: _Said) -> Iterator[str]:
        if any(each.bins for each in said.of.values()):
            yield (
                "fio counts latencies in buckets 1.6% wide: its quantiles are no finer, and a difference smaller than "
                "that is none."
            )
        else:
            yield "fio was asked to measure no latencies (gtod_reduce or disable_lat in a job)."
        if said.syncs:
            yield "What fio syncs is counted by itself (syncs) and is no operation of its throughput."
        if names := fio_jobs.left_out(self._jobs):
            yield f"Of the job file dyno leaves out {', '.join(names)}: it says these itself."


@dataclass
class _Direction:
    """What was done in one direction."""

    ios: int = 0
    bytes: int = 0
    weighted_ns: float = 0.0
    max_ns: float = 0.0
    bins: Counter[int] = field(default_factory=Counter)

    def add(self, other: _Direction) -> None:
        self.ios += other.ios
        self.bytes += other.bytes
        self.weighted_ns += other.weighted_ns
        self.max_ns = max(self.max_ns, other.max_ns)
        self.bins.update(other.bins)

    def since(self, before: _Direction) -> _Direction:
        """What came after an earlier state; all of it where the counters began anew in between."""
        if before.ios > self.ios:
            return self
        return _Direction(
            self.ios - before.ios,
            self.bytes - before.bytes,
            self.weighted_ns - before.weighted_ns,
            self.max_ns,
            self.bins - before.bins,
        )

    def quantile(self, share: float) -> float | None:
        """In ns; the value of the bucket in which that many of the latencies have been seen."""
        total = sum(self.bins.values())
        so_far = 0
        for value in sorted(self.bins):
            so_far += self.bins[value]
            if so_far >= share * total:
                return float(value)
        return None

    def mean(self) -> float | None:
        """In ns."""
        known = sum(self.bins.values())
        return self.weighted_ns / known if known else None


@dataclass
class _Told:
    """What fio says of one job."""

    name: str
    seconds: float
    of: dict[str, _Direction]
    syncs: int
    errors: dict[str, int]
    cpu_s: float
    switches: int
    faults: int
    major_faults: int

    @classmethod
    def of_json(cls, job: Mapping[str, Any]) -> _Told:
        seconds = float(job["job_runtime"]) / 1000
        errors = {f"errno {job.get('first_error') or job['error']}": int(job.get("total_err") or 1)}
        return cls(
            name=str(job["jobname"]),
            seconds=seconds,
            of={name: _direction(job[name]) for name in DIRECTIONS},
            syncs=int(job["sync"]["total_ios"]),
            errors=errors if job["error"] or job.get("total_err") else {},
            cpu_s=(float(job["usr_cpu"]) + float(job["sys_cpu"])) / 100 * seconds,
            switches=int(job["ctx"]),
            faults=int(job["minf"]),
            major_faults=int(job["majf"]),
        )


@dataclass
class _Said:
    """All jobs together, and what they did until each of the times that fio told of."""

    of: dict[str, _Direction]
    by_job: list[tuple[Job, _Told]]
    from_ns: int
    to_ns: int
    states: list[tuple[int, dict[str, _Direction]]]

    @property
    def syncs(self) -> int:
        return sum(told.syncs for _, told in self.by_job)

    @property
    def errors(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for _, told in self.by_job:
            found.update(told.errors)
        return found

    def intervals(self) -> pl.DataFrame:
        """One row a direction and state, of what was done since the state before."""
        rows: list[dict[str, Any]] = []
        since, before = self.from_ns, {name: _Direction() for name in DIRECTIONS}
        for until, state in self.states:
            if until > since:
                rows += (
                    {
                        "start_ns": since,
                        "end_ns": until,
                        "warmup": False,
                        "operation": name,
                        "errors": 0,
                        **_row(state[name].since(before[name])),
                    }
                    for name in self.of
                )
                since = until
            before = state
        return pl.DataFrame(rows, schema=INTERVAL_COLUMNS)


@dataclass(frozen=True)
class _Report:
    """The states that fio wrote, the last of which is of its end."""

    version: str
    states: tuple[tuple[int, tuple[_Told, ...]], ...]

    @classmethod
    def read(cls, runner: Runner, phase: str) -> _Report:
        """Raises RunError where it is missing or damaged."""
        path = _output(runner, phase)
        try:
            return cls.parse(path.read_text())
        except FileNotFoundError:
            raise RunError(f"fio {phase} left no report: {_TOOL.last_words(runner, phase)}") from None

    @classmethod
    def parse(cls, text: str) -> _Report:
        """Several JSON documents, one after the other; lines between them are warnings."""
        states, at, version = [], text.find("{"), ""
        try:
            while at >= 0:
                document, end = json.JSONDecoder().raw_decode(text, at)
                version = str(document["fio version"]).removeprefix("fio-")
                jobs = tuple(_Told.of_json(job) for job in document["jobs"])
                states.append((int(document["timestamp_ms"]) * 1_000_000, jobs))
                at = text.find("{", end)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(f"fio's report is not as fio 3 writes it: {error!r}") from error
        if not states:
            raise RunError("fio's report is empty")
        return cls(version, tuple(states))

    def refuse_missing(self, jobs: Sequence[Job]) -> None:
        """Raise RunError where a job is not told of, or ended with an error that it was not told to go on after."""
        told = self.states[-1][1]
        if absent := list(fio_jobs.missing(jobs, [each.name for each in told])):
            raise RunError(f"fio's report says nothing of {counted(len(absent), 'job')}: {', '.join(absent)}")

    def measured(self, stages: Sequence[Sequence[Job]]) -> _Said:
        """What was measured. Raises RunError where figures contradict each other."""
        last = self.states[-1][1]
        totals = _summed(last)
        for name, each in totals.items():
            if each.bins and sum(each.bins.values()) != each.ios:
                raise RunError(f"fio's histogram has {sum(each.bins.values())} latencies, of {each.ios} {name}s")
        by_job = _by_job([job for stage in stages for job in stage], last)
        took = [max(job.delay + told.seconds for job, told in by_job if job in stage) for stage in stages]
        from_ns, to_ns = self._span(took, [_stage_of(job, stages) for job, _ in by_job])
        return _Said(
            of={name: totals[name] for name in DIRECTIONS if totals[name].ios},
            by_job=by_job,
            from_ns=from_ns,
            to_ns=to_ns,
            states=list(self._series(from_ns, to_ns)),
        )

    def _span(self, took: Sequence[float], stage_of: Sequence[int]) -> tuple[int, int]:
        """When the first job began and the last one ended: fio tells its end some time after that.

        `took` has the seconds of each stage, `stage_of` each job's.
        """
        last = self.states[-1][1]
        began: dict[int, int] = {}
        ended: dict[int, int] = {}
        for at, told in self.states[:-1]:
            for number, each in enumerate(told):
                left = last[number].seconds - each.seconds
                if left > 0 and each.seconds > 0 and any(one.ios for one in each.of.values()):
                    stage = stage_of[number]
                    began[stage] = at - round(each.seconds * 1e9)
                    ended[stage] = max(ended.get(stage, 0), at + round(left * 1e9))
        to_ns = self.states[-1][0]
        if ended:
            seen = max(ended)
            to_ns = min(to_ns, ended[seen] + round(sum(took[seen + 1 :]) * 1e9))
        from_ns = to_ns - round(sum(took) * 1e9)
        if len(took) > 1 and 0 in began:  # between stages fio does what is in nobody's time
            from_ns = min(from_ns, began[0])
        return from_ns, to_ns

    def _series(self, from_ns: int, to_ns: int) -> Iterator[tuple[int, dict[str, _Direction]]]:
        """The states of the measured part; a ramp is counted anew once it is over, and is none of it."""
        before = from_ns
        for at, told in self.states[:-1]:
            if before < at < to_ns:
                before = at
                yield at, _summed(told)
        yield to_ns, _summed(self.states[-1][1])


def _stage_of(job: Job, stages: Sequence[Sequence[Job]]) -> int:
    return next(number for number, stage in enumerate(stages) if job in stage)


def _by_job(jobs: Sequence[Job], told: Sequence[_Told]) -> list[tuple[Job, _Told]]:
    """Each job with what is told of it, instance by instance; those of one name come in their order."""
    left = list(told)
    found = []
    for job in jobs:
        for _ in range(job.instances):
            mine = next(each for each in left if each.name == job.name)
            left.remove(mine)
            found.append((job, mine))
    return found


def _direction(told: Mapping[str, Any]) -> _Direction:
    latencies = told["lat_ns"]
    bins = Counter({int(value): int(count) for value, count in latencies.get("bins", {}).items()})
    return _Direction(
        ios=int(told["total_ios"]),
        bytes=int(told["io_bytes"]),
        weighted_ns=float(latencies["mean"]) * sum(bins.values()),
        max_ns=float(latencies["max"]),
        bins=bins,
    )


def _summed(told: Sequence[_Told]) -> dict[str, _Direction]:
    found = {name: _Direction() for name in DIRECTIONS}
    for each in told:
        for name, direction in each.of.items():
            found[name].add(direction)
    return found


def _responses(said: _Said) -> Iterator[tuple[str, float]]:
    """Throughput in completed I/Os a second; quantiles of the histograms of all jobs."""
    seconds = (said.to_ns - said.from_ns) / 1e9
    if seconds <= 0:
        raise RunError("fio's report has no job that took any time")
    whole = _Direction()
    for each in said.of.values():
        whole.add(each)
    yield "elapsed", seconds
    yield "throughput", whole.ios / seconds
    yield "bandwidth", whole.bytes / seconds / _MIB
    yield from _latencies("", whole)
    for name, each in said.of.items():
        yield f"{name}.throughput", each.ios / seconds
        yield f"{name}.bandwidth", each.bytes / seconds / _MIB
        yield from _latencies(f"{name}.", each)
    for response, direction in (("reads", "read"), ("writes", "write")):
        done = said.of.get(direction, _Direction())
        yield response, done.ios / seconds
        if whole.ios:
            yield f"asked_{'read' if direction == 'read' else 'written'}_per_op", done.bytes / whole.ios
    yield "syncs", said.syncs / seconds
    if whole.ios:
        yield "cpu_per_op", sum(told.cpu_s for _, told in said.by_job) * 1e6 / whole.ios


def _latencies(prefix: str, of: _Direction) -> Iterator[tuple[str, float]]:
    mean = of.mean()
    if mean is None:
        return
    yield f"{prefix}latency_mean", mean / 1e6
    yield f"{prefix}latency_max", of.max_ns / 1e6
    for name, share in _QUANTILES.items():
        if (value := of.quantile(share)) is not None:
            yield f"{prefix}latency_{name}", min(value, of.max_ns) / 1e6


def _row(of: _Direction) -> dict[str, Any]:
    """Of an interval; its longest latency is that of its last bucket."""
    mean = of.mean()
    quantiles = {f"{name}_us": of.quantile(share) for name, share in _QUANTILES.items() if name in _SHOWN}
    found = {name: None if value is None else value / 1000 for name, value in quantiles.items()}
    longest = max(of.bins) / 1000 if of.bins else None
    return {"count": of.ios, "mean_us": None if mean is None else mean / 1000, **found, "max_us": longest}


def _status(said: _Said) -> Iterator[tuple[str, float]]:
    told = [each for _, each in said.by_job]
    yield "fio.jobs", float(len(told))
    yield "fio.context_switches", float(sum(each.switches for each in told))
    yield "fio.minor_faults", float(sum(each.faults for each in told))
    yield "fio.major_faults", float(sum(each.major_faults for each in told))


def _asked(job: Job) -> tuple[str, ...]:
    """The directions that a job goes in."""
    kind = job.get("rw", "read").partition(":")[0]
    if kind in ("rw", "readwrite", "randrw"):
        return ("read", "write")
    return tuple(name for name in DIRECTIONS if name in kind)


def _told(errors: Mapping[str, int]) -> str:
    return ", ".join(f"{kind}: {count}" for kind, count in errors.items()) or "fio says nothing of errors"


def _as_fio(value: str | int | float | bool) -> str:
    return ("1" if value else "0") if isinstance(value, bool) else str(value)


def _output(runner: Runner, phase: str) -> Path:
    return runner.folder / f"fio-{phase}.json"


def _program() -> str:
    return foreign.installed("fio", "fio")


@lru_cache(maxsize=256)
def _refused(program: str, jobs: str) -> str | None:
    """Why fio does not take a job file; None where it does. Asked once for each: a study has many cells of one."""
    answer = asking.ask([program, "--parse-only", "jobs.fio"], {"jobs.fio": jobs})
    return None if answer.status == 0 else gist(answer.complained) or "fio refuses it and does not say why"
