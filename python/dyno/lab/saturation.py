"""What a run's driver had of the machine, as the observers saw it: by that it is judged whether it was the limit."""

from __future__ import annotations

import os

import polars as pl

from dyno.model.forms import cpus_named
from dyno.model.saturation import DriverUse
from dyno.workloads.base import Measured

_SUBJECT = "driver"


def driver_use(samples: pl.DataFrame, measured: Measured, clients: int, pinned: str | None) -> DriverUse | None:
    """Over the samples that are wholly of the measured part.

    `pinned` is the list of the only CPUs that the driver may use. None where nobody watched the driver, or where the
    system has no processes of its own: it is then in the driver, whose CPU time is the system's.
    """
    if measured.measured_from_ns is None or measured.measured_to_ns is None:
        return None
    of_processes = samples.filter(
        (pl.col("source") == "process") & pl.col("metric").is_in(["proc.cpu", "proc.wait"])
    ).sort("time_ns")
    # A sample tells of the time since the one before, whatever that one told.
    times = (
        of_processes.select(pl.col("time_ns").unique().sort())
        .with_columns(pl.col("time_ns").shift(1).alias("since_ns"))
        .filter((pl.col("since_ns") >= measured.measured_from_ns) & (pl.col("time_ns") <= measured.measured_to_ns))
        .with_columns(((pl.col("time_ns") - pl.col("since_ns")) / 1e9).alias("seconds"))
    )
    seconds = float(times["seconds"].sum())
    if seconds <= 0:
        return None
    driver = pl.col("subject") == _SUBJECT
    table = (
        of_processes.join(times, on="time_ns", how="inner")
        .group_by(driver.alias("is_driver"), "metric")
        .agg((pl.col("value") * pl.col("seconds")).sum() / 100 / seconds)
    )
    used = {(is_driver, metric): value for is_driver, metric, value in table.iter_rows()}
    if (True, "proc.cpu") not in used or (False, "proc.cpu") not in used:
        return None
    return DriverUse(
        seconds=seconds,
        samples=times.height,
        clients=clients,
        cpus=len(cpus_named(pinned)) if pinned else len(os.sched_getaffinity(0)),
        cpu=used[True, "proc.cpu"],
        wait=used.get((True, "proc.wait")),
        system_cpu=used[False, "proc.cpu"],
        system_wait=used.get((False, "proc.wait")),
        **_of_open_loop(measured),
    )


def _of_open_loop(measured: Measured) -> dict[str, float]:
    """Latency is from the intended start and service from the actual one: between them a request was late."""
    latency, service = (measured.responses.get(f"{name}_mean") for name in ("latency", "service"))
    if measured.loop != "open" or latency is None or service is None:
        return {}
    throughput = measured.responses.get("throughput", 0.0)
    return {"lag_ms": max(latency - service, 0.0), "service_ms": service, "rate_per_s": throughput}
