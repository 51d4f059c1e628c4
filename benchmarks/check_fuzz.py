"""`dyno check` on very many damaged studies: each must be found good or refused in one line, never end in a traceback.

    python benchmarks/check_fuzz.py --number 100000 --seed 7

The same seed and number give the same studies. Exit status 1 if there was any traceback or unreadable message; what
caused the first ones is kept in a folder that is named.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import dyno.study
from dyno.lab import Rooms
from dyno.model.base import UserError

REPOSITORY = Path(__file__).resolve().parent.parent
GOOD_FILES = [
    *sorted(path for path in REPOSITORY.glob("studies/**/*.yaml") if path.parent.name != "queries"),
    *sorted(REPOSITORY.glob("tests/golden/study/*.yaml")),
]
CHUNK = 500
MAX_MESSAGE = 600
KEPT = 20

NASTY = [
    "",
    "~",
    "null",
    "true",
    "off",
    "yes",
    "-1",
    "0",
    "012",
    "0x1F",
    "1e999",
    "-.inf",
    ".nan",
    "9" * 30,
    "9" * 5000,
    "-0.0",
    "1e308",
    "5%",
    "-5%",
    "10000%",
    "1e5%",
    "1 GiB",
    "9999999999999 TiB",
    "1 G",
    "5 s",
    "0 s",
    "99999999999999999 d",
    "1:30",
    "2024-01-01",
    "''",
    '""',
    '"\\0"',
    '"\\ud800"',
    '"\\U0010ffff"',
    "'\u202e'",
    "[]",
    "{}",
    "[[]]",
    "{a: {b: c}}",
    "[1, two, 3.0, ~, true]",
    "${journal_mode}",
    "${}",
    "${",
    "$${x}",
    "${a}${b}",
    "x${threads}y",
    "*x",
    "&x y",
    "&x [*x]",
    "!!python/name:os.system",
    "!!int 5",
    "!t x",
    "|",
    ">-",
    "%",
    "@",
    "`",
    "? a",
    "- a",
    "a: b",
    "---",
    "...",
    "#",
    "\t",
    "\x00",
    "\x85",
    "\u2028",
    "\ufeff",
    "é",
    "[" * 60,
    "{a: " * 60,
    "x" * 3000,
    "native",
    "vm",
    "sqlite",
    "ycsb",
    "null, null",
    "ratio",
    "throughput",
    "read.latency_p99",
    "smoke",
]
KEYS = [
    "study",
    "question",
    "factors",
    "compare",
    "host",
    "system",
    "workload",
    "replicates",
    "observe",
    "limits",
    "order",
    "prepare",
    "restore",
    "seed",
    "scales",
    "kind",
    "deployment",
    "config",
    "caches",
    "require",
    "free_disk",
    "min",
    "max",
    "budget",
    "precision",
    "confidence",
    "of",
    "precision_of",
    "strict",
    "retries",
    "drive",
    "stop",
    "ready",
    "start",
    "mix",
    "records",
    "operations",
    "duration",
    "warmup",
    "threads",
    "journal_mode",
    "synchronous",
    "cache_size",
    "page_size",
    "machine",
    "smoke",
    "default",
    "published",
    "workload.records",
    "system.config.journal_mode",
    "host.caches",
    "factors.threads",
    "scales.smoke",
    "<<",
]
TOKEN = re.compile(r"[^\s:,\[\]{}]+")


@dataclass
class Tally:
    """What came of the studies of a chunk."""

    counts: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0
    faults: list[tuple[bytes, str]] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.slowest_s = max(self.slowest_s, other.slowest_s)
        self.faults += other.faults[: KEPT - len(self.faults)]


def damaged(rng: random.Random, good: list[str]) -> bytes:
    """A study that is probably no good."""
    way = rng.random()
    if way < 0.05:
        return rng.randbytes(rng.randrange(200))
    if way < 0.12:
        return "".join(rng.choices([*"abc :-[]{}#&*!|>'\"%@`\n\n  ,?$0.", *NASTY], k=rng.randrange(120))).encode(
            "utf-8", "surrogatepass"
        )
    if way < 0.22:
        return invented(rng, depth=0).encode()
    text = rng.choice(good)
    for _ in range(rng.choice([1, 1, 1, 2, 2, 3, 5, 8])):
        text = rng.choice(MUTATIONS)(rng, text)
    data = text.encode()
    if rng.random() < 0.05:
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.randbytes(rng.randrange(1, 4)) + data[at + rng.randrange(3) :]
    return data


def invented(rng: random.Random, depth: int) -> str:
    """A mapping of keys that exist, with values of any sort below them."""
    lines = []
    for key in rng.sample(KEYS, rng.randrange(1, 9)):
        below = rng.random() < 0.4 and depth < 4
        value = "\n" + invented(rng, depth + 1) if below else f" {rng.choice(NASTY)}\n"
        lines.append(f"{'  ' * depth}{key}:{value}")
    return "".join(lines)


def delete_line(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        del lines[rng.randrange(len(lines))]
    return "".join(lines)


def repeat_line(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return "".join(lines)


def reindent_line(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    if lines:
        at = rng.randrange(len(lines))
        lines[at] = " " * rng.randrange(7) + lines[at].lstrip(" ")
    return "".join(lines)


def insert_key(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    line = f"{' ' * rng.choice([0, 0, 2, 2, 4])}{rng.choice(KEYS)}: {rng.choice(NASTY)}\n"
    lines.insert(rng.randrange(len(lines) + 1), line)
    return "".join(lines)


def replace_token(rng: random.Random, text: str) -> str:
    tokens = list(TOKEN.finditer(text))
    if not tokens:
        return text
    old = rng.choice(tokens)
    new: str = rng.choice([rng.choice(NASTY), rng.choice(KEYS), rng.choice(tokens).group(), misspelt(rng, old.group())])
    return text[: old.start()] + new + text[old.end() :]


def replace_value(rng: random.Random, text: str) -> str:
    lines = text.splitlines(keepends=True)
    valued = [n for n, line in enumerate(lines) if ": " in line]
    if valued:
        at = rng.choice(valued)
        lines[at] = f"{lines[at].split(': ')[0]}: {rng.choice(NASTY)}\n"
    return "".join(lines)


def replace_character(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    new: str = rng.choice([*":-[]{}#&*!|>'\"%@`\n ,?$", *NASTY])
    return text[:at] + new + text[at + rng.randrange(2) :]


def cut(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def misspelt(rng: random.Random, word: str) -> str:
    at = rng.randrange(len(word))
    return rng.choice([word[:at] + word[at + 1 :], word[:at] + word[at] + word[at:], word.upper(), word + "s"])


MUTATIONS: list[Callable[[random.Random, str], str]] = [
    delete_line,
    repeat_line,
    reindent_line,
    insert_key,
    replace_token,
    replace_token,
    replace_value,
    replace_value,
    replace_character,
    cut,
]


def checker() -> tuple[str, Callable[[Path], object]]:
    """The function behind `dyno check` and its name; the study room alone where the command line cannot be imported."""
    try:
        from dyno.cli import check_file
    except ImportError:
        kinds = Rooms.open().kinds()
        return "dyno.study.check", lambda path: dyno.study.check(path, kinds)
    return "dyno.cli.check_file", check_file


def run_chunk(job: tuple[int, int, int]) -> Tally:
    """Check the studies of one chunk; they follow from the seed and the chunk's number alone."""
    seed, chunk, number = job
    rng = random.Random(f"{seed}/{chunk}")
    good = [path.read_text() for path in GOOD_FILES]
    _, check = checker()
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "study.yaml")
        for _ in range(number):
            data = damaged(rng, good)
            path.write_bytes(data)
            began = time.perf_counter()
            outcome, said = outcome_of(path, check)
            tally.slowest_s = max(tally.slowest_s, time.perf_counter() - began)
            tally.counts[outcome] += 1
            if outcome in ("traceback", "unreadable") and len(tally.faults) < KEPT:
                tally.faults.append((data, said))
    return tally


def outcome_of(path: Path, check: Callable[[Path], object]) -> tuple[str, str]:
    """`good`, `refused`, `unreadable` (a message that is not one short line) or `traceback`, and what was said."""
    try:
        check(path)
    except UserError as error:
        said = str(error)
        readable = said.isprintable() and 0 < len(said) <= MAX_MESSAGE and said.startswith(str(path))
        return ("refused" if readable else "unreadable"), said
    except BaseException:  # noqa: BLE001 - whatever escapes is what is looked for
        return "traceback", traceback.format_exc()
    return "good", ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--number", type=int, default=100_000, help="of studies")
    parser.add_argument("--seed", type=int, default=None, help="printed, and drawn if not given")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    seed = random.SystemRandom().randrange(2**32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}, {arguments.number} studies from {len(GOOD_FILES)} good ones, by {checker()[0]}", flush=True)
    jobs = [
        (seed, chunk, min(CHUNK, arguments.number - start))
        for chunk, start in enumerate(range(0, arguments.number, CHUNK))
    ]
    began = time.perf_counter()
    total = Tally()
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for tally in pool.imap_unordered(run_chunk, jobs):
            total.add(tally)
    elapsed = time.perf_counter() - began
    counts = {name: total.counts[name] for name in ("good", "refused", "unreadable", "traceback")}
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    print(
        f"{elapsed:.1f} s, {1000 * elapsed * arguments.processes / max(1, arguments.number):.2f} ms each, "
        f"slowest {1000 * total.slowest_s:.0f} ms"
    )
    if not total.faults:
        return 0
    kept = Path(tempfile.mkdtemp(prefix="check-fuzz-"))
    for number, (data, said) in enumerate(total.faults):
        (kept / f"{number}.yaml").write_bytes(data)
        (kept / f"{number}.txt").write_text(said, errors="backslashreplace")
    print(f"kept {len(total.faults)} of them in {kept}; the first:\n{total.faults[0][1]}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
