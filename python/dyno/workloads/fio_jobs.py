"""Job files of fio as users have them: read as fio reads them, and written again with what a study sets.

A job may do nothing outside the folder that it is given: what would is refused, by file, line and key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

ENGINES = frozenset(
    (
        *("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "splice"),
        *("libaio", "posixaio", "io_uring"),
        *("falloc", "ftruncate", "filecreate", "filestat", "filedelete"),
        *("null", "cpuio"),
    )
)
"""Those of fio's I/O engines that work on files, or on nothing."""

_SAME = {
    "blocksize": "bs",
    "readwrite": "rw",
    "timeout": "runtime",
    "wait_for_previous": "stonewall",
    "start_delay": "startdelay",
    "file_size": "filesize",
    "blocksize_range": "bsrange",
    "block_size": "bs",
}
"""Other names of options, as fio(1) has them."""

_REFUSED = {
    "exec_prerun": "it would run a command; what has to be done before belongs into the study",
    "exec_postrun": "it would run a command; what has to be done after belongs into the study",
    "ioscheduler": "it would change the machine, and nothing would put it back",
    "cgroup": "it would make control groups; host.machine limits what may be used",
    "cgroup_weight": "it would make control groups; host.machine limits what may be used",
    "cgroup_nodelete": "it would leave control groups behind; host.machine limits what may be used",
    "zonemode": "it is of zoned block devices, and this is a folder",
    "include": "what a job file includes is not kept with the results; put it into one file",
    "read_iolog": "what it replays is not kept with the results, and names files of its own",
    "write_iolog": "it would write outside the folder",
    "opendir": "its files are those of another folder; leave it out, or name them with filename",
}
_OURS = {
    "directory": "the folder is that of the system",
    "group_reporting": "each job is told of by itself",
    "unified_rw_reporting": "reads and writes are told apart",
    "write_bw_log": "dyno keeps the time series",
    "write_lat_log": "dyno keeps the time series",
    "write_iops_log": "dyno keeps the time series",
    "write_hist_log": "dyno keeps the histograms",
    "lat_percentiles": "latencies count from when an I/O was asked for",
    "clat_percentiles": "latencies count from when an I/O was asked for",
    "slat_percentiles": "latencies count from when an I/O was asked for",
    "percentile_list": "dyno makes them of the histograms",
    "aux-path": "dyno says where files of fio's own go",
}
"""Options of a job that are left out, and why."""

_SECTION = re.compile(r"\[(.*)\]")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")
_OPTION = re.compile(r"[A-Za-z0-9_-]+")
_OUTSIDE = re.compile(r"(^|[:,])\s*/|(^|[/:,])\s*\.\.\s*([/:,]|$)")
_TIME = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(us|ms|s|m|h|d)?")
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = re.compile(r"([0-9]+)\s*([kmgtp]?)(?:i?b)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_FREE_TEXT = frozenset({"description"})


class JobFileError(ValueError):
    """What is wrong with a job file: where, and what would be right."""


@dataclass(frozen=True)
class Setting:
    """A value with the line that it stands on; 0 where the study gave it."""

    value: str
    line: int


@dataclass(frozen=True)
class Job:
    """A job section with all that holds for it, those of `[global]` before it included."""

    name: str
    line: int
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def get(self, key: str, default: str = "") -> str:
        """An option's value."""
        found = self.settings.get(key)
        return default if found is None else found.value

    def is_set(self, key: str) -> bool:
        """Whether an option without a value, or with one, is on."""
        return key in self.settings and self.settings[key].value not in ("0", "false")

    @property
    def instances(self) -> int:
        """How many of it run at once."""
        return int(self.get("numjobs", "1"))

    @property
    def waits(self) -> bool:
        """Whether it begins only when the jobs before it have ended."""
        return self.is_set("stonewall")

    @property
    def runtime(self) -> float | None:
        """Seconds that it may run for; None where its size alone ends it."""
        return seconds(self.get("runtime")) if self.is_set("runtime") else None

    @property
    def lasts(self) -> bool:
        """Whether it runs for all of that time, whatever its size."""
        return self.runtime is not None and self.is_set("time_based")

    @property
    def delay(self) -> float:
        """Seconds until it begins, its ramp left out."""
        return seconds(self.get("startdelay").partition("-")[2] or self.get("startdelay")) or 0.0

    @property
    def ramp(self) -> float:
        """Seconds that count for nothing at its beginning."""
        return seconds(self.get("ramp_time")) or 0.0

    def rates(self) -> dict[str, tuple[float, str]]:
        """What it is held to, by direction: so much a second, of I/Os or of bytes."""
        found = {}
        for key, unit in (("rate_iops", "I/Os"), ("rate", "bytes")):
            parts = self.get(key).split(",") if key in self.settings else []
            for number, direction in enumerate(("read", "write", "trim")):
                part = parts[min(number, len(parts) - 1)].strip() if parts else ""
                if part and (amount := size(part)):
                    found[direction] = (float(amount), unit)
        return found


def parse(text: str, name: str, variables: Mapping[str, str] | None = None) -> list[Job]:
    """The jobs of a file, in their order. Raises JobFileError.

    `variables` are put in for `${NAME}`, which fio takes from its environment.
    """
    shared: dict[str, Setting] = {}
    jobs: list[Job] = []
    into: dict[str, Setting] | None = None
    for line, written in enumerate(text.splitlines(), 1):
        said = _without_comment(written).strip()
        if not said:
            continue
        if said.startswith("["):
            found = _SECTION.fullmatch(said)
            if found is None or not found[1].strip():
                raise JobFileError(f"{name}:{line}: {said!r} is no section; write [name]")
            section = found[1].strip()
            if why := _refusal_of_name(section):
                raise JobFileError(f"{name}:{line}: [{section}]: {why}")
            if section == "global":
                into = shared
            else:
                into = dict(shared)
                jobs.append(Job(section, line, into))
            continue
        key, _, value = (part.strip() for part in said.partition("="))
        key = _SAME.get(key, key)
        if said.split()[0] == "include":
            raise JobFileError(f"{name}:{line}: include: {_REFUSED['include']}")
        if into is None:
            raise JobFileError(f"{name}:{line}: {key}: stands before any section; write [global] or [a name] above it")
        into[key] = Setting(_put_in(value, variables or {}, f"{name}:{line}: {key}") if "=" in said else "1", line)
    if not jobs:
        raise JobFileError(f"{name}:1: has no job; write a section such as [random-read] with rw=randread")
    for job in jobs:
        for key, setting in job.settings.items():
            if why := _refusal(key, setting.value):
                raise JobFileError(f"{name}:{setting.line}: {key}: {why}")
    return jobs


def given(jobs: Sequence[Job], options: Mapping[str, str]) -> list[Job]:
    """The jobs with options that a study sets in each of them. Raises JobFileError, naming the option."""
    for key, value in options.items():
        if key in _OURS:
            raise JobFileError(f"{key}: {_OURS[key]}; leave it out")
        if why := _refusal(_SAME.get(key, key), value):
            raise JobFileError(f"{key}: {why}")
    more = {_SAME.get(key, key): Setting(value, 0) for key, value in options.items()}
    return [replace(job, settings={**job.settings, **more}) for job in jobs]


def left_out(jobs: Sequence[Job]) -> list[str]:
    """The options of these jobs that are left out."""
    return [key for key in _OURS if any(key in job.settings for job in jobs)]


def written(jobs: Sequence[Job], seed: int) -> str:
    """The job file that fio is given: each section with all that holds for it, and what is dyno's to say.

    But for the folder, whose name may have what in a job file begins a comment.
    """
    lines = []
    for job in jobs:
        kept = {key: setting.value for key, setting in job.settings.items() if key not in _OURS}
        ours = {"lat_percentiles": "1", "clat_percentiles": "0"}
        chosen = {} if "randseed" in kept else {"randseed": str(seed % 2**63)}
        lines += [f"[{job.name}]", *(f"{key}={value}" for key, value in {**kept, **ours, **chosen}.items()), ""]
    return "\n".join(lines)


def stages(jobs: Sequence[Job]) -> list[list[Job]]:
    """The jobs that run together, one after the other."""
    found: list[list[Job]] = []
    for job in jobs:
        if job.waits or not found:
            found.append([])
        found[-1].append(job)
    return found


def seconds(text: str) -> float | None:
    """Of a time of fio's, whose unit is the second where none is named; None for what is none."""
    found = _TIME.fullmatch(text.strip())
    return float(found[1]) * _SECONDS[found[2] or "s"] if found else None


def size(text: str) -> int | None:
    """Of a size of fio's (kb_base=1024); None for what is none, such as a share."""
    found = _SIZE.fullmatch(text.strip())
    return int(found[1]) * 1024 ** _POWERS[found[2].lower()] if found else None


def _without_comment(line: str) -> str:
    return re.split("[;#]", line, maxsplit=1)[0]  # wherever it stands, quoted or not: fio's init.c


def _put_in(value: str, variables: Mapping[str, str], where: str) -> str:
    def one(found: re.Match[str]) -> str:
        if found[1] not in variables:
            there = ", ".join(variables) or "none"
            raise JobFileError(f"{where}: ${{{found[1]}}} has no value; give it under variables (there: {there})")
        return variables[found[1]]

    return _VARIABLE.sub(one, value)


def _refusal(key: str, value: str) -> str | None:
    """Why a job may not have an option; None where it may."""
    # As fio reads what is written: all that begins a line, a comment or a variable there is no part of a value.
    if not _OPTION.fullmatch(key):
        return "is no name of an option of fio's"
    if not value.isprintable():
        return f"{value!r} has a control character: a value is on one line"
    if re.search(r"[;#]|\$\{", value):
        return f"{value!r} has what begins a comment (; or #) or a variable (${{) in a job file; leave it out"
    if key in _OURS:
        return None
    if key in _REFUSED:
        return _REFUSED[key]
    if key == "ioengine" and value not in ENGINES:
        return f"{value} is no engine for files; those are {', '.join(sorted(ENGINES))}"
    if key not in _FREE_TEXT and _OUTSIDE.search(value):
        return f"{value} leads out of the folder that the job is given; name files without a path"
    if key == "name" and (why := _refusal_of_name(value.strip())):
        return why
    if key == "numjobs" and not (value.isdigit() and 1 <= int(value) <= 4096):
        return f"should be a number of jobs from 1 to 4096, not {value!r}"
    if key in ("runtime", "startdelay", "ramp_time") and not _is_time(key, value):
        return f"should be a time such as 30 or 500ms, not {value!r}"
    return None


def _refusal_of_name(name: str) -> str | None:
    """Why a job may not be called so; None where it may: files that have no name of their own are called after it."""
    if not name.isprintable():
        return f"{name!r} has a control character: a name is on one line"
    if "/" in name or not name.strip(".") or _OUTSIDE.search(name):
        return "its files would lie out of the folder that the job is given; write a name without / or .."
    return None


def _is_time(key: str, value: str) -> bool:
    parts = value.split("-") if key == "startdelay" else [value]
    return all(seconds(part) is not None for part in parts)


def missing(jobs: Sequence[Job], told: Sequence[str]) -> Iterator[str]:
    """The names of jobs that are not told of as often as they ran."""
    names = list(told)
    for job in jobs:
        for _ in range(job.instances):
            if job.name in names:
                names.remove(job.name)
            else:
                yield job.name
