"""Results folders that never were: realistic studies, runs, samples and intervals for the tests of reports.

python fake_results.py OUT     writes the report of each into OUT/<name>, to be looked at
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dyno.model.published import Published
from dyno.model.run import Outcome, RunRecord, Slot, Step, StepTime
from dyno.model.selfcheck import Selfcheck
from dyno.model.study import Cell, Factor, HostSpec, KindSpec, Level, Limits, Replicates, Study
from dyno.model.targets import Target
from dyno.systems.simulated import SimulatedOptions, throughput

SECOND = 1_000_000_000
EPOCH = 1_750_000_000 * SECOND
SAMPLES = {"time_ns": pl.Int64, "host": pl.String, "source": pl.String, "subject": pl.String, "metric": pl.String}
INTERVALS = {"start_ns": pl.Int64, "end_ns": pl.Int64, "warmup": pl.Boolean, "operation": pl.String}
LATENCIES = ("mean_us", "p50_us", "p95_us", "p99_us", "max_us")


def make_study(
    factors: Mapping[str, Sequence[Any]], compare: str | None, name: str = "journal-mode", **rule: Any
) -> Study:
    declared = tuple(Factor(name=f, levels=tuple(Level(value=v) for v in values)) for f, values in factors.items())
    cells = tuple(
        Cell(
            index=index,
            levels={f.name: level.name for f, level in zip(declared, chosen, strict=True)},
            host=HostSpec(),
            system=KindSpec(kind="sqlite", options={"synchronous": "full"}),
            workload=KindSpec(kind="drive", options={"mix": "a"}),
        )
        for index, chosen in enumerate(product(*(f.levels for f in declared)))
    )
    return Study(
        study=name,
        question="Is SQLite's write-ahead log faster than its rollback journal, and does that depend on the clients?",
        scale="default",
        factors=declared,
        compare=compare,
        cells=cells,
        replicates=Replicates(**rule),
        observe=(KindSpec(kind="machine"),),
        limits=Limits(),
        order="randomised",
        prepare="once",
        restore="copy",
        seed=20_250_615,
        source_sha256="5f1d6a" + "0" * 58,
    )


@dataclass
class FakeResults:
    """What `dyno.store.Results` gives."""

    study: Study
    runs: list[RunRecord]
    study_yaml: str = "study: journal-mode\nfactors:\n  journal_mode: [delete, wal]  # <b>as declared</b>\n"
    environment: dict[str, Any] = field(default_factory=lambda: dict(ENVIRONMENT))
    ended: str | None = "the budget of 30 min is used up"
    folder: Path = Path("/nowhere/at/all")
    seconds: int = 0
    """Of samples and intervals of each run. Most tests need none, and drawing them takes longer than all else."""
    selfcheck: Selfcheck | None = None

    def samples(self, run: int) -> pl.DataFrame:
        record = self.runs[run - 1]
        random = np.random.default_rng(run)
        rows = []
        for second in range(0 if record.measured_from_ns is None else self.seconds):
            time = record.started_ns + (second + 3) * SECOND + run
            usr, system, wait = 20 + 10 * random.random(), 12 + 4 * random.random(), 30 + 20 * random.random()
            machine = {
                "cpu.usr": usr, "cpu.nice": 0.0, "cpu.sys": system, "cpu.iowait": wait, "cpu.irq": 0.0, "cpu.soft": 1.0,
                "cpu.steal": 1.5 * random.random(), "cpu.idle": 98 - usr - system - wait,
                "vm.cs": 9000 + 2000 * random.random(), "psi.cpu.some": 3 * random.random(),
                "psi.memory.some": 0.0, "psi.io.some": 40 + 20 * random.random(),
            }  # fmt: skip
            disk = {
                "disk.util": 60 + 30 * random.random(),
                "disk.rkB_s": 300 * random.random(),
                "disk.wkB_s": 9000 + 4000 * random.random(),
            }
            rows += [(time, "local", "machine", "machine", metric, value) for metric, value in machine.items()]
            rows += [(time, "local", "machine", "vda", metric, value) for metric, value in disk.items()]
            rows += [(time, "local", "machine", "vdb", metric, 0.0) for metric in disk]
            for subject, share in (("sqlite", 45.0), ("driver", 9.0)):
                rows.append((time, "local", "process", subject, "proc.usr", share + 5 * random.random()))
                rows.append((time, "local", "process", subject, "proc.sys", share / 2 + random.random()))
        return pl.DataFrame(rows, {**SAMPLES, "value": pl.Float64}, orient="row")

    def intervals(self, run: int) -> pl.DataFrame:
        record = self.runs[run - 1]
        random = np.random.default_rng(run)
        rate = record.responses.get("throughput", 400.0)
        rows = []
        for second in range(0 if record.measured_from_ns is None else self.seconds):
            start = record.started_ns + (second + 3) * SECOND
            for operation in ("read", "update"):
                count = int(rate / 2 * (0.5 if second < 3 else 1) * (1 + 0.1 * random.standard_normal()))
                rows.append((start, start + SECOND, second < 5, operation, count, 0, *[900.0] * len(LATENCIES)))
        schema = {**INTERVALS, "count": pl.Int64, "errors": pl.Int64, **dict.fromkeys(LATENCIES, pl.Float64)}
        return pl.DataFrame(rows, schema, orient="row")


ENVIRONMENT: dict[str, Any] = {
    "cpu": {"model": "Example CPU 9000 <at> 2.4 GHz", "count": 2, "governor": "performance", "mitigations": {}},
    "memory": {"total": 8_589_934_592, "swap": 0},
    "disks": [
        {"name": "vda", "size": 53_687_091_200, "scheduler": "none", "rotational": False},
        {"name": "vdb", "size": 10_737_418_240, "scheduler": "none", "rotational": False},
    ],
    "kernel": {"release": "6.8.0", "sysctl": {"vm.dirty_expire_centisecs": 500, "vm.swappiness": 60}},
    "programs": {"sqlite": "3.45.1", "dyno": "0.1.0", "python": None},
    "flags": ["rdtscp", "constant_tsc"],
}


def make_runs(
    study: Study, blocks: int, *, noise: float = 0.03, seed: int = 1, trouble: bool = True
) -> list[RunRecord]:
    """Blocks in random order; with trouble, some runs fail and are tried again."""
    random = np.random.default_rng(seed)
    runs: list[RunRecord] = []

    def add(cell: Cell, block: int, outcome: Outcome, throughput: float, attempt: int = 0) -> None:
        number = len(runs) + 1
        started = EPOCH + number * 60 * SECOND
        ran = outcome is not Outcome.FAILED
        p50 = 900 / throughput
        responses = {
            "throughput": throughput,
            "latency_mean": 1.2 * p50,
            "latency_p50": p50,
            "latency_p99": 4 * p50 * random.lognormal(0, 2 * noise),
            "cpu_per_op": 55 * random.lognormal(0, noise),
            "read.latency_p99": 2 * p50 * random.lognormal(0, noise),
            "update.latency_p99": 5 * p50 * random.lognormal(0, noise),
        }
        wrong = {
            Outcome.FAILED: (Step.READY, "sqlite did not answer within 120 s: <script>alert('cause')</script>"),
            Outcome.INVALID: (Step.CHECK, "the driver used 97% of its CPU: it was itself the limit"),
            Outcome.PARTIAL: (Step.DRIVE, "interrupted"),
        }.get(outcome, (None, None))
        runs.append(
            RunRecord(
                run=number,
                slot=Slot(cell=cell.index, block=block, attempt=attempt),
                levels=cell.levels,
                outcome=outcome,
                step=wrong[0],
                cause=wrong[1],
                started_ns=started,
                ended_ns=started + 50 * SECOND,
                measured_from_ns=started + 8 * SECOND if ran else None,
                measured_to_ns=started + 43 * SECOND if ran else None,
                steps=(StepTime(step=Step.RESTORE, seconds=1.5), StepTime(step=Step.DRIVE, seconds=40.0)),
                responses=responses if ran else {},
                errors={"update": {"busy": 2}} if number == 5 else {},
                settings={"synchronous": 2},
                commands=(("dyno-core", "drive", "--job", "job of " + cell.name),),
                versions={"sqlite": "3.45.1", "dyno-core": "0.1.0"},
                driver={"threads": 4},
                loop="closed",
            )
        )

    for block in range(blocks):
        drift = random.lognormal(0, 2 * noise)
        for place in random.permutation(len(study.cells)):
            cell = study.cells[place]
            if trouble and (block + 3 * cell.index) % 17 == 5:
                add(cell, block, Outcome.FAILED, 0.0 + 1)
            if trouble and (block + 5 * cell.index) % 23 == 7:
                add(cell, block, Outcome.INVALID, 100.0)
            add(cell, block, Outcome.OK, true_throughput(study, cell) * drift * random.lognormal(0, noise))
    return runs


def true_throughput(study: Study, cell: Cell) -> float:
    rate = 400.0
    for place, factor in enumerate(study.factors):
        level = [level.name for level in factor.levels].index(cell.levels[factor.name])
        threads = factor.name == "threads"
        rate *= 1.0 + level * (0.35 if threads else (2.2 / (place + 1)))
        if threads and cell.levels.get("journal_mode") == "delete":
            rate *= 0.92**level
    return rate


def sampled(results: FakeResults, seconds: int = 40) -> FakeResults:
    """The same with samples and intervals."""
    return replace(results, seconds=seconds)


def eight_cells(blocks: int = 6) -> FakeResults:
    study = make_study(
        {"threads": [1, 2, 4, 8], "journal_mode": ["delete", "wal"]}, "journal_mode", precision_of="ratio"
    )
    return FakeResults(study, make_runs(study, blocks))


def twenty_seven_cells(blocks: int = 5) -> FakeResults:
    factors = {
        "deployment": ["native", "container-layered", "container-volume"],
        "workload": ["a", "b", "c"],
        "threads": [1, 4, 8],
    }
    study = make_study(factors, "deployment", name="mariadb-virtualization")
    runs = make_runs(study, blocks, noise=0.05)
    lost = {cell.index for cell in study.cells if cell.levels["workload"] == "c" and cell.levels["threads"] == "8"}
    for place, run in enumerate(runs):
        if run.slot.cell == max(lost) and run.outcome is Outcome.OK:
            fields = {
                "outcome": Outcome.FAILED,
                "step": Step.DRIVE,
                "cause": "no space left on device",
                "responses": {},
            }
            runs[place] = run.model_copy(update=fields)
    return FakeResults(study, runs)


DEPLOYED: dict[str, dict[str, Any]] = {
    "native": {
        "io_engine": "io_uring", "seccomp": "none", "network": "host", "data.device": "loop0", "nofile": 1048576,
    },
    "container-layered": {
        "io_engine": "libaio", "seccomp": "filter", "network": "host", "data.device": "loop1", "nofile": 20000,
    },
    "container-volume": {
        "io_engine": "libaio", "seccomp": "filter", "network": "host", "data.device": "loop2", "nofile": 20000,
    },
}  # fmt: skip


def fifty_four_cells(blocks: int = 6) -> FakeResults:
    """Containers against native, as published: an overhead of some per cent, and some that differ besides."""
    factors = {
        "deployment": ["native", "container-layered", "container-volume"],
        "flush_method": ["fsync", "O_DIRECT"],
        "workload": ["a", "b", "c"],
        "threads": [1, 4, 8],
    }
    study = make_study(factors, "deployment", name="mariadb-virtualization", precision_of="ratio")
    random = np.random.default_rng(11)
    made = []
    for run in make_runs(study, blocks, noise=0.02):
        levels = run.levels
        if run.responses:
            share = {"native": 1.0, "container-layered": 0.94, "container-volume": 0.955}[levels["deployment"]]
            share = share if levels["workload"] != "c" else 1 - (1 - share) / 6
            rate = {"a": 900, "b": 3100, "c": 5200}[levels["workload"]] * share
            rate *= {"1": 1.0, "4": 1.9, "8": 2.4}[levels["threads"]] ** (1.0 if levels["workload"] == "a" else 0.6)
            rate *= 1.12 if levels["flush_method"] == "O_DIRECT" and levels["workload"] == "a" else 1.0
            rate *= random.lognormal(0, 0.02)
            read = {"a": 5200.0, "b": 7900.0, "c": 8300.0}[levels["workload"]] * random.lognormal(0, 0.01)
            written = {"a": 21000.0, "b": 2100.0, "c": 0.0}[levels["workload"]] * random.lognormal(0, 0.01)
            responses = {
                **run.responses,
                "throughput": rate,
                "device_read_per_op": read,
                "device_written_per_op": written,
                "device_read": read * rate * 30 / 2**20,
                "device_written": written * rate * 30 / 2**20,
            }
            buffering = levels["deployment"] == "container-layered"
            made.append(
                run.model_copy(
                    update={
                        "responses": responses,
                        "deployed": DEPLOYED[levels["deployment"]],
                        "settings": {
                            "innodb_flush_method": levels["flush_method"],
                            "innodb_log_file_buffering": buffering,
                        },
                    }
                )
            )
        else:
            made.append(run)
    return FakeResults(study, made, ended="every cell is precise enough")


def one_cell(blocks: int = 4) -> FakeResults:
    study = make_study({}, None, name="glass")
    return FakeResults(study, make_runs(study, blocks, trouble=False), ended=None)


def expected(text: str = "") -> FakeResults:
    """Eight cells with targets, published figures and findings, of each verdict. `text` stands in those of a user."""
    results = eight_cells()
    modes = {"b": {"journal_mode": "wal"}, "a": {"journal_mode": "delete"}}
    figures = [
        {"levels": {"threads": threads, "journal_mode": mode}, "value": value, "interval": interval}
        for threads, mode, value, interval in (
            ("1", "delete", 4000.0, (3900.0, 4100.0)),
            ("1", "wal", 8800.0, (8600.0, 9000.0)),
            ("2", "delete", 5000.0, None),
            ("2", "wal", 4000.0, None),
            ("8", "delete", 9000.0, (8900.0, 9100.0)),
            ("8", "wal", 5000.0, (4900.0, 5100.0)),
        )
    ]
    claims = [
        {"id": f"faster{text}", "says": f"wal is faster{text}", "needs": f"two disks{text}", "note": f"of old{text}",
         "predicate": {"ratio": {"of": "throughput", **modes}, "is": "> 1"}},
        {"id": "alike", "says": "the two are as good as equal",
         "predicate": {"within": {"of": "throughput", **modes, "margin": "2%"}}},
        {"id": "cycles", "says": "wal takes fewer cycles", "here": "counters"},
        {"id": "slow", "says": "the median is below a millisecond somewhere",
         "predicate": {"mean": {"of": "latency_p50"}, "is": "< 1 ms", "in": "some cell"}},
    ]  # fmt: skip
    table = {"file": f"figures{text}.csv", "response": "throughput", "figures": figures, "same_within": 0.1}
    seen = [
        {"column": "ops", "quantity": {"of": "throughput"}, "unit": "ops/s", **each}
        for each in (
            {"levels": {"journal_mode": "delete"}, "value": 800.0},
            {"levels": {"journal_mode": "wal"}, "value": 1600.0},
        )
    ]
    ipc = {"of": "server.instructions", "over": "server.cycles"}
    seen.append({"column": "ipc", "quantity": ipc, "unit": "1", "levels": {"journal_mode": "wal"}, "value": 0.7})
    observed = {
        "file": f"seen{text}.csv",
        "where": {"threads": ["1", "8"]},
        "notes": {"ipc": f"of all{text}"},
        "figures": seen,
        "left_out": [f"window{text}"],
    }
    extra = {
        "targets": (
            Target(response="throughput", bound="> 100 ops/s"),
            Target(response="latency_p99", bound="< 2 ms"),
            Target(response="disk.util", bound="< 70 %", where={"threads": "8"}),
        ),
        "published": Published.model_validate({"tables": [table], "observed": [observed], "findings": claims}),
    }
    return FakeResults(results.study.model_copy(update=extra), results.runs)


def hostile() -> FakeResults:
    """Every text that a user writes tries to be HTML."""
    factors = {"<script>alert('f')</script>": ["<script>alert('l')</script>", "b&b"], "threads": [1, 2]}
    study = make_study(factors, next(iter(factors)), name="<script>alert('name')</script>")
    study = study.model_copy(update={"question": "</title><script>alert('question')</script>?"})
    return FakeResults(study, make_runs(study, 6), environment={"<script>alert('e')</script>": {"<i>": "<b>"}})


def drifting(blocks: int = 8) -> FakeResults:
    """Six numbers of clients and two engines under the simulated machine: slower by 8 % from run 49 on, 2 % outliers.

    mesh begins lower and follows the scalability law with a peak at 24 threads; pool has contention alone. The curves
    cross at about 7 threads.
    """
    study = make_study(
        {"threads": [1, 2, 4, 8, 16, 32], "engine": ["pool", "mesh"]}, "engine", name="clients", precision_of="ratio"
    )
    noise = SimulatedOptions(mean=1, cov="3%", rho=0.3, step_at=49, step=-0.08, outliers="2%", seed=7)
    runs = make_runs(study, blocks, trouble=False)
    made = []
    for run in runs:
        n = int(run.levels["threads"])
        rate, contention, coherency = {"pool": (400, 0.12, 0.0), "mesh": (250, 0.01, 0.99 / 24**2)}[
            run.levels["engine"]
        ]
        truth = rate * n / (1 + contention * (n - 1) + coherency * n * (n - 1))
        made.append(run.model_copy(update={"responses": {"throughput": truth * throughput(noise, run.run)}}))
    return FakeResults(study, made, ended="all 8 blocks are done")


def nothing() -> FakeResults:
    study = make_study({"threads": [1, 2], "journal_mode": ["delete", "wal"]}, "journal_mode")
    return FakeResults(study, [], ended=None)


def many(runs: int = 10_000) -> FakeResults:
    factors = {"workload": ["a", "b", "c"], "threads": [1, 2, 4, 8], "journal_mode": ["delete", "wal"]}
    study = make_study(factors, "journal_mode")
    return FakeResults(study, make_runs(study, runs // len(study.cells)), seconds=600)


ALL = {
    f.__name__: f
    for f in (eight_cells, expected, twenty_seven_cells, fifty_four_cells, one_cell, hostile, drifting, nothing, many)
}


def main(out: Path) -> None:
    from dyno.analysis import analyse
    from dyno.report import html

    for name, make in ALL.items():
        made = make()
        results = made if made.seconds else sampled(made)
        findings = analyse(results.study, results.runs, ended=results.ended)
        print(html.write(results, findings, out / name))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
