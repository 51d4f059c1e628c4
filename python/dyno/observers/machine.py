"""The machine observer: what sysstat shows of the machine, of processes and of control groups, by `dyno-core watch`."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Annotated, Any, Literal

import polars as pl
from pydantic import Field, model_validator

from dyno.hosts import LocalHost, Process
from dyno.model.base import Frozen, RunError
from dyno.model.usage import USER_HZ, cpu_time_used
from dyno.observers.base import SAMPLE_COLUMNS, Observer

Group = Literal["cpu", "per_cpu", "memory", "paging", "disk", "network", "pressure", "scheduler"]
Names = Annotated[tuple[str, ...], Field(min_length=1)]


class MachineOptions(Frozen):
    """How often it looks, and at what. Where nothing is said, that is left to `dyno-core watch`."""

    hz: Annotated[float, Field(ge=1, le=100, description="samples a second")] = 1.0
    groups: Annotated[
        tuple[Group, ...] | None,
        Field(
            description="what of the machine: cpu, per_cpu, memory, paging, disk, network, pressure, scheduler; "
            "all but per_cpu if left out"
        ),
    ] = None
    disks: Annotated[Names | None, Field(description="block devices; all whole disks in use if left out")] = None
    interfaces: Annotated[Names | None, Field(description="network interfaces; all in use if left out")] = None
    tree: Annotated[bool, Field(description="processes with their children, and theirs")] = False
    cgroups: Annotated[bool, Field(description="also the control groups that the processes are in")] = False

    @model_validator(mode="after")
    def _devices_are_watched(self) -> MachineOptions:
        for key, group in (("disks", "disk"), ("interfaces", "network")):
            if getattr(self, key) is not None and self.groups is not None and group not in self.groups:
                raise ValueError(f"{key} are named and not watched; add {group} to groups")
        return self


class MachineObserver(Observer[MachineOptions]):
    """One sampler process; the processes to watch are told to it as they appear."""

    kind = "machine"
    Options = MachineOptions

    def __init__(self, options: MachineOptions, host: LocalHost, core: str, folder: Path, logs: Path) -> None:
        super().__init__(options, host, core, folder, logs)
        self._process: Process | None = None
        self._cpus = os.cpu_count()

    def start(self, limit: float) -> None:
        """Start the sampler and wait for its word that the first reading was taken."""
        self.folder.mkdir(parents=True, exist_ok=True)
        job = self.folder / "watch.json"
        job.write_text(json.dumps(self._job()))
        argv = [self.core, "watch", "--job", str(job), "--out", str(self._samples), "--stop-on-stdin-eof"]
        self._process = self.host.start(argv, log=self.logs / "watch", lines=True)
        deadline = time.monotonic() + limit
        while (left := deadline - time.monotonic()) > 0:
            for line in self._process.lines(left):
                if "ready" in line:
                    return
            if self._process.wait(0) is not None:
                raise RunError(f"dyno-core watch ended at once: {self._process.complaint()}")
        self._process.kill()
        raise RunError(f"dyno-core watch was not ready within {limit:g} s")

    def watch(self, pid: int, subject: str) -> None:
        """Tell the sampler."""
        self._add(pid, subject, tree=self.options.tree)

    def watch_tree(self, pid: int, subject: str) -> None:
        """Tell it that children count too."""
        self._add(pid, subject, tree=True)

    def _add(self, pid: int, subject: str, *, tree: bool) -> None:
        if self._process is not None:
            process: dict[str, Any] = {"pid": pid, "subject": subject}
            self._process.tell(json.dumps({"add": process | ({"tree": True} if tree else {})}))
            if self.options.cgroups:
                self._process.tell(json.dumps({"add_cgroup": process}))

    def stop(self, limit: float) -> pl.DataFrame:
        """End the sampler and read what it wrote."""
        if self._process is None:
            return pl.DataFrame(schema=SAMPLE_COLUMNS)
        process, self._process = self._process, None
        if process.wait(0) is not None:
            raise RunError(f"dyno-core watch ended before the run did: {process.complaint() or 'it said nothing'}")
        status = process.stop(limit)
        if status != 0:
            raise RunError(f"dyno-core watch ended with status {status}: {process.complaint()}")
        written = {name: kind for name, kind in SAMPLE_COLUMNS.items() if name != "host"}
        try:
            samples = pl.read_csv(self._samples, schema=written, glob=False)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise RunError(f"the samples of dyno-core watch cannot be read: {error}") from error
        return samples.with_columns(pl.lit(self.host.name).alias("host")).select(list(SAMPLE_COLUMNS))

    def responses(self, samples: pl.DataFrame, from_ns: int, to_ns: int) -> dict[str, float]:
        """`cpu.util` and `disk.util`, of the samples that are wholly of the measured part."""
        period = round(1e9 / self.options.hz)
        of_machine = samples.filter(pl.col("source") == "machine")
        times = (
            of_machine.select(pl.col("time_ns").unique().sort())
            .with_columns(pl.col("time_ns").shift(1).fill_null(pl.col("time_ns") - period).alias("since_ns"))
            .filter((pl.col("since_ns") >= from_ns) & (pl.col("time_ns") <= to_ns))
            .with_columns(((pl.col("time_ns") - pl.col("since_ns")) / 1e9).alias("seconds"))
        )
        within = of_machine.join(times, on="time_ns", how="inner")
        found = {}
        states = within.filter((pl.col("subject") == "machine") & pl.col("metric").is_in(["cpu.idle", "cpu.iowait"]))
        # Shares of samples that are close together are of few clock ticks, now more and now less.
        is_ticks = (pl.col("metric") == "stat.ticks") & (pl.col("subject") == "machine")
        ticks = within.filter(is_ticks).select(
            "time_ns", (pl.col("value") * pl.col("seconds") / USER_HZ).alias("cpu_s")
        )
        weighed = (
            states.group_by("time_ns", "seconds").agg(pl.col("value").sum()).join(ticks, on="time_ns", how="inner")
        )
        seconds, counted = (float(weighed[name].sum()) for name in ("seconds", "cpu_s"))
        if counted > 0:
            cpus = self._cpus or round(counted / seconds)
            rested = float((weighed["value"] * weighed["cpu_s"]).sum()) / 100
            used = cpu_time_used(cpus, seconds, counted=counted, rested=rested)
            found["cpu.util"] = 100 * used / max(cpus * seconds, counted)
        busy = within.filter(pl.col("metric") == "disk.util")
        disks = busy.group_by("subject").agg(pl.col("value").mean())["value"].to_numpy()
        if disks.size:
            found["disk.util"] = float(disks.max())
        return found

    def _job(self) -> dict[str, Any]:
        """The sampler's job (`schema/watch-job.schema.json`)."""
        asked = self.options.model_dump(mode="json", include={"groups", "disks", "interfaces"}, exclude_none=True)
        return {"format": 1, "hz": self.options.hz, "machine": True} | asked

    @property
    def _samples(self) -> Path:
        return self.folder / "samples.csv"
