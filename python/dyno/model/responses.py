"""The measured figures of a run: what each is called, its unit, and which way is better.

A response of one kind of operation carries its name in front: `read.latency_p99`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Response:
    """A response. `title` is what a person reads, `unit` what stands behind its figures.

    Of those that are `counted` most are 0 where all went well, and nobody asks for their ratio. Those `of_pace` are
    given and not measured where requests come at a given rate.
    """

    name: str
    title: str
    unit: str
    better: Better
    counted: bool = False
    of_pace: bool = False


_KNOWN = {
    response.name: response
    for response in (
        Response("throughput", "throughput", "ops/s", "higher", of_pace=True),
        Response("latency_mean", "mean latency", "ms", "lower"),
        Response("latency_p50", "median latency", "ms", "lower"),
        Response("latency_p90", "90th percentile latency", "ms", "lower"),
        Response("latency_p95", "95th percentile latency", "ms", "lower"),
        Response("latency_p99", "99th percentile latency", "ms", "lower"),
        Response("latency_p999", "99.9th percentile latency", "ms", "lower"),
        Response("latency_max", "longest latency", "ms", "lower"),
        # From the actual start of a request, where latency is from the intended one: open loops have both.
        Response("service_mean", "mean service time", "ms", "lower"),
        Response("service_p50", "median service time", "ms", "lower"),
        Response("service_p90", "90th percentile service time", "ms", "lower"),
        Response("service_p95", "95th percentile service time", "ms", "lower"),
        Response("service_p99", "99th percentile service time", "ms", "lower"),
        Response("service_p999", "99.9th percentile service time", "ms", "lower"),
        Response("service_max", "longest service time", "ms", "lower"),
        Response("lag_p99", "99th percentile of how late requests were sent", "ms", "lower"),
        Response("lag_max", "latest that a request was sent", "ms", "lower"),
        Response("share_sent", "share of the requests due that were sent", "1", "higher", counted=True),
        Response("unsent", "requests due that were never sent", "1", "lower", counted=True),
        # Of file systems: what operations asked for, be it answered from page cache or by the device.
        Response("reads", "reads", "1/s", "higher", of_pace=True),
        Response("writes", "writes", "1/s", "higher", of_pace=True),
        Response("syncs", "syncs", "1/s", "higher", of_pace=True),
        Response("bandwidth", "bytes asked for", "MiB/s", "higher", of_pace=True),
        Response("asked_read_per_op", "bytes asked to be read per operation", "B", "lower"),
        Response("asked_written_per_op", "bytes asked to be written per operation", "B", "lower"),
        Response("operations", "operations", "1", "higher", of_pace=True),
        Response("creation", "time in which the files were made", "s", "lower"),
        Response("creation_rate", "files made", "1/s", "higher"),
        Response("creation_bandwidth", "bytes of files made", "MiB/s", "higher"),
        Response("new_orders_per_min", "new orders", "1/min", "higher", of_pace=True),
        # Of loading: operations are rows, and throughput and elapsed are until the last of them could be read.
        Response("loader_time", "time until the loader had sent all rows", "s", "lower", of_pace=True),
        Response("loader_throughput", "rows until the loader had sent all of them", "1/s", "higher", of_pace=True),
        Response("metrics", "values loaded", "1/s", "higher", of_pace=True),
        Response("failed_operations", "operations that failed", "1", "lower", counted=True),
        Response("reconnects", "connections made anew", "1", "lower", counted=True),
        # Of queries that are asked one by one.
        Response("cold", "time of a query that is asked first", "ms", "lower"),
        Response("warm", "time of a query that is asked again", "ms", "lower"),
        Response("cpu_per_op", "CPU time of the driver's process per operation", "us", "lower"),
        Response("cpu.util", "CPU utilisation", "%", "lower"),
        Response("disk.util", "utilisation of the busiest disk", "%", "lower"),
        # Of all the drive, its warm-up included: nobody can say which operation a page was read for.
        Response("device_read", "read from the device of the data", "MiB", "lower"),
        Response("device_written", "written to the device of the data", "MiB", "lower"),
        Response("device_written_for_files", "written to the device of the data while files were made", "MiB", "lower"),
        # With what was still in page cache or in a journal then: until the file system was synced and unmounted.
        Response("device_written_in_all", "written to the device of the data in all", "MiB", "lower"),
        Response(
            "device_written_in_all_per_op", "written to the device of the data in all, per operation", "B", "lower"
        ),
        Response("device_read_per_op", "read from the device of the data per operation", "B", "lower"),
        Response("device_written_per_op", "written to the device of the data per operation", "B", "lower"),
        Response("system_read_per_op", "read from storage by the system per operation", "B", "lower"),
        Response("system_written_per_op", "written to storage by the system per operation", "B", "lower"),
        Response("system_cpu_per_op", "CPU time of the system's processes per operation", "us", "lower"),
        # Between its nodes, and between them and their clients; of all the drive, as that of the device.
        Response("network_sent", "sent over the network of the system's nodes", "MiB", "lower"),
        Response("network_sent_per_op", "sent over the network of the system's nodes per operation", "B", "lower"),
        # Of one kind of transaction of an embedded system, counted once the run was over.
        Response("instructions", "instructions of a transaction", "1", "lower"),
        Response("cycles", "cycles of a transaction", "1", "lower"),
        # Of all power cuts of a run together, but for the share of cuts and the time.
        Response("syncs_checked", "acknowledged syncs looked for after power cuts", "1", "higher", counted=True),
        Response("syncs_lost", "acknowledged syncs lost", "1", "lower", counted=True),
        Response("cuts_with_loss", "share of power cuts that lost an acknowledged sync", "1", "lower", counted=True),
        Response("files_checked", "files looked at after power cuts", "1", "higher", counted=True),
        Response("files_stale", "files with data of others", "1", "lower", counted=True),
        Response("files_exposing_removed", "files with data that had been removed", "1", "lower", counted=True),
        Response("files_garbage", "files with data that nobody wrote", "1", "lower", counted=True),
        Response("replacements_broken", "unsynced files renamed over others and not whole", "1", "lower", counted=True),
        Response("inconsistent", "file systems that their own program finds damaged", "1", "lower", counted=True),
        Response("unmountable", "file systems that could not be mounted", "1", "lower", counted=True),
        Response("recovery_time", "time to mount after a power cut", "ms", "lower"),
        # Of a fault; times since it was struck. `dyno.model.outage` says how each is found.
        Response("outage", "longest time without a success between the fault and mending", "s", "lower"),
        Response("first_success", "time from the fault to the first success after the outage", "s", "lower"),
        Response("interruptions", "interruptions between the fault and mending", "1", "lower", counted=True),
        Response("former_throughput", "time from the fault until requests are answered as before", "s", "lower"),
        Response("rejoin_outage", "longest time without a success from mending on", "s", "lower"),
        Response("lost_work", "operations that were not done until then", "1", "lower", counted=True),
        Response("requests_failed", "requests that failed after the fault", "1", "lower", counted=True),
        Response("requests_late", "requests that were answered late after the fault", "1", "lower", counted=True),
        Response("redundancy", "time from the fault until redundancy is whole", "s", "lower"),
        Response("rejoin", "time from mending until redundancy is whole", "s", "lower"),
        Response("rows_lost", "acknowledged rows lost", "1", "lower", counted=True),
        Response("rows_phantom", "rows that were never acknowledged and are there", "1", "lower", counted=True),
        Response("rows_duplicated", "rows there more than once", "1", "lower", counted=True),
        Response("rows_altered", "rows not as they were written", "1", "lower", counted=True),
        Response("rows_foreign", "rows that no client can have written", "1", "lower", counted=True),
        Response("stale_reads", "share of reads that missed an acknowledged row", "1", "lower", counted=True),
        Response("stale_reads_after", "the same, after the fault", "1", "lower", counted=True),
        Response("staleness_max", "longest that a row was not to be read elsewhere", "ms", "lower", counted=True),
        Response(
            "reads_unseen", "acknowledged rows never seen elsewhere, as long as looked for", "1", "lower", counted=True
        ),
        Response("elapsed", "time of the measured part", "s", "lower"),
    )
}


def names() -> tuple[str, ...]:
    """The responses that a whole run has."""
    return tuple(_KNOWN)


def of_operation(name: str) -> bool:
    """Whether it is a response of one kind of operation, such as `read.latency_p99`."""
    return name not in _KNOWN


def lookup(name: str) -> Response:
    """The response of that name, `read.latency_p99` included. Raises KeyError with the names that exist."""
    if name in _KNOWN:
        return _KNOWN[name]
    operation, _, base = name.rpartition(".")
    if not operation or base not in _KNOWN:
        raise KeyError(
            f"no response {name!r}; there are {', '.join(_KNOWN)}, each also of one operation (read.latency_p99)"
        )
    known = _KNOWN[base]
    return Response(name, f"{operation} {known.title}", known.unit, known.better, known.counted, known.of_pace)
