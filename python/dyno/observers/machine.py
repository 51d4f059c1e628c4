"""The machine observer: CPU, memory, disks, context switches and pressure, by `dyno-core watch`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from dyno.hosts import LocalHost, Process
from dyno.model.base import Frozen, RunError
from dyno.observers.base import SAMPLE_COLUMNS, Observer


class MachineOptions(Frozen):
    """How often it looks."""

    hz: Annotated[float, Field(ge=1, le=10, description="samples a second")] = 1.0


class MachineObserver(Observer[MachineOptions]):
    """One sampler process; the processes to watch are told to it as they appear."""

    kind = "machine"
    Options = MachineOptions

    def __init__(self, options: MachineOptions, host: LocalHost, core: str, folder: Path, logs: Path) -> None:
        super().__init__(options, host, core, folder, logs)
        self._process: Process | None = None

    def start(self, limit: float) -> None:
        """Start the sampler and wait for its word that the first reading was taken."""
        self.folder.mkdir(parents=True, exist_ok=True)
        job = self.folder / "watch.json"
        job.write_text(json.dumps({"format": 1, "hz": self.options.hz, "machine": True}))
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
        if self._process is not None:
            self._process.tell(json.dumps({"add": {"pid": pid, "subject": subject}}))

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
            samples = pl.read_csv(self._samples, schema=written)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise RunError(f"the samples of dyno-core watch cannot be read: {error}") from error
        return samples.with_columns(pl.lit(self.host.name).alias("host")).select(list(SAMPLE_COLUMNS))

    def responses(self, samples: pl.DataFrame, from_ns: int, to_ns: int) -> dict[str, float]:
        """`cpu.util` and `disk.util`, of the samples that are wholly of the measured part."""
        period = round(1e9 / self.options.hz)
        within = samples.filter(
            (pl.col("source") == "machine") & (pl.col("time_ns") - period >= from_ns) & (pl.col("time_ns") <= to_ns)
        )
        found = {}
        resting = within.filter(pl.col("metric").is_in(["cpu.idle", "cpu.iowait"]))
        seconds = resting.group_by("time_ns").agg(pl.col("value").sum())["value"].to_numpy()
        if seconds.size:
            found["cpu.util"] = max(100.0 - float(seconds.mean()), 0.0)
        busy = within.filter(pl.col("metric") == "disk.util")
        disks = busy.group_by("subject").agg(pl.col("value").mean())["value"].to_numpy()
        if disks.size:
            found["disk.util"] = float(disks.max())
        return found

    @property
    def _samples(self) -> Path:
        return self.folder / "samples.csv"
