"""Crash: what a file system has of what it promised, after the power failed at points that nobody chose.

`dyno-core crash-write` writes to a file system upon a recorded disk and keeps what it was promised, and at which point
of the record. Then, as often as asked, a point is drawn, the disk is made as a power failure there would have left it,
the kernel recovers what is on it, and `dyno-core crash-judge` compares. `docs/crash.md` has the method and its limits.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dyno.hosts.recovery import CutDisk
from dyno.hosts.volumes import Until
from dyno.model.base import Frozen, RunError
from dyno.model.endpoint import Endpoint
from dyno.model.study import FileSystem
from dyno.model.units import PositiveDuration, Share, Size
from dyno.workloads.base import Measured, Runner, Workload


class CrashOptions(Frozen):
    """What is written, and how the power fails."""

    threads: Annotated[int, Field(ge=1, le=1024, description="that write at once, each to files of its own")] = 4
    duration: Annotated[PositiveDuration | None, Field(description="how long they write")] = None
    steps: Annotated[
        int | None, Field(ge=1, le=10**9, description="in place of a duration: how much they do, all together")
    ] = None
    files: Annotated[int, Field(ge=1, le=4096, description="that each thread has at the most")] = 32
    largest: Annotated[int, Field(ge=1, le=65536, description="how large a file becomes, in blocks of 4 KiB")] = 64
    unsynced: Annotated[
        Share, Field(le=1, description="of the steps, those with files that are never synced; and so of the files")
    ] = 0.4
    prefill: Annotated[
        Share,
        Field(le=0.95, description="of the free room, what is filled with data that are removed before all begins"),
    ] = 0.8
    cuts: Annotated[int, Field(ge=1, le=100_000, description="how often the power fails, at points of one recording")]
    cache: Annotated[Size, Field(ge=0, description="what the disk's cache holds of what was not flushed")] = 32 << 20
    cached: Annotated[
        Literal["any", "ordered", "none", "all"],
        Field(description="which of the cached writes are there afterwards: any of them, or the first ones"),
    ] = "any"
    sector: Annotated[Literal[512, 4096], Field(description="what the disk writes whole or not at all, in bytes")] = 512
    check: Annotated[bool, Field(description="whether the file system's own program looks at each")] = True

    @model_validator(mode="after")
    def _something_ends_it(self) -> CrashOptions:
        if (self.duration is None) == (self.steps is None):
            raise ValueError("what ends the writing? Give duration, or steps")
        return self


@dataclass
class _Found:
    """What was found in all cuts together."""

    cuts: int = 0
    with_loss: int = 0
    unmountable: int = 0
    inconsistent: int = 0
    recovery_s: list[float] = field(default_factory=list)
    judged: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def add(self, judged: Mapping[str, Any]) -> None:
        """What the judge says of one cut."""
        self.with_loss += judged["syncs_lost"] > 0
        unpromised = {f"unpromised.{name}": value for name, value in judged["unpromised"].items()}
        for name, value in {**judged, **unpromised}.items():
            if isinstance(value, int) and name != "point":
                self.judged[name] += value


_RESPONSES = {
    "syncs_checked": "syncs_checked",
    "syncs_lost": "syncs_lost",
    "files": "files_checked",
    "files_stale": "files_stale",
    "files_exposing_removed": "files_exposing_removed",
    "files_garbage": "files_garbage",
    "unpromised.replacements_broken": "replacements_broken",
}
"""By what the judge calls them."""


class CrashWorkload(Workload[CrashOptions]):
    """One recording, many cuts."""

    kind = "crash"
    Options = CrashOptions
    backends = frozenset({"recorded-files"})

    def clients(self) -> int:
        """The threads."""
        return self.options.threads

    def expected_seconds(self) -> float | None:
        """While it writes, and about a second a cut."""
        return None if self.options.duration is None else self.options.duration + self.options.cuts

    def drive(self, runner: Runner, endpoint: Endpoint, seed: int) -> Measured:
        """Write, then cut."""
        until = Until.within(runner.limit, runner.logs / "cuts")
        history = runner.folder / "history"
        wrote, complete = self._write(runner, endpoint, seed, history)
        seconds = wrote["elapsed_ns"] / 1e9
        operations = sum(wrote["operations"].values())
        responses = {"throughput": operations / seconds, "elapsed": seconds}
        if wrote["syncs"]:
            responses["sync.latency_mean"] = wrote["sync_ns"] / wrote["syncs"] / 1e6
        if not complete:
            return Measured(complete=False, responses=responses)
        found = self._cut(runner, endpoint, seed, wrote, history, until)
        if found.cuts < self.options.cuts:
            return Measured(complete=False, responses=responses)
        responses |= {response: float(found.judged[name]) for name, response in _RESPONSES.items()}
        responses |= {
            "cuts_with_loss": found.with_loss / found.cuts,
            "unmountable": float(found.unmountable),
        }
        if self.options.check:
            responses["inconsistent"] = float(found.inconsistent)
        if found.recovery_s:
            responses["recovery_time"] = sum(found.recovery_s) / len(found.recovery_s) * 1e3
        status = {f"crash.{name}": float(value) for name, value in found.judged.items() if name not in _RESPONSES}
        status |= {f"crash.operations.{name}": float(value) for name, value in wrote["operations"].items()}
        status |= {"crash.records": float(wrote["ended_point"] - wrote["began_point"])}
        return Measured(
            complete=True,
            responses=responses,
            status=status,
            loop="closed",
            notes=tuple(_notes(found)),
            ended_by="duration" if self.options.steps is None else "operations",
        )

    def _write(self, runner: Runner, endpoint: Endpoint, seed: int, history: Path) -> tuple[dict[str, Any], bool]:
        options = self.options
        runner.folder.mkdir(parents=True, exist_ok=True)
        words = [runner.core, "crash-write", "--stop-on-stdin-eof", "--folder", endpoint.settings["folder"]]
        words += ["--point", endpoint.settings["point"], "--history", str(history), "--seed", str(seed)]
        words += ["--threads", str(options.threads), "--files", str(options.files), "--largest", str(options.largest)]
        words += ["--loose", str(round(options.unsynced * 100)), "--prefill", str(round(options.prefill * 100))]
        words += ["--seconds", str(options.duration)] if options.steps is None else ["--steps", str(options.steps)]
        status = runner.execute(words, kept_as="crash-write")
        if status not in (0, 3):
            raise RunError(f"dyno-core crash-write ended with status {status}: {runner.complaint or 'it said nothing'}")
        said = _said((runner.logs / "crash-write.stdout").read_text(), "crash-write")
        if said["ended_point"] <= said["began_point"]:
            raise RunError("nothing was written to the disk while the threads wrote: there is nothing to cut")
        return said, status == 0

    def _cut(
        self,
        runner: Runner,
        endpoint: Endpoint,
        seed: int,
        wrote: Mapping[str, Any],
        history: Path,
        until: Until,
    ) -> _Found:
        at, volumes = endpoint.settings, runner.host.volumes
        spec = FileSystem.model_validate({**at["spec"], "direct_io": False})
        chance, found = random.Random(seed), _Found()
        # Two file systems of one identity cannot be mounted at once.
        volumes.unmount(Path(at["folder"]))
        volumes.see_released(Path(at["device"]), until)
        with CutDisk(runner.host, spec, runner.folder) as disk:
            for number in range(self.options.cuts):
                if runner.interrupted:
                    break
                point = chance.randint(wrote["began_point"] + 1, wrote["ended_point"])
                until.look(f"writing, and {number} of {self.options.cuts} cuts,")
                self._fail_once(runner, endpoint, disk, found, (point, seed + number), history, until)
        volumes.mount(spec, Path(at["device"]), Path(at["folder"]), until)
        (runner.logs / "cuts.txt").write_text("".join(f"{line}\n" for line in found.examples))
        return found

    def _fail_once(
        self,
        runner: Runner,
        endpoint: Endpoint,
        disk: CutDisk,
        found: _Found,
        cut: tuple[int, int],
        history: Path,
        until: Until,
    ) -> None:
        options, (point, seed) = self.options, cut
        core, host = runner.core, runner.host
        words = ["--point", str(point), "--seed", str(seed), "--mode", options.cached, "--sector", str(options.sector)]
        words += ["--cache", str(options.cache), "--log", endpoint.settings["log"], "--out", str(disk.image)]
        host.run([core, "cut-power", *words], limit=until.left, log=until.log)
        recovered = disk.recover(until)
        at = [] if recovered.seconds is None else ["--folder", str(disk.folder)]
        judge = [core, "crash-judge", "--history", str(history), "--point", str(point), *at]
        judged = _said(host.run(judge, limit=until.left, log=until.log.with_name("judged")), "crash-judge")
        disk.let_go(until)
        consistent = not options.check or disk.is_consistent(until)
        found.cuts += 1
        found.add(judged)
        found.inconsistent += not consistent
        if recovered.seconds is None:
            found.unmountable += 1
            found.examples.append(f"{point} {seed}: {recovered.why}")
        else:
            found.recovery_s.append(recovered.seconds)
        found.examples += [f"{point} {seed}: {words}" for words in judged["examples"]]
        if judged["impossible"] and consistent and recovered.seconds is not None:
            # Of a damaged file system anything may be read; of a sound one this can only be dyno's own mistake.
            raise RunError(f"the judge found what cannot be, after a cut at {point}: {judged['impossible'][0]}")


def _said(text: str, program: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text.splitlines()[-1]))
    except (ValueError, IndexError) as error:
        raise RunError(f"dyno-core {program} did not say what it found: {error}") from error


def _notes(found: _Found) -> list[str]:
    """Hanley and Lippman-Hand, If Nothing Goes Wrong, Is Everything All Right? JAMA 249 (1983), 1743-1745."""
    if found.with_loss:
        return []
    return [
        f"No acknowledged sync was lost in {found.cuts} power cuts of a run: with 95 % confidence fewer than "
        f"{min(300 / found.cuts, 100.0):.3g} % of such cuts lose one (the rule of three)."
    ]
