"""The measured figures of a run: what each is called, its unit, and which way is better.

A response of one kind of operation carries its name in front: `read.latency_p99`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Better = Literal["higher", "lower"]


@dataclass(frozen=True)
class Response:
    """A response. `title` is what a person reads, `unit` what stands behind its figures."""

    name: str
    title: str
    unit: str
    better: Better


_KNOWN = {
    response.name: response
    for response in (
        Response("throughput", "throughput", "ops/s", "higher"),
        Response("latency_mean", "mean latency", "ms", "lower"),
        Response("latency_p50", "median latency", "ms", "lower"),
        Response("latency_p90", "90th percentile latency", "ms", "lower"),
        Response("latency_p95", "95th percentile latency", "ms", "lower"),
        Response("latency_p99", "99th percentile latency", "ms", "lower"),
        Response("latency_p999", "99.9th percentile latency", "ms", "lower"),
        Response("latency_max", "longest latency", "ms", "lower"),
        Response("cpu_per_op", "CPU time of the driver's process per operation", "us", "lower"),
        Response("elapsed", "time of the measured part", "s", "lower"),
    )
}


def names() -> tuple[str, ...]:
    """The responses that a whole run has."""
    return tuple(_KNOWN)


def lookup(name: str) -> Response:
    """The response of that name, `read.latency_p99` included. Raises KeyError with the names that exist."""
    operation, _, base = name.rpartition(".")
    if base not in _KNOWN:
        raise KeyError(
            f"no response {name!r}; there are {', '.join(_KNOWN)}, each also of one operation (read.latency_p99)"
        )
    known = _KNOWN[base]
    if not operation:
        return known
    return Response(name, f"{operation} {known.title}", known.unit, known.better)
