"""The rules by which one run is judged: from what was observed to where its clients were, and what held them there.

A place that is full holds a system back; where none is, the place at which clients spend most of their time does.
docs/verdicts.md has every rule, and each threshold with its reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dyno.analysis.demands import LIMIT
from dyno.analysis.observed import THRESHOLDS, observed
from dyno.analysis.table import pace_of
from dyno.model.findings import Bottleneck
from dyno.model.run import RunRecord
from dyno.model.study import Cell
from dyno.model.usage import Usage

FAMILY: Final[Mapping[str, str]] = {
    "cpu-quota": "the CPU",
    "cpu-all": "the CPU",
    "cpu-thread": "the CPU",
    "cpu-path": "the CPU",
    "disk-bandwidth": "the disk",
    "disk-operations": "the disk",
    "disk-sync": "the disk",
    "memory": "the disk",
    "locks": "row locks",
    "network": "the network",
    "driver": "the driver",
}

_FULL_OR_NOTHING: Final = ("cpu-quota", "cpu-all", "cpu-thread", "network", "disk-bandwidth")
"""Places that hold nothing back unless they are full."""


@dataclass(frozen=True)
class Place:
    """Where clients can be. `full` where it takes no more of them; `use` is how much of it is used, in per cent."""

    kind: Bottleneck
    clients: float
    use: float
    full: bool
    figures: tuple[str, ...]


@dataclass(frozen=True)
class Judged:
    """One run: its verdict, and what was observed."""

    kind: Bottleneck
    figures: Mapping[str, float]
    evidence: tuple[str, ...]
    full: bool
    also: tuple[Bottleneck, ...] = ()
    places: tuple[Place, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


def judge(cell: Cell, run: RunRecord, used: Usage) -> Judged | None:
    """By itself. None where the system's processes were not observed."""
    of = "server" if "server.cpu" in used.per_s else "driver"
    if f"{of}.cpu" not in used.per_s:
        return None
    figures = dict(observed(cell, run, used, of))
    places = tuple(_places(figures))
    if of == "driver":
        places = tuple(place for place in places if place.kind != "driver")  # it is the system
    pace = pace_of(run)
    facts = {"of": of, **({"pace": pace} if pace else {})}
    clients = figures.get("clients")
    full = [place for place in places if place.full and _has_its_share(place, figures)]
    if full:
        cause = _cause(full)
        also = tuple(place.kind for place in full if FAMILY[place.kind] != FAMILY[cause.kind])
        return Judged(cause.kind, figures, cause.figures, True, also, places, facts)
    if pace is not None and figures.get("kept", 100.0) >= THRESHOLDS["kept"]:
        evidence: tuple[str, ...] = ("kept", "clients", "cpus_busy", "device_busy")
        return Judged("driver", figures, evidence, False, (), places, facts)
    if clients:
        most = max((place for place in places if place.kind not in _FULL_OR_NOTHING), key=lambda place: place.clients)
        if 100 * most.clients / clients >= THRESHOLDS["most"]:
            return Judged(most.kind, figures, most.figures, False, (), places, facts)
    evidence = ("unseen", "kept", "clients", "cpu", "waited", "blocked", "syncing", "locked", "driver", "device_busy")
    return Judged("unexplained", figures, evidence, False, (), places, facts)


def _has_its_share(place: Place, f: Mapping[str, float]) -> bool:
    """Whether as many clients are there as makes it worth anything to have more of it."""
    # A device that serves many at once takes more though it is busy all the time: as where none is full, most count.
    share = THRESHOLDS["most" if place.figures[0] == "device_busy" else "share"]
    return place.clients >= max(share, f.get("unseen", 0.0)) / 100 * f.get("clients", 0.0)


def _places(f: Mapping[str, float]) -> Iterator[Place]:
    """All that something was observed of."""
    queued = f.get("unseen", 0.0) / 100 * f.get("clients", 0.0)  # behind whoever has what they wait for
    yield from _of_cpus(f, queued)
    yield from _of_disk(f, queued)
    share = f.get("locked_share", 0.0)
    full = share >= THRESHOLDS["locked_share"]
    yield Place("locks", f.get("locked", 0.0), share, full, ("locked_share", "locked", "clients"))
    interface = f.get("interface", 0.0)
    full = interface >= THRESHOLDS["interface"] or f.get("retransmitted", 0.0) >= THRESHOLDS["retransmitted"]
    yield Place("network", queued if full else 0.0, interface, full, ("interface", "retransmitted", "unseen"))
    driver = f.get("driver", 0.0)
    use = 100 * driver / f["clients"] if f.get("clients") else 0.0
    yield Place("driver", driver, use, False, ("driver", "clients", "cpu", "cpus_busy"))


def _of_cpus(f: Mapping[str, float], queued: float) -> Iterator[Place]:
    clients = f["cpu"] + f["waited"]
    if "quota_used" in f:
        is_held = f.get("throttled", 100.0) >= THRESHOLDS["throttled"]
        full = f["quota_used"] >= THRESHOLDS["quota_used"] and is_held
        yield Place("cpu-quota", clients, f["quota_used"], full, ("quota_used", "quota", "throttled", "cpu"))
    busy, busiest = f.get("cpus_busy", 0.0), f.get("busiest", 0.0)
    full = busy >= THRESHOLDS["cpus_busy"] and f["waited_share"] >= THRESHOLDS["waited_share"]
    yield Place("cpu-all", clients, busy, full, ("cpus_busy", "cpus", "cpu", "waited_share", "waited"))
    # Where more are on other CPUs than behind it, it is a client's own thread, as of those that have one each.
    full = busiest >= THRESHOLDS["busiest"] and ("clients" not in f or 1 + queued >= clients - busiest / 100)
    of_thread = clients + (queued if full else 0.0)
    yield Place("cpu-thread", of_thread, busiest, full, ("busiest", "cpu", "cpus", "unseen"))
    yield Place("cpu-path", clients, busy, False, ("cpu", "waited", "clients", "cpus_busy", "busiest"))


def _of_disk(f: Mapping[str, float], queued: float) -> Iterator[Place]:
    blocked, syncing, busy = f.get("blocked", 0.0), f.get("syncing", 0.0), f.get("device_busy", 0.0)
    waits = blocked + syncing >= THRESHOLDS["at_device"]
    if _is_memory_s_doing(f):
        full = blocked >= THRESHOLDS["at_device"]
        figures: tuple[str, ...] = ("memory_full", "refaulted", "blocked", "swapped", "pressure", "read")
        yield Place("memory", blocked, busy, full, figures)
    limits = {name: f[name] for name in f if name.startswith(LIMIT)}
    if limits:
        name = max(limits, key=lambda each: limits[each])
        # Whoever asks without being blocked (asynchronous I/O, io_uring) waits unseen; what a limit lets pass is known.
        full = limits[name] >= THRESHOLDS["io_limit"] and (waits or queued >= THRESHOLDS["at_device"])
        figures = (name, "blocked", "syncing", "read", "written", "device_busy", "unseen")
        kind: Bottleneck = "disk-bandwidth" if name.endswith("_bytes") else "disk-operations"
        yield Place(kind, blocked + syncing + queued if full else 0.0, limits[name], full, figures)
    full = busy >= THRESHOLDS["device_busy"] and waits
    kind = "disk-bandwidth" if full and f.get("request", 0.0) >= THRESHOLDS["large_request"] else "disk-operations"
    figures = ("device_busy", "blocked", "syncing", "request", "read", "written", "unseen")
    yield Place(kind, blocked + (queued if full else 0.0), busy, full, figures)
    full = syncing >= THRESHOLDS["syncing"]
    figures = ("syncing", "clients", "device_busy", "blocked", "unseen")
    yield Place("disk-sync", syncing + (queued if full else 0.0), 100 * min(syncing, 1.0), full, figures)


def _is_memory_s_doing(f: Mapping[str, float]) -> bool:
    """Whether threads wait for a device since memory is full: what is read had been there before."""
    full = f.get("memory_full", 0.0) >= THRESHOLDS["memory_full"]
    again = full and f.get("refaulted", 0.0) >= THRESHOLDS["refaulted"]
    return again or f.get("swapped", 0.0) >= THRESHOLDS["swapped"]


_BEHIND: Final[Mapping[str, frozenset[str]]] = {
    "cpu-quota": frozenset({"cpu-all", "cpu-thread"}),
    "cpu-all": frozenset({"cpu-thread"}),
    "memory": frozenset({"disk-bandwidth", "disk-operations"}),
}
"""What is full because something else is."""


def _cause(full: Sequence[Place]) -> Place:
    """Of the full places the one that has most clients, but for those that another explains."""
    causes = [place for place in full if not any(_explains(other, place) for other in full)]
    return max(causes, key=lambda place: place.clients)


def _explains(place: Place, other: Place) -> bool:
    if is_limit(place):
        return other.kind.startswith("disk-") and not is_limit(other)
    return other.kind in _BEHIND.get(place.kind, ()) and not is_limit(other)


def is_limit(place: Place) -> bool:
    """Whether it is a limit of I/O that the system was held to."""
    return place.figures[0].startswith(LIMIT)
