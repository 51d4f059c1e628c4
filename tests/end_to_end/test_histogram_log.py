"""latency.hlog is read by another implementation of HdrHistogram, and says what result.json says."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

from dyno.hosts.local import core_binary

HOUR_NS = 3_600_000_000_000


def test_another_hdrhistogram_reads_the_log_and_finds_the_same_figures(tmp_path: Path) -> None:
    job = {
        "format": 1,
        "phase": "run",
        "backend": {"kind": "null"},
        "workload": {"kind": "ycsb", "records": 1000, "proportions": {"read": 0.5, "update": 0.5}},
        "clients": 2,
        "duration_s": 0.3,
        "interval_ms": 100,
        "seed": 1,
    }
    (tmp_path / "job.json").write_text(json.dumps(job))
    argv = [core_binary(), "drive", "--job", str(tmp_path / "job.json"), "--out", str(tmp_path / "out")]
    subprocess.run(argv, check=True, timeout=60)
    result = json.loads((tmp_path / "out" / "result.json").read_text())

    merged = {name: HdrHistogram(1, HOUR_NS, 3) for name in result["operations"]}
    reader = HistogramLogReader(str(tmp_path / "out" / "latency.hlog"), HdrHistogram(1, HOUR_NS, 3))
    intervals = 0
    while (histogram := reader.get_next_interval_histogram()) is not None:
        merged[histogram.get_tag()].add(histogram)
        intervals += 1
    reader.close()

    assert intervals > len(merged), "several of each: a busy machine may leave one without an operation"
    for name, figures in result["operations"].items():
        assert merged[name].get_total_count() == figures["count"] > 0
        for quantile, key in ((50, "p50"), (99, "p99")):
            there = merged[name].get_value_at_percentile(quantile) / 1000
            # Both keep three digits; the two round a value to different ends of its bucket.
            assert abs(there / figures["latency_us"][key] - 1) < 0.005, (name, key)
