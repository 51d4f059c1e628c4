"""How long a large results folder takes to analyse and report, and how much memory.

    python benchmarks/report_scale.py [--runs 10000] [--keep DIR]

Makes the folder with the simulated system through the whole lab (that takes minutes), then reports it as a user would.
The budget for 10,000 runs is 10 s and 1 GB, and 5 MB for the page.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

from dyno.store import list_results

# Eight curves over six numbers of clients: as many fits of the scalability law as a report makes at the most.
CELLS = 48
STUDY = """
study: report-scale
question: How does the report take a large study?
factors:
  cov: [2%, 10%]
  rho: [0, 0.3, 0.5, 0.7]
  clients: [1, 2, 4, 8, 16, 32]
system:
  kind: simulated
  config: {{mean: "${{clients}}", cov: "${{cov}}", rho: "${{rho}}", failing: 1%}}
workload: {{kind: simulated}}
replicates: {{min: {blocks}, max: {blocks}, retries: 1}}
observe: []
"""


def main() -> int:
    """Make the folder, report it, print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="make the results folder here, and keep it")
    given = parser.parse_args()
    if given.keep:
        given.keep.mkdir(parents=True, exist_ok=True)
        return _measure(given.keep, given.runs)
    with tempfile.TemporaryDirectory(prefix="dyno-report-scale-", dir=".") as folder:
        return _measure(Path(folder), given.runs)


def _measure(folder: Path, runs: int) -> int:
    study = folder / "study.yaml"
    study.write_text(STUDY.format(blocks=-(-runs // CELLS)))
    dyno = str(Path(sysconfig.get_path("scripts"), "dyno"))
    begun = time.monotonic()
    # Status 1: some simulated runs fail, as they are asked to.
    made = subprocess.run([dyno, "run", str(study), "--results", str(folder)], capture_output=True, check=False)
    if made.returncode not in (0, 1):
        print(made.stderr.decode(), file=sys.stderr)
        return 1
    results = list_results(folder, "report-scale")[-1].folder
    count = sum(1 for _ in (results / "runs").iterdir())
    print(f"made {count} runs of {CELLS} cells in {time.monotonic() - begun:.1f} s")
    for name, argv in (
        ("dyno show --format json", [dyno, "show", str(results), "--format", "json"]),
        ("dyno report", [dyno, "report", str(results)]),
    ):
        seconds, peak = _run(argv)
        print(f"{name:24} {seconds:6.2f} s, peak memory {peak / 1e6:7.1f} MB   (budget for 10,000 runs: 10 s, 1000 MB)")
    page = results / "report.html"
    print(f"report.html {page.stat().st_size / 1e6:.2f} MB")
    return 0


def _run(argv: list[str]) -> tuple[float, int]:
    """Wall-clock seconds and peak resident bytes of a command."""
    begun = time.monotonic()
    process = subprocess.Popen(argv, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"{' '.join(argv)} ended with wait status {status}")
    return time.monotonic() - begun, usage.ru_maxrss * 1024


if __name__ == "__main__":
    sys.exit(main())
