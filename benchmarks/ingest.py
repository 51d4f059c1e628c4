"""What loading costs by dyno's loader beside TSBS's for QuestDB: rows a second, the client's CPU a row, visible rows.

    python benchmarks/ingest.py [--rounds 7] [--workers 2] [--hours 24] [--scale 20]

One day of 20 hosts, 1,555,200 rows, into empty tables that the line protocol makes; both by the same number of workers
and in batches of as many rows. TSBS's loader reads text that lies unpacked in page cache, dyno's the packed rows, which
it unpacks meanwhile: that is in its CPU.

Rounds are interleaved, and ratios taken within them. Each round begins with the
tables dropped.

sent     rows over the time until the loader had written the last of them, as each loader says it itself
visible  rows over the time until every row could be read: what counts, since TSBS's loader ends before that
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from dyno.hosts import tools
from dyno.stats import paired_ratio
from dyno.workloads import tsbs_output, tsbs_stores
from dyno.workloads.tsbs_data import Rows
from measuring import core, program, spread

_START = datetime(2016, 1, 1, tzinfo=UTC)
_PORTS = 4


@dataclass(frozen=True)
class Done:
    """One load: rows a second until sent and until visible, the client's CPU in us a row."""

    sent: float
    visible: float
    cpu: float


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--batch", type=int, default=10_000)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--scale", type=int, default=20)
    parser.add_argument("--core", help="the dyno-core to measure; a release build of this tree if left out")
    options = parser.parse_args()
    if tools.TSBS.installed() is None:
        sys.exit("tsbs is missing: `dyno get tsbs`")
    driver = options.core or core()
    with tempfile.TemporaryDirectory(prefix="dyno-ingest-") as name, questdb(Path(name)) as ports:
        bench = Bench(driver, Path(name), ports, options)
        done = [bench.round(number) for number in range(options.rounds)]
        return told(done, bench.rows)


class Bench:
    """One session of measuring."""

    def __init__(self, driver: str, folder: Path, ports: list[int], options: argparse.Namespace) -> None:
        self.driver, self.folder, self.ports, self.options = driver, folder, ports, options
        end = _START + timedelta(hours=options.hours)
        made = Rows("devops", 666, options.scale, _START, end, 10, "questdb")
        made.folder().parent.mkdir(parents=True, exist_ok=True)
        generator = [str(tools.TSBS.program("tsbs_generate_data")), *made.words()]
        about = json.dumps(made.key(), sort_keys=True)
        packing = [driver, "pack", "--out", str(made.folder()), "--format", "ilp", "--about", about, "--"]
        said = subprocess.run([*packing, *generator], capture_output=True, text=True, check=True).stdout
        self.data, self.rows = made.folder(), int(json.loads(said)["rows"])
        self.text = folder / "rows.ilp"
        with self.text.open("wb") as file:
            subprocess.run(
                [program("zstd", "apt-get install zstd"), "-dc", str(self.data / "data.zst")], stdout=file, check=True
            )

    def round(self, number: int) -> dict[str, Done]:
        """Each way once, in an order that turns."""
        ways: dict[str, Callable[[], Done]] = {
            "tsbs": self.theirs,
            "ilp-tcp": lambda: self.ours("ilp-tcp"),
            "ilp-http": lambda: self.ours("ilp-http"),
        }
        names = list(ways)
        turned = names[number % len(names) :] + names[: number % len(names)]
        done = {}
        for name in turned:
            self.drop()
            done[name] = ways[name]()
            one = done[name]
            print(
                f"  round {number + 1} {name:9} sent {one.sent:9.0f} rows/s  visible {one.visible:9.0f} rows/s  "
                f"CPU {one.cpu:.3f} us a row",
                flush=True,
            )
        return done

    def theirs(self) -> Done:
        """By what it says, and the CPU of its process."""
        words = [
            str(tools.TSBS.program("tsbs_load_questdb")),
            f"--file={self.text}",
            f"--workers={self.options.workers}",
        ]
        words += [f"--url=http://127.0.0.1:{self.ports[0]}/", f"--ilp-bind-to=127.0.0.1:{self.ports[3]}"]
        words += [f"--batch-size={self.options.batch}"]
        said, cpu = carried_out(words)
        ended = time.monotonic()
        loaded = tsbs_output.loaded(said)
        waited = self.wait(ended)
        # From its first row on: before, it sleeps for a second.
        return self.done(loaded.seconds, loaded.seconds + waited, cpu)

    def ours(self, transport: str) -> Done:
        """By its result, and the CPU of its process from start to end."""
        port = self.ports[0] if transport == "ilp-http" else self.ports[3]
        backend = {"kind": "questdb", "transport": transport, "addresses": [{"host": "127.0.0.1", "port": port}]}
        job = {"format": 1, "data": str(self.data), "backend": backend, "seed": 1, "workers": self.options.workers}
        path, out = self.folder / "job.json", self.folder / "out"
        path.write_text(json.dumps({**job, "batch_rows": self.options.batch}))
        _, cpu = carried_out([self.driver, "ingest", "--job", str(path), "--out", str(out)])
        result = json.loads((out / "result.json").read_text())
        if result["ingest"]["sent"] != self.rows:
            sys.exit(f"{transport}: {result['ingest']['sent']} of {self.rows} rows were sent")
        waited = self.wait(time.monotonic())
        ended_s = result["elapsed_s"]
        return self.done(result["ingest"]["sent_s"], ended_s + waited, cpu)

    def done(self, sent_s: float, visible_s: float, cpu_s: float) -> Done:
        """Rates."""
        return Done(self.rows / sent_s, self.rows / visible_s, cpu_s * 1e6 / self.rows)

    def wait(self, since: float) -> float:
        """How long it takes, in s, until every row can be read."""
        expected = self.rows // len(tsbs_stores.TABLES)
        for table in tsbs_stores.TABLES:
            end = time.monotonic() + 300
            while self.count(table) < expected:
                if time.monotonic() > end:
                    sys.exit(f"{self.count(table)} of {expected} rows of {table} can be read after 300 s")
                time.sleep(0.005)
        return time.monotonic() - since

    def count(self, table: str) -> int:
        """Rows that can be read; 0 of a table that is not there yet."""
        answer = self.ask(f"select count() from {table}")
        return int(answer["dataset"][0][0]) if "dataset" in answer else 0

    def ask(self, statement: str) -> dict[str, Any]:
        """What QuestDB answers, errors included."""
        url = f"http://127.0.0.1:{self.ports[0]}/exec?query={urllib.parse.quote(statement)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            return dict(json.loads(error.read() or b"{}"))

    def drop(self) -> None:
        """Have no tables; their files go when QuestDB likes."""
        for table in tsbs_stores.TABLES:
            self.ask(f"drop table if exists {table}")


def carried_out(words: list[str]) -> tuple[str, float]:
    """What it said, and its CPU time in s. Ends the benchmark where it fails."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(words, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode(errors="replace")
    if process.returncode != 0:
        sys.exit(f"{' '.join(words)}: status {process.returncode}\n{said}")
    return said, usage.ru_utime + usage.ru_stime


def told(done: list[dict[str, Done]], rows: int) -> int:
    """Print spreads and ratios to TSBS's loader; 0 where every bar is held by its interval, 1 where not."""
    print(f"\n{rows} rows, least / median / most of {len(done)} rounds")
    for name in done[0]:
        of = [each[name] for each in done]
        sent, visible = spread([one.sent for one in of], 0), spread([one.visible for one in of], 0)
        print(f"  {name:9} sent {sent}  visible {visible} rows/s  CPU {spread([one.cpu for one in of], 3)} us a row")
    held = True
    for name in ("ilp-tcp", "ilp-http"):
        for what, least, most in (("sent", 1.0, None), ("visible", 1.0, None), ("cpu", None, 1.0)):
            mine = [getattr(each[name], what) for each in done]
            theirs = [getattr(each["tsbs"], what) for each in done]
            ratio = paired_ratio(theirs, mine, 0.95)
            if ratio is None:
                sys.exit("an interval needs two rounds or more")
            # By the interval's end that speaks against it: two rounds on a busy machine show nothing.
            good = ratio.lo >= least if least is not None else most is not None and ratio.hi <= most
            bad = ratio.hi < least if least is not None else most is not None and ratio.lo > most
            bar = f"at least {least}" if least is not None else f"at most {most}"
            print(
                f"  {name} : tsbs, {what}: {ratio.ratio:.2f}, 95 % interval {ratio.lo:.2f} to {ratio.hi:.2f} "
                f"(bar {bar}): {'held' if good else 'MISSED' if bad else 'cannot tell'}"
            )
            held &= good
    return 0 if held else 1


@contextmanager
def questdb(folder: Path) -> Iterator[list[int]]:
    """One in that folder: its ports for HTTP, metrics, PostgreSQL's protocol and the line protocol."""
    import socket

    opened = [socket.socket() for _ in range(_PORTS)]
    for each in opened:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in opened]
    for each in opened:
        each.close()
    root = folder / "questdb"
    (root / "conf").mkdir(parents=True)
    names = ("http.bind.to", "http.min.net.bind.to", "pg.net.bind.to", "line.tcp.net.bind.to")
    lines = [f"{name}=127.0.0.1:{port}" for name, port in zip(names, ports, strict=True)]
    lines += ["line.udp.enabled=false", "telemetry.enabled=false", ""]
    (root / "conf" / "server.conf").write_text("\n".join(lines))
    words = [program("java", "apt-get install openjdk-17-jre-headless"), "-Xms512m", "-Xmx2g", "-XX:+UseParallelGC"]
    words += ["--add-opens=java.base/jdk.internal.math=ALL-UNNAMED", "-p", str(tools.TOOLS["questdb"].path())]
    words += ["-m", "io.questdb/io.questdb.ServerMain", "-d", str(root)]
    with (folder / "questdb.log").open("wb") as log:
        server = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 600
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{ports[0]}/exec?query=select%201", timeout=5).close()
                break
            except OSError:
                if server.poll() is not None or time.monotonic() > end:
                    sys.exit(f"QuestDB does not start:\n{(folder / 'questdb.log').read_text()[-2000:]}")
                time.sleep(0.1)
        yield ports
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
