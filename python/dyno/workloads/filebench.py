"""filebench's workload files, carried out by `dyno-core files`: a built-in one, or one that lies beside the study file.

`docs/workload-files.md` tells of the language. A file is checked when the study is, by the engine itself, where it is
there: what is wrong is told with the file's own line and column. All that a workload does has to lie below its variable
`$dir`, which is set to the folder of the system.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from dyno.hosts import asking
from dyno.hosts.local import core_binary
from dyno.model.base import Frozen, RunError, UserError
from dyno.model.endpoint import Endpoint
from dyno.model.units import Duration, PositiveDuration, Share
from dyno.workloads import beside, core
from dyno.workloads.base import Measured, Runner, Workload

_PROGRAM = "dyno-core files"
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_NUMBERED = re.compile(r"(.*[^-_0-9])[-_]?[0-9]+")
_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
FOLDER = "dir"
"""The variable that has the folder in which all of a workload's files are."""

_READ = frozenset({"read", "readwholefile"})
_WRITE = frozenset({"write", "writewholefile", "appendfile", "appendfilerand", "aiowrite"})
_LOADED = re.compile(r"[A-Za-z0-9_-]+")
_LOAD = re.compile(rf'\bload\s+"?({_LOADED.pattern})')
"""Also what only looks like it, in a comment: one file more that is kept does no harm."""
_ANY_FOLDER = "/dyno"  # to see, before there is a folder, that nothing lies outside of it
_MIB = 2**20


class FilebenchOptions(Frozen):
    """A workload file, and what is set in it."""

    set: Annotated[
        dict[str, str | int | bool],
        Field(description="variables without their $: values in place of those that the file sets first"),
    ] = {}
    duration: Annotated[
        PositiveDuration | None, Field(description="of the measured part; as long as the file runs if left out")
    ] = None
    compat: Annotated[bool, Field(description="as filebench does it, faults included: see docs/workload-files.md")] = (
        False
    )
    verify: Annotated[bool, Field(description="each block carries its identity, and what is read is checked")] = False
    allow_system: Annotated[bool, Field(description="whether commands that the file has for a shell are run")] = False
    interval: Annotated[
        Duration, Field(ge=0.01, le=60, description="of the time series that are kept beside a run's figures")
    ] = 1.0
    max_errors: Annotated[
        Share, Field(le=1, description="share of operations that may fail before the run is invalid")
    ] = 0.0
    text: Annotated[str | None, Field(max_length=2**20, description="instead of a file: what would stand in it")] = None
    file: Annotated[
        str | None,
        Field(
            validate_default=True,
            description="the name of a built-in one (`dyno-core files --list`), or a path from the study file: mine.f",
        ),
    ] = None

    loads: Annotated[
        dict[str, Annotated[str, Field(max_length=2**20)]],
        Field(description="instead of files: by name, what the workloads that it loads would be"),
    ] = {}

    @model_validator(mode="before")
    @classmethod
    def _has_its_text(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, Mapping) or not info.context or beside.FOLDER not in info.context:
            return given
        beside.one_of_both(given)
        if not _is_path(given.get("file")):
            return given
        read = beside.with_text(given, info)
        return {**read, "loads": {**_loaded(Path(info.context[beside.FOLDER]), read), **given.get("loads", {})}}

    @field_validator("set")
    @classmethod
    def _names_variables(cls, value: dict[str, str | int | bool]) -> dict[str, str | int | bool]:
        for name in value:
            if name == FOLDER:
                raise ValueError(f"{FOLDER} is the folder of the system, which dyno sets: leave it out")
            if not _VARIABLE.fullmatch(name):
                raise ValueError(f"{name!r} is no name of a variable; write it without its $, such as nthreads")
        return value

    @field_validator("loads")
    @classmethod
    def _are_names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not _LOADED.fullmatch(name):
                raise ValueError(f"{name!r} is no name that a workload file can load")
        return value

    @model_validator(mode="after")
    def _loads_no_namesake(self) -> FilebenchOptions:
        if self.file is not None and (stem := PurePosixPath(self.file).stem) in self.loads:
            raise ValueError(f"loads.{stem} has the name of the workload itself: call one of them otherwise")
        return self

    @field_validator("file")
    @classmethod
    def _is_there(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is None and info.data.get("text") is None:
            raise ValueError("give file, the name of a built-in workload or the path of one, or text")
        if value is not None and not _is_path(value) and not _NAME.fullmatch(value):
            raise ValueError(f"{value!r} is neither a name such as webserver nor a path such as workloads/mine.f")
        return value

    def variables(self) -> tuple[tuple[str, str], ...]:
        """As the engine takes them."""
        return tuple(
            (name, str(each).lower() if isinstance(each, bool) else str(each)) for name, each in self.set.items()
        )


@dataclass(frozen=True)
class Explained:
    """What the engine says will run; `wrong` what it has against it, and `about` the option that this is of."""

    told: Mapping[str, Any]
    wrong: str = ""
    about: str = "file"


class FilebenchWorkload(Workload[FilebenchOptions]):
    """`dyno-core files`, once to make the files and once to run on them."""

    kind = "filebench"
    Options = FilebenchOptions
    backends = frozenset({"files"})
    populates = True

    def __init__(self, options: FilebenchOptions) -> None:
        super().__init__(options)
        self._created: dict[str, float] = {}

    def misfits(self) -> Iterator[tuple[str, str]]:
        """As the engine finds it; nothing where there is no engine to ask."""
        explained = self._explained()
        if explained is not None and explained.wrong:
            yield explained.about, explained.wrong

    def clients(self) -> int:
        """Each thread waits for its own calls."""
        return int(self._told("thread_count", 1))

    def data_bytes(self) -> int:
        """They are made by each run; this is the room that they take then."""
        return int(self._told("bytes_at_most", 0))

    def expected_seconds(self) -> float | None:
        """As given, or as long as the file runs."""
        seconds = self.options.duration or self._told("seconds", None)
        return None if seconds is None else float(seconds)

    def populate(self, runner: Runner, endpoint: Endpoint, seed: int) -> None:
        """Make the filesets."""
        result = self._carry_out(runner, endpoint, seed, "create")
        if result["outcome"] != "ok":
            raise RunError(f"the files were not made: {_why(result)}")
        self._created = dict(_creation(result["creation"]))

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Run on what was made."""
        result = self._carry_out(runner, endpoint, seed, "run")
        out = runner.folder / "run"
        told = core.told(result, {}, out)
        measured = replace(
            told,
            responses={**_of_flowops(told.responses, result), **_asked(result), **self._created},
            status={**told.status, **dict(_status(result))},
            notes=(*told.notes, *self._notes(result)),
            written=dict(_each(result, _WRITE)),
            read=dict(_each(result, _READ)),
        )
        first = core.keep(runner, [out])
        return core.accept(runner, result, measured, max_errors=self.options.max_errors, first=first)

    def _carry_out(self, runner: Runner, endpoint: Endpoint, seed: int, phase: str) -> dict[str, Any]:
        runner.folder.mkdir(parents=True, exist_ok=True)
        runner.logs.mkdir(parents=True, exist_ok=True)
        out = runner.folder / phase
        words = [
            *self._words(runner.core, runner.logs, str(endpoint.settings["folder"])),
            *("--phase", phase, "--seed", str(seed), "--out", str(out)),
            *("--interval-ms", str(round(self.options.interval * 1000))),
            *("--format", "json", "--progress", "--stop-on-stdin-eof"),
        ]
        (result,) = core.collect(runner, [words], [out], _PROGRAM)
        return result

    def _words(self, program: str, folder_of_text: Path, folder: str) -> list[str]:
        """What is to run; a text is kept there, so that a run that failed can be tried again by hand."""
        given = self.options
        name = given.file or "text.f"
        if given.text is not None:
            path = folder_of_text / PurePosixPath(name).name
            path.write_text(given.text)
            for loaded, text in given.loads.items():
                path.with_name(f"{loaded}.f").write_text(text)
            name = str(path)
        return _words(program, name, (*given.variables(), (FOLDER, folder)), given)

    def _explained(self) -> Explained | None:
        try:
            program = core_binary()
        except UserError:
            return None  # a study can be checked where it could never run
        given = self.options
        name = PurePosixPath(given.file or "text.f").name
        words = _words(program, name, (*given.variables(), (FOLDER, _ANY_FOLDER)), given)
        texts = (
            {}
            if given.text is None
            else {**{f"{each}.f": text for each, text in given.loads.items()}, name: given.text}
        )
        return _explain(tuple(words), name, tuple(texts.items()), tuple(given.set))

    def _told(self, key: str, otherwise: Any) -> Any:
        explained = self._explained()
        return otherwise if explained is None or explained.wrong else explained.told.get(key, otherwise)

    def _notes(self, result: Mapping[str, Any]) -> Iterator[str]:
        if alike := _alike(result["operations"]):
            spans = ", ".join(f"{names[0]} to {names[-1]}" for names in alike.values())
            yield (
                f"Flowops that a number alone tells apart ({spans}) are told of together, by their "
                "throughput, mean and longest latency; the time series of a run has each."
            )
        if rate := self._told("rate", None):
            yield f"The workload is held to {rate} events a second, so its throughput is not the file system's alone."
        if self.options.compat:
            yield "The workload was run as filebench does it (compat), faults included."
        if self.options.verify:
            yield "What was read was checked block by block (verify), which costs CPU time."


def _words(program: str, name: str, variables: Sequence[tuple[str, str]], given: FilebenchOptions) -> list[str]:
    words = [program, "files", name]
    for variable, value in variables:
        words += ["--set", f"{variable}={value}"]
    if given.duration is not None:
        words += ["--seconds", f"{given.duration:g}"]
    flags = {"--compat": given.compat, "--verify": given.verify, "--allow-system": given.allow_system}
    return words + [flag for flag, is_set in flags.items() if is_set]


@lru_cache(maxsize=256)
def _explain(
    words: tuple[str, ...], name: str, texts: tuple[tuple[str, str], ...], names: tuple[str, ...]
) -> Explained:
    """Asked once for each set of options: a study has many cells of one. `texts` are of the files, by their names."""
    files = dict(texts)
    answer = asking.ask([*words, "--check"], files)
    if answer.status == 0:
        answer = asking.ask([*words, "--explain", "--format", "json"], files)
    if answer.status != 0:
        complaint = next((line for line in answer.complained.splitlines() if line.strip()), "it said nothing")
        about = next((f"set.{each}" for each in names if re.search(rf"(\$|--set ){each}\b", complaint)), "file")
        return Explained({}, complaint.removeprefix("dyno-core: "), about)
    try:
        told = json.loads(answer.said)
    except ValueError as error:
        raise RunError(f"{_PROGRAM} --explain cannot be read: {error}") from error
    if told["system"] and "--allow-system" not in words:
        why = f"{name} has a command for a shell, `{told['system'][0]}`, which is run with allow_system: true alone"
        return Explained(told, why, "allow_system")
    for fileset in told["filesets"]:
        path = PurePosixPath(fileset["path"])
        if ".." in path.parts or not path.is_relative_to(_ANY_FOLDER):
            why = f"fileset {fileset['name']} is made in {path}, which no system has: write path=$dir, and set $dir=..."
            return Explained(told, f"{name}: {why}")
    return Explained(told)


def _loaded(folder: Path, given: Mapping[str, Any]) -> dict[str, str]:
    """What stands in the files that a workload file loads, and they in turn, where they are beside it.

    One that is not there may be built in; if it is not, the engine says so. Raises ValueError where one cannot be read.
    """
    beside_it = PurePosixPath(given["file"]).parent
    found: dict[str, str] = {}
    texts = [given["text"]]
    while texts:
        for name in _LOAD.findall(texts.pop()):
            path = beside_it / f"{name}.f"
            if name not in found and path != PurePosixPath(given["file"]) and (folder / path).is_file():
                found[name] = beside.read(folder, str(path))
                texts.append(found[name])
    return found


def _is_path(file: object) -> bool:
    return isinstance(file, str) and (file.endswith(".f") or "/" in file)


def _why(result: Mapping[str, Any]) -> str:
    error = result["error"]
    return "it was cut short" if error is None else f"{error['kind']}: {error['message']}"


def _creation(told: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    seconds = (told["ended_ns"] - told["started_ns"]) / 1e9
    yield "creation", seconds
    if seconds > 0:
        yield "creation_rate", told["files"] / seconds
        yield "creation_bandwidth", told["bytes"] / seconds / _MIB


def _asked(result: Mapping[str, Any]) -> dict[str, float]:
    """What the operations asked for, be it answered by a cache or by the device."""
    io, seconds, count = result["io"], result["elapsed_s"], result["total"]["count"]
    found = {"operations": float(count)}
    if seconds > 0:
        moved = io["bytes_read"] + io["bytes_written"]
        found |= {name: io[name] / seconds for name in ("reads", "writes", "syncs")}
        found["bandwidth"] = moved / seconds / _MIB
    if count:
        found["asked_read_per_op"] = io["bytes_read"] / count
        found["asked_written_per_op"] = io["bytes_written"] / count
    return found


def _of_flowops(responses: Mapping[str, float], result: Mapping[str, Any]) -> dict[str, float]:
    """With those of flowops that a number alone tells apart put together, as far as that can be done exactly.

    A web server that reads ten pages has ten flowops to read one: nobody asks which of them was slow.
    """
    alike = _alike(result["operations"])
    one_by_one = tuple(f"{name}." for names in alike.values() for name in names)
    found = {name: value for name, value in responses.items() if not name.startswith(one_by_one)}
    for base, names in alike.items():
        each = [result["operations"][name] for name in names]
        found[f"{base}.throughput"] = sum(one["throughput_per_s"] for one in each)
        timed = [one for one in each if one["latency_us"] is not None]
        if timed:
            total = sum(one["count"] for one in timed)
            weighted = sum(one["latency_us"]["mean"] * one["count"] for one in timed)
            found[f"{base}.latency_mean"] = weighted / total / 1000
            found[f"{base}.latency_max"] = max(one["latency_us"]["max"] for one in timed) / 1000
    return found


def _alike(operations: Mapping[str, Any]) -> dict[str, list[str]]:
    """`read` to read-1, read-2, ..., where there are several, and none that is called so itself."""
    found: dict[str, list[str]] = {}
    for name in operations:
        if numbered := _NUMBERED.fullmatch(name):
            found.setdefault(numbered[1], []).append(name)
    several = {base: names for base, names in found.items() if len(names) > 1 and base not in operations}
    return {base: sorted(names, key=lambda name: (len(name), name)) for base, names in several.items()}


def _each(result: Mapping[str, Any], kinds: frozenset[str]) -> Iterator[tuple[str, float]]:
    """Bytes for one operation of each kind, 0 of those that ask for none."""
    for name, of_flowop in result["operations"].items():
        count = of_flowop["count"]
        yield name, of_flowop["bytes"] / count if count and of_flowop["type"] in kinds else 0.0


def _status(result: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in result["io"].items():
        yield f"io.{name}", float(value)
