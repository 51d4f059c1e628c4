"""YCSB's core workloads, whichever driver carries them out: what they ask, by which keys, of how large a table.

Source of the mixes: Cooper et al., Benchmarking Cloud Serving Systems with YCSB, SoCC 2010, table 2.
"""

from __future__ import annotations

MIXES: dict[str, dict[str, float]] = {
    "a": {"read": 0.5, "update": 0.5},
    "b": {"read": 0.95, "update": 0.05},
    "c": {"read": 1.0},
    "d": {"read": 0.95, "insert": 0.05},
    "e": {"scan": 0.95, "insert": 0.05},
    "f": {"read": 0.5, "read_modify_write": 0.5},
}
CHOOSERS = {"d": "latest"}
CHOSEN = {
    "zipfian": "Keys were chosen by an exact Zipfian (theta {theta:g}), the popular ones scattered over the key space.",
    "clustered-zipfian": "Keys were chosen by an exact Zipfian (theta {theta:g}), the popular ones side by side.",
    "ycsb-zipfian": "Keys were chosen by ycsb-zipfian: what YCSB itself calls zipfian, draw for draw. It is no Zipfian "
    "over the keys: it draws from ten thousand million items and hashes them onto the keys, so that several fall on "
    "one key, and the skew does not follow the number of records.",
    "uniform": "Keys were chosen uniformly.",
    "latest": "Keys were chosen by latest: the newest inserted are the most popular (theta {theta:g}).",
    "hotspot": "Keys were chosen by hotspot: a share of the operations goes to the first keys, evenly.",
    "exponential": "Keys were chosen by exponential: the newest are the most popular.",
    "sequential": "Keys were chosen one after the other, over all threads.",
}
_OVERHEAD = 1.5  # of stored rows over their fields' bytes: keys, row headers, half-full pages


def stored_bytes(records: int, field_count: int, field_length: int) -> int:
    """About what so many rows take: their fields and a share of overhead."""
    return round(records * field_count * field_length * _OVERHEAD)
