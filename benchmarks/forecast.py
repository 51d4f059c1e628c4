"""How far off forecasts for unmeasured numbers of clients are: MariaDB under YCSB C, each level left out in turn.

    python benchmarks/forecast.py [--blocks 6] [--seconds 4] [--records 30000] [--folder RESULTS]

Measures 1 to 16 clients warm, in interleaved blocks (about 65 s each on two cores), and prints for each way of
forecasting the error on the levels between, which it was not told of, with 95 % intervals over blocks. The forecast by
demands that depend on load has to beat the nearest level, or it is said that it does not. With --folder nothing is
measured: it prints what an earlier results folder says. Nothing else should run on the machine meanwhile.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from dyno.analysis import analyse, usages
from dyno.model.findings import Findings, Forecasting, Interval, format_ratio
from dyno.store import Results, list_results

STUDY = """
study: forecast
question: How far off is a forecast of the throughput of so many clients?
factors:
  threads: [1, 2, 3, 4, 6, 8, 12, 16]
host: {{caches: warm, require: {{free_disk: 1 GiB}}}}
system: {{kind: mariadb, config: {{innodb_buffer_pool_size: 256M}}}}
workload:
  kind: ycsb
  mix: c
  records: {records}
  duration: {seconds} s
  warmup: 1 s
  interval: 500 ms
  threads: ${{threads}}
replicates: {{min: {blocks}, max: {blocks}}}
observe: [machine: {{hz: 10}}]
"""


def main() -> int:
    """Measure, and print each way's error; status 1 where the nearest level is not beaten."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--seconds", type=int, default=4)
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.folder is not None:
        return report(Results(given.folder))
    with tempfile.TemporaryDirectory(prefix="dyno-forecast-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root the server runs as a user of its own, who has to get in
        study = folder / "study.yaml"
        study.write_text(STUDY.format(blocks=given.blocks, seconds=given.seconds, records=given.records))
        dyno = Path(sysconfig.get_path("scripts"), "dyno")
        words = [dyno, "run", study, "--results", folder / "results", "--work", folder / "work"]
        done = subprocess.run(words, check=False, capture_output=True, text=True)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            return done.returncode
        return report(list_results(folder / "results", "forecast")[-1])


def report(results: Results) -> int:
    """Print what the folder says."""
    cpus = results.environment["cpu"]["online"]
    used = usages(results.runs, results.all_samples(), results.all_intervals(), cpus)
    findings = analyse(results.study, results.runs, ended=results.ended, used=used)
    _measured(findings)
    for found in findings.laws.forecasting:
        _errors(found)
        print(f"\n{found.sentence}")
    for why in findings.laws.left_out:
        print(f"not computed: {why}")
    for fault in findings.laws.faults:
        print(fault.sentence)
    nearest = [way for found in findings.laws.forecasting for way in found.ways if way.way == "nearest"]
    beaten = bool(nearest) and all(way.against_ci is not None and way.against_ci[1] < 0 for way in nearest)
    print(f"\nthe nearest level is {'beaten' if beaten else 'NOT shown to be beaten'}")
    return 0 if beaten else 1


def _measured(findings: Findings) -> None:
    print(
        f"{'threads':>7} {'ops/s':>9} {'interval':>22} {'CPU us/op':>10} {'busy':>6} {'bound':>9} {'reached':>8}  runs"
    )
    for cell in findings.laws.cells:
        cpu = next(each for each in cell.demands if each.resource == "cpu")
        low, high = cell.throughput_ci or (math.nan, math.nan)
        print(
            f"{cell.levels['threads']:>7} {cell.throughput:9,.0f} {f'[{low:,.0f}, {high:,.0f}]':>22} "
            f"{cpu.seconds_per_op * 1e6:10.1f} {cpu.utilisation:6.0%} "
            + (f"{cell.bound:9,.0f} {cell.reached:8.0%}" if cell.bound and cell.reached else f"{'not told':>18}")
            + f"  {cell.n}"
        )
    for change in findings.laws.changes:
        print(f"CPU of an operation, {change.factor} {change.b} / {change.a}: {format_ratio(change.ratio, change.ci)}")


def _errors(found: Forecasting) -> None:
    print(f"\nforecast / measured, from all other levels ({found.blocks} blocks)")
    print(f"{found.factor:>7}" + "".join(f" {way.way:>20}" for way in found.ways))
    for place, level in enumerate(found.ways[0].levels):
        cells = (way.levels[place] for way in found.ways)
        print(f"{level.level:>7}" + "".join(f" {_ratio(each.ratio, each.ci):>20}" for each in cells))
    print("  error" + "".join(f" {_percent(way.error, way.error_ci):>20}" for way in found.ways))
    print("  less " + "".join(f" {_points(way.against, way.against_ci):>20}" for way in found.ways))


def _ratio(ratio: float, ci: Interval | None) -> str:
    return f"{ratio:.3f}" + (f" [{ci[0]:.3f}, {ci[1]:.3f}]" if ci else "")


def _percent(error: float, ci: Interval | None) -> str:
    return f"{100 * math.expm1(error):.1f}%" + (
        f" [{100 * math.expm1(ci[0]):.1f}, {100 * math.expm1(ci[1]):.1f}]" if ci else ""
    )


def _points(less: float | None, ci: Interval | None) -> str:
    if less is None:
        return "-"
    return f"{100 * less:+.1f}" + (f" [{100 * ci[0]:+.1f}, {100 * ci[1]:+.1f}]" if ci else "")


if __name__ == "__main__":
    sys.exit(main())
