"""Whether planted bottlenecks are named rightly: each on a real server, ten runs, each run judged by itself.

    python benchmarks/planted_bottlenecks.py [--runs 10] [--seconds 6] [--only slow-sync]

As root, on a machine with two CPUs. Each is a study of studies/bottlenecks; of one with doses each dose has ten runs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.planting import ALL, carry_out, named


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--only", action="append", choices=[planted.name for planted in ALL])
    options = parser.parse_args()
    missed = 0
    print(f"{'planted':<18} {'to be named':<16} {'rightly':>9}  otherwise")
    for planted in ALL:
        if options.only and planted.name not in options.only:
            continue
        with tempfile.TemporaryDirectory(prefix="dyno-planted-") as name:
            root = Path(name)
            root.chmod(0o711)  # servers run as users of their own
            results = carry_out(planted, root, runs=options.runs, seconds=options.seconds)
            names = Counter(name for _, name in named(planted, results))
        of = names.total()
        right = names.pop(planted.expected, 0)
        others = ", ".join(f"{name} ({count})" for name, count in names.most_common()) or "-"
        print(f"{planted.name:<18} {planted.expected:<16} {right:>3} of {of:<3} {others}", flush=True)
        missed += right < of
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
