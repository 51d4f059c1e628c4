"""What New-Order and Payment cost on glass and its kernel, beside SQLite and LMDB, in memory.

    python benchmarks/glass.py [--rounds 20] [--transactions 20000] [--warehouses 5] [--cpu 0] [--smoke] [STORE...]

Half New-Orders (ten items of the home warehouse), half Payments (by a customer's number), no rollbacks, one client. All
stores are in one process on one CPU and are asked the same by the same code, in rounds in turn, so that drift of the
machine meets all alike. What is counted is the CPU time of the thread; what is asked is drawn before. When all rounds
are done TPC-C's consistency conditions, but the one that holds of fresh data alone, have to hold in each store.

kernel             glass's hand-written kernel: trees and rows in memory, no transactions
bare               glass without any component that can be removed
glass              glass with all components: data in its buffer pool, a log that is not written
lmdb               LMDB in /dev/shm, nothing synced, no locks; records and code as glass's
sqlite             SQLite in memory, its journal too, so that it can roll back as glass can
sqlite-no-journal  the same without a journal, so that it cannot, as the kernel and `bare` cannot
null               a store that has nothing to do: what is above every store

SQLite's statements are prepared once; it has no mutexes and counts no memory; what it says of itself is printed.
Prints microseconds a transaction (least, median and most over rounds), and how many times as fast as each SQLite a
store is, with a 95 % interval over rounds. The bars are of the faster SQLite and of the intervals' lower ends: glass at
least 3 times as fast, the kernel at least 15 times, and at most 5 us a transaction. The status is 1 where one is
missed.

A full run takes about three minutes and 5 GiB of memory. `--smoke` takes seconds with a hundredth of the data; its
figures mean nothing, and no bar is held against them.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from dyno.stats import paired_ratio
from measuring import built, spread

HERE = Path(__file__).parent / "glass"
SQLITES = ("sqlite", "sqlite-no-journal")
STORES = ("null", "kernel", "bare", "glass", "lmdb", *SQLITES)

# At least so many times as fast as SQLite.
TIMES = {"glass": 3.0, "kernel": 15.0}
# At most so many microseconds a transaction.
MICROSECONDS = {"kernel": 5.0}

# TPC-C's items, and customers of a district.
FULL = ("100000", "3000")
SMALL = ("1000", "30")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, usage=argparse.SUPPRESS, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stores", nargs="*", metavar="STORE", help=f"of {', '.join(STORES)}; all if none is named")
    parser.add_argument("--rounds", type=int, default=20, help="that are counted; one before them is not")
    parser.add_argument("--transactions", type=int, default=20_000, help="of each store a round")
    parser.add_argument("--warehouses", type=int, default=5)
    parser.add_argument("--cpu", type=int, default=0, help="the CPU that all of it runs on")
    parser.add_argument("--smoke", action="store_true", help="whether it works, in seconds")
    options = parser.parse_args()
    stores = options.stores or list(STORES)
    if unknown := sorted(set(stores) - set(STORES)):
        parser.error(f"no store {', '.join(unknown)}: there are {', '.join(STORES)}")
    if options.rounds < 2 or options.transactions < 1 or options.warehouses < 1:
        parser.error("an interval needs two rounds or more, of a transaction or more, of a warehouse or more")
    size, transactions, rounds, warehouses = FULL, options.transactions, options.rounds, options.warehouses
    if options.smoke:
        size, transactions, rounds, warehouses = SMALL, 500, 2, 1
    program = built(HERE, "glass-beside-others")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        counts = [str(rounds), str(transactions), str(warehouses), *size]
        command = ["taskset", "-c", str(options.cpu), program, folder, *counts, *stores]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        return done.returncode
    # Of each store, CPU time and time of each round, in microseconds a transaction.
    cost: dict[str, list[float]] = defaultdict(list)
    took: dict[str, list[float]] = defaultdict(list)
    checked: dict[str, int] = {}
    for line in done.stdout.splitlines():
        match line.split():
            case ["round", _, store, cpu, elapsed]:
                cost[store].append(float(cpu) * 1e6 / transactions)
                took[store].append(float(elapsed) * 1e6 / transactions)
            case ["setting", store, *words]:
                print(f"{store}: {' '.join(words)}")
            case ["checked", store, conditions]:
                checked[store] = int(conditions)
    held = ", ".join(f"{store} {count}" for store, count in checked.items() if count)
    print(f"consistency conditions that hold: {held}")
    print(f"\nCPU time a transaction, in us, over {rounds} rounds of {transactions:,}; {warehouses} warehouse(s)")
    show(cost, took)
    if options.smoke:
        print("\nA smoke run: its figures mean nothing.")
        return 0
    return 0 if judged(cost) else 1


def show(cost: Mapping[str, Sequence[float]], took: Mapping[str, Sequence[float]]) -> None:
    """A line for each store; with each SQLite that was measured, how many times as fast the store is."""
    sqlites = [name for name in SQLITES if name in cost]
    head = f"{'':18}{'least / median / most':>26}{'elapsed':>9}"
    print(head + "".join(f"{'times ' + name:>28}" for name in sqlites))
    for store, each in cost.items():
        row = f"{store:18}{spread(each):>26}{statistics.median(took[store]):9.2f}"
        for name in sqlites:
            text = ""
            if store != name and (ratio := paired_ratio(each, cost[name], 0.95)) is not None:
                text = f"{ratio.ratio:.2f} [{ratio.lo:.2f}, {ratio.hi:.2f}]"
            row += f"{text:>28}"
        print(row.rstrip())


def judged(cost: Mapping[str, Sequence[float]]) -> bool:
    """Print of each bar that can be judged whether it is kept, and give whether all of them are."""
    all_held = True
    print()
    fastest = min(
        (name for name in SQLITES if name in cost), key=lambda name: statistics.median(cost[name]), default=""
    )
    for store, least in TIMES.items():
        if store in cost and fastest:
            ratio = paired_ratio(cost[store], cost[fastest], 0.95)
            held = ratio is not None and ratio.lo >= least
            all_held &= held
            print(f"{store} at least {least:g} times as fast as {fastest}: {'held' if held else 'MISSED'}")
    for store, most in MICROSECONDS.items():
        if store in cost:
            held = statistics.median(cost[store]) <= most
            all_held &= held
            print(f"{store} at most {most:g} us a transaction: {'held' if held else 'MISSED'}")
    return all_held


if __name__ == "__main__":
    sys.exit(main())
