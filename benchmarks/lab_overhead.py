"""What the lab costs: the time around each run of the null workload, everything but the driver's own life.

    python benchmarks/lab_overhead.py [--runs 200]

Prints the median and the spread, and where the time goes by step. The budget is a median of about 150 ms a run on two
cores; it is printed beside the figure and judged by the reader, since a shared machine has slow minutes.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import sysconfig
import tempfile
from collections import defaultdict
from itertools import pairwise
from pathlib import Path

from dyno.store import Results, list_results

BUDGET_MS = 150
STUDY = """
study: lab-overhead
question: What does the lab itself cost?
system: {{kind: null}}
workload: {{kind: null, operations: 1000}}
replicates: {{min: {runs}, max: {runs}}}
"""


def main() -> int:
    """Run the study and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory(prefix="dyno-lab-overhead-", dir=".") as folder:
        study = Path(folder, "study.yaml")
        study.write_text(STUDY.format(runs=runs))
        dyno = Path(sysconfig.get_path("scripts"), "dyno")
        subprocess.run([dyno, "run", study, "--results", folder], check=True, capture_output=True)
        results = list_results(Path(folder), "lab-overhead")[0]
        _print(results)
    return 0


def _print(results: Results) -> None:
    # The event of a run is written after its commit, so two neighbours are one whole run apart.
    ends = [event["time_ns"] for event in results.events() if event["event"] == "run"]
    commits = [event["commit_s"] * 1000 for event in results.events() if event["event"] == "run"]
    around = [
        (end - begin) / 1e6 - record.driver_s * 1000
        for (begin, end), record in zip(pairwise(ends), results.runs[1:], strict=True)
    ]
    steps: dict[str, list[float]] = defaultdict(list)
    for record in results.runs[1:]:
        for step in {each.step for each in record.steps}:
            steps[step.value].append(1000 * sum(each.seconds for each in record.steps if each.step is step))
    drivers = [record.driver_s * 1000 for record in results.runs[1:]]
    print(f"{len(around)} runs with observers: {', '.join(spec.kind for spec in results.study.observe) or 'none'}")
    print(_row("around a run", around) + f"   (budget: about {BUDGET_MS} ms median)")
    print(_row("the driver's life", drivers))
    for step, times in steps.items():
        print(_row(f"  step {step}", times))
    print(_row("  commit", commits))


def _row(name: str, values: list[float]) -> str:
    low, *_, high = statistics.quantiles(values, n=20)
    return f"{name:20} median {statistics.median(values):8.2f} ms, 5 % to 95 % {low:8.2f} to {high:8.2f} ms"


if __name__ == "__main__":
    sys.exit(main())
