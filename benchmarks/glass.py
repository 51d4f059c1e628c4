"""What a transaction costs on glass and its kernel, beside SQLite and LMDB: New-Order and Payment half and half, in memory.

    python benchmarks/glass.py [--rounds 20] [--transactions 20000] [--warehouses 5] [--cpu 0] [STORE...]

All stores are in one process on one CPU and are carried through the same transactions by the same code, in rounds in
turn, so that drift of the machine meets all alike. What is counted is the CPU time of the thread; what is asked is drawn
before. glass has all its components, its data in its pool, and a log that is not written; SQLite is in memory, as the
driver has it, and LMDB lies in /dev/shm and syncs nothing. `null` has nothing to do: what is above every store.
Prints microseconds a transaction, and how many times as fast as SQLite each store is, with a 95 % interval over rounds.
The bars: glass at least 3 times as fast as SQLite, the kernel at least 15 times, and at most 5 us a transaction.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from measuring import built

from dyno.stats import paired_ratio

HERE = Path(__file__).parent / "glass"
STORES = ("null", "kernel", "bare", "glass", "lmdb", "sqlite")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("stores", nargs="*", default=list(STORES))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--transactions", type=int, default=20_000)
    parser.add_argument("--warehouses", type=int, default=5)
    parser.add_argument("--cpu", type=int, default=0)
    options = parser.parse_args()
    program = built(HERE, "glass-beside-others")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        counts = [str(options.rounds), str(options.transactions), str(options.warehouses)]
        command = ["taskset", "-c", str(options.cpu), program, folder, *counts, *options.stores]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return done.returncode
    # Of each store, CPU time and time of each round, in microseconds a transaction.
    cost: dict[str, list[float]] = defaultdict(list)
    took: dict[str, list[float]] = defaultdict(list)
    for line in done.stdout.splitlines():
        _, store, cpu, elapsed = line.split()
        cost[store].append(float(cpu) * 1e6 / options.transactions)
        took[store].append(float(elapsed) * 1e6 / options.transactions)
    print(f"CPU time a transaction, in microseconds, over {options.rounds} rounds of {options.transactions:,}\n")
    print(f"{'':8}{'least':>10}{'median':>10}{'most':>10}{'elapsed':>10}{'times as fast as sqlite':>32}")
    for store, each in cost.items():
        row = f"{store:8}{min(each):10.2f}{statistics.median(each):10.2f}{max(each):10.2f}"
        row += f"{statistics.median(took[store]):10.2f}"
        if "sqlite" in cost and store != "sqlite":
            ratio = paired_ratio(each, cost["sqlite"], 0.95)
            if ratio is not None:
                row += f"{ratio.ratio:16.2f} [{ratio.lo:.2f}, {ratio.hi:.2f}]"
        print(row)
    return 0


if __name__ == "__main__":
    sys.exit(main())
