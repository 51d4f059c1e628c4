"""Does 95 % mean 95 %? The table of `dyno.selfcheck.coverage`, which says what is in it.

    python benchmarks/coverage.py [--studies 20000] [--cells 2 4 8 12 27] [--rows NAME ...] [--seed 1]

Ends with status 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
from functools import partial

from dyno.selfcheck import coverage


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--studies", type=int, default=coverage.STUDIES, help=f"of each row ({coverage.STUDIES})")
    parser.add_argument("--cells", type=int, nargs="*", default=list(coverage.LEVELS))
    parser.add_argument("--rows", nargs="*", choices=coverage.NAMES, default=coverage.NAMES)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    say = partial(print, flush=True)
    return 1 if coverage.table(options.studies, options.cells, options.rows, options.seed, say) else 0


if __name__ == "__main__":
    sys.exit(main())
