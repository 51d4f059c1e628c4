"""The driver of workload `queries`: a program of its own, so that what it costs is told from what dyno does besides.

It takes a job (a JSON file), asks, and leaves `result.json` and `answers.parquet` in the folder that it names. What an
answer took counts until all of it has arrived; it is decoded, brought into one form and summed up only when nothing is
timed, since that costs as much as the protocol makes it, and several times as much as some stores take to answer.
Clients of a batch are threads: they wait for the store and not for each other, and the interpreter lets one of them
compute at a time, which is why the driver tells how much of one CPU it used.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from html import unescape
from itertools import cycle
from pathlib import Path
from typing import Any

import polars as pl

from dyno import sql
from dyno.hosts import Process
from dyno.model.alike import compare_rows
from dyno.model.answers import ANSWER_COLUMNS, Rows
from dyno.model.base import RunError
from dyno.model.endpoint import Endpoint
from dyno.model.rows import NotATime, digests, dumped, in_one_form
from dyno.workloads import devops_data

_FIRST_ROWS = 10
_WHOLE_CELLS = 100_000
"""Rows times columns up to which an answer is kept whole, and that a batch may keep of each query all together."""
_ROOM = 256 * 2**20
_TELL_EVERY_S = 1.0
_LOOK_EVERY_S = 0.02
COURSE = {"ended_ns": pl.Int64, "operation": pl.String, "latency_us": pl.Float64, "service_us": pl.Float64}
"""Columns of `course.parquet`, a row for each answer in the order in which they came; null where there was an error."""


@dataclass
class Asked:
    """One question, and what came of it."""

    question: Mapping[str, Any]
    answer: sql.Answer | None = None
    """The first."""
    again: sql.Answer | None = None
    """The last of those after it, until it was looked at."""
    varies: str | None = None
    """How one of those after it differed from the first, in words."""
    error: str | None = None
    lasting: bool = False
    """Whether it would be told of that error again, whenever it was asked."""
    cold_ms: float | None = None
    warm_ms: list[float] = field(default_factory=list)
    client_s: list[float] = field(default_factory=list)
    plan: str | None = None
    packs: bool = False
    """Whether its answer is packed as soon as it was taken."""
    held: int = 0
    """Bytes of what was not taken yet, about."""
    _arrived: list[Callable[[], sql.Answer]] = field(default_factory=list)
    """Each decodes an answer that was not taken yet."""
    _packed: bytes | None = None
    _unlike: list[bytes] = field(default_factory=list)
    """Those after the first that are not the same to the last bit, packed, until all was asked."""

    def ask(self, connection: sql.Connection) -> float | None:
        """Once; the time of the answer in ms, None where there was an error. `take` decodes it."""
        try:
            found = connection.timed(self.question["statement"])
        except sql.SqlError as error:
            self._failed(error)
            return None
        self.client_s.append(found.cpu_s)
        self._arrived.append(found.decode)
        self.held += found.size
        return found.seconds * 1000

    def take(self) -> None:
        """Decode what was answered since; where that is an error after all, no time of the question is one."""
        arrived, self._arrived, self.held = self._arrived, [], 0
        for decode in arrived if self.error is None else ():
            try:
                found = decode()
            except sql.SqlError as error:
                self._failed(error)
                self.cold_ms = None
                self.warm_ms.clear()
                self.client_s.clear()
                return
            if self.answer is None:
                self.answer = found
            else:
                self.again = found
                self.look_again()
        if self.packs:
            self.pack()

    def _failed(self, error: sql.SqlError) -> None:
        self.error = _without_statement(str(error), self.question["statement"])
        self.lasting = isinstance(error, sql.StatementRefused)

    def pack(self) -> None:
        """Keep the answer in a twentieth of its room: those of a batch may be gigabytes.

        Summing it up would take several times as long as decoding it did, while other batches wait and rows come.
        """
        if self.answer is not None:
            self._packed, self.answer = _packed(self.answer), None

    def first(self) -> sql.Answer | None:
        """The answer, packed or not."""
        return self.answer if self._packed is None else _unpacked(self._packed)

    def look_again(self) -> None:
        """Drop the last answer where it is the first, as most are, or keep it in little room: both may be large.

        Whether one that is not is unlike takes seconds of many rows, and is seen when all was asked (`compare`).
        """
        again, self.again = self.again, None
        if again is not None and again != self.answer:
            self._unlike.append(_packed(again))

    def compare(self) -> None:
        """Hold those answers that are not the same against the first."""
        while self._unlike and self.varies is None and self.error is None:
            self._compare(_unpacked(self._unlike.pop(0)))

    def _compare(self, again: sql.Answer) -> None:
        given = self.question
        assert self.answer is not None, "another answer came after it"
        try:
            first, other = _in_one_form(given, self.answer), _in_one_form(given, again)
        except _Unreadable as wrong:
            self.error, self.lasting = str(wrong), True
            return
        if len(self.answer.columns) != len(again.columns):
            self.varies = f"{len(self.answer.columns)} columns against {len(again.columns)}"
            return
        found = compare_rows(
            first, other, given["relative"], given["absolute"], ordered=given["ordered"], keys=given["keys"]
        )
        self.varies = found.told or None


def _packed(answer: sql.Answer) -> bytes:
    return zlib.compress(pickle.dumps(answer), 1)


def _unpacked(packed: bytes) -> sql.Answer:
    answer: sql.Answer = pickle.loads(zlib.decompress(packed))
    return answer


class Held:
    """Answers that have come and are not decoded yet.

    To decode them is the driver's work and the protocol's cost. As long as there is room it waits until nothing is
    measured any more, so that whoever watches the driver sees what asking costs.
    """

    def __init__(self, room: int = _ROOM) -> None:
        self._room = room
        self._asked: dict[int, Asked] = {}

    def add(self, *asked: Asked) -> None:
        """And decode all where they take more than there is room for."""
        self._asked |= {id(each): each for each in asked}
        if sum(each.held for each in self._asked.values()) > self._room:
            self.take()

    def take(self) -> None:
        """Decode all."""
        for each in self._asked.values():
            each.take()
        self._asked.clear()


class Teller:
    """Says how far it is, for whoever watches the driver."""

    def __init__(self) -> None:
        self.begun = self._told = time.monotonic()
        self.count = 0
        self.course: list[tuple[int, str, float | None, float | None]] = []
        """When each answer was there, of which query, from when it was due and from when it was sent, in us."""
        self._lock = threading.Lock()

    def asked(self, question: Mapping[str, Any], took_ms: float | None, late_ms: float = 0.0) -> None:
        """One more answer is there, or an error."""
        with self._lock:
            self.count += 1
            service = None if took_ms is None else took_ms * 1000
            latency = None if service is None else service + late_ms * 1000
            self.course.append((time.time_ns(), f"{question['part']}.{question['query']}", latency, service))
            now = time.monotonic()
            if now - self._told < _TELL_EVERY_S:
                return
            self._told = now
            elapsed = now - self.begun
            said = {"phase": "measured", "elapsed_s": elapsed, "throughput_per_s": self.count / elapsed}
            print(json.dumps(said), flush=True)


def main(arguments: Sequence[str]) -> int:
    """Carry out the job in the file that is named; 1 where it failed, and why on standard error."""
    try:
        job = json.loads(Path(arguments[0]).read_text())
        out = Path(job["out"])
        out.mkdir(parents=True, exist_ok=True)
        endpoint = Endpoint(**job["endpoint"])
        if job["phase"] == "load":
            devops_data.load(endpoint, devops_data.DataOptions.model_validate(job["data"]), out, limit=job["limit_s"])
            result: dict[str, Any] = {}
        else:
            result = _run(job, endpoint, out)
        (out / "result.json").write_text(json.dumps(result) + "\n")
    except (RunError, OSError) as error:
        print(" ".join(str(error).split()), file=sys.stderr)
        return 1
    return 0


def _run(job: Mapping[str, Any], endpoint: Endpoint, out: Path) -> dict[str, Any]:
    # Of a store with a way in for each node, clients are dealt out to all of them, as the loaders of rows are.
    others = [way for way in job["others"].values() if "port" in way and way != endpoint.settings]
    turns = cycle([endpoint, *(replace(endpoint, settings=way) for way in others)])

    def connect() -> sql.Connection:
        return sql.connect(next(turns), limit=job["limit_s"])

    teller, held = Teller(), Held()
    result: dict[str, Any] = {"measured_from_ns": time.time_ns()}
    singly = [Asked(question) for question in job["singly"]]
    with connect() as connection:
        result["singly"] = _singly(singly, connection, job["repeat"], teller, held)
        with _rows_coming(job.get("ingest"), limit_s=job["limit_s"]):
            result["batches_from_ns"] = time.time_ns()
            if not singly:  # else what was asked before is measured too
                result["measured_from_ns"] = result["batches_from_ns"]
            batches = {
                name: _batch(questions, connect, job["workers"], job["rate"], teller, held)
                for name, questions in job["batches"].items()
            }
            result["batches_to_ns"] = time.time_ns()
        result["measured_to_ns"] = result["batches_to_ns"]
        held.take()
        # Of a batch the first stands for all: they differ in their parameters.
        first = [batch.asked[0] for batch in batches.values() if batch.asked]
        for each in [*singly, *first] if job["explain"] else ():
            each.plan = _plan(connection, each.question)
    result["singly"]["count"] = sum(len(each.warm_ms) + (each.cold_ms is not None) for each in singly)
    result["batches"] = {name: batch.told() for name, batch in batches.items()}
    asked = [*singly, *(each for batch in batches.values() for each in batch.asked)]
    pl.DataFrame(_kept(asked), schema=ANSWER_COLUMNS, orient="row").write_parquet(out / "answers.parquet")
    result["lasting"] = sorted({each.question["query"] for each in asked if each.lasting})
    pl.DataFrame(teller.course, schema=COURSE, orient="row").write_parquet(out / "course.parquet")
    return result


@contextmanager
def _rows_coming(loading: Mapping[str, Any] | None, *, limit_s: float) -> Iterator[None]:
    """Have a loader send rows meanwhile, from before the first batch until its standard input ends. Raises RunError.

    It leaves its result by itself, also where it fails; whoever reads that tells why.
    """
    if loading is None:
        yield
        return
    log = Path(loading["log"])
    said = log.with_name(f"{log.name}.stdout")
    before = said.stat().st_size if said.exists() else 0
    loader = Process(loading["words"], log=log, environment=os.environ, folder=None)
    try:
        deadline = time.monotonic() + limit_s
        # It says a line an interval, the first when rows have come for one.
        while said.stat().st_size == before and loader.wait(_LOOK_EVERY_S) is None:
            if time.monotonic() > deadline:
                raise RunError("the loader of rows that were to come meanwhile did not begin within the run's limit")
        yield
        loader.hush()
        if loader.wait(limit_s) is None:
            raise RunError("the loader of rows that came meanwhile did not end within the run's limit")
    finally:
        loader.kill()


def _singly(
    asked: Sequence[Asked], connection: sql.Connection, repeat: int, teller: Teller, held: Held
) -> dict[str, float]:
    """Each once, and at once again as often as asked for; without the time in which answers are decoded and seen."""
    beside_s, beside_cpu_s = 0.0, 0.0
    begun, cpu = time.perf_counter(), time.process_time()
    for each in asked:
        for number in range(1 + repeat):
            took = each.ask(connection)
            if took is not None and number == 0:
                each.cold_ms = took
            elif took is not None:
                each.warm_ms.append(took)
            since, since_cpu = time.perf_counter(), time.process_time()
            teller.asked(each.question, took)
            held.add(each)
            beside_s += time.perf_counter() - since
            beside_cpu_s += time.process_time() - since_cpu
            if each.error is not None:
                break
    return {
        "elapsed_s": time.perf_counter() - begun - beside_s,
        "cpu_s": time.process_time() - cpu - beside_cpu_s,
    }


@dataclass(frozen=True)
class _Batch:
    """What came of a batch, by the number of the query."""

    asked: Sequence[Asked]
    elapsed_s: float
    cpu_s: float
    latencies_ms: Sequence[float | None]
    lags_ms: Sequence[float]
    between_ms: Sequence[float]

    def told(self) -> dict[str, Any]:
        """Once its answers were decoded: one that was none has no time."""
        ok = [number for number, each in enumerate(self.asked) if each.error is None]
        return {
            "elapsed_s": self.elapsed_s,
            "cpu_s": self.cpu_s,
            "latencies_ms": [self.latencies_ms[number] for number in ok],
            "services_ms": [self.asked[number].warm_ms[0] for number in ok],
            "lags_ms": list(self.lags_ms),
            "between_ms": list(self.between_ms),
            "errors": len(self.asked) - len(ok),
            "first_error": next((each.error for each in self.asked if each.error is not None), None),
        }


def _batch(
    questions: Sequence[Mapping[str, Any]],
    connect: Callable[[], sql.Connection],
    workers: int,
    rate: float | None,
    teller: Teller,
    held: Held,
) -> _Batch:
    """All of them by so many clients: as fast as they come, or each when it is due, whether or not others are done."""
    asked = [Asked(each, packs=True) for each in questions]
    queue = _Queue(len(asked))
    latencies: list[float | None] = [None] * len(asked)
    lags, between = [0.0] * len(asked), [0.0] * len(asked)
    wrong: list[BaseException] = []
    connections = [connect() for _ in range(workers)]
    ready = threading.Barrier(workers + 1)
    never = threading.Event()
    start = [0.0]

    def client(connection: sql.Connection) -> None:
        try:
            ready.wait()
            while (number := queue.next()) is not None:
                due = None if rate is None else start[0] + number / rate
                if due is not None and (early := due - time.perf_counter()) > 0:
                    never.wait(early)
                sent = time.perf_counter()
                lags[number] = 0.0 if due is None else max(0.0, (sent - due) * 1000)
                took = asked[number].ask(connection)
                if took is not None:
                    latencies[number] = took + lags[number]
                    asked[number].warm_ms.append(took)
                teller.asked(asked[number].question, took, lags[number])
                if took is not None:
                    between[number] = (time.perf_counter() - sent) * 1000 - took
        except BaseException as error:  # noqa: BLE001 - a thread's error is raised by whoever waits for it
            wrong.append(error)
            ready.abort()

    threads = [threading.Thread(target=client, args=(each,), daemon=True) for each in connections]
    for thread in threads:
        thread.start()
    cpu = time.process_time()
    start[0] = time.perf_counter()
    try:
        ready.wait()
    except threading.BrokenBarrierError as error:
        raise RunError(f"a client of a batch could not begin: {wrong[0] if wrong else error}") from error
    for thread in threads:
        thread.join()
    elapsed, cpu = time.perf_counter() - start[0], time.process_time() - cpu
    for each in connections:
        each.close()
    if wrong:
        raise RunError(f"a client of a batch ended: {wrong[0]}") from wrong[0]
    held.add(*asked)
    return _Batch(asked, elapsed, cpu, latencies, lags, between)


class _Queue:
    """Numbers from 0 on, each given once."""

    def __init__(self, count: int) -> None:
        self._next, self._count, self._lock = 0, count, threading.Lock()

    def next(self) -> int | None:
        with self._lock:
            if self._next >= self._count:
                return None
            self._next += 1
            return self._next - 1


def _plan(connection: sql.Connection, question: Mapping[str, Any]) -> str:
    """What the store says that it would do, as it says it; or why it does not."""
    try:
        rows = connection.rows(question["explain"])
    except sql.SqlError as error:
        return f"not told: {_without_statement(str(error), question['explain'])}"
    # QuestDB indents its plans by entities of HTML.
    return unescape("\n".join("  ".join(_in_plan(value) for value in row) for row in rows)).replace("\xa0", " ")


def _in_plan(value: Any) -> str:
    return json.dumps(value, indent=1, default=str) if isinstance(value, (dict, list)) else str(value)


def _kept(asked: Sequence[Asked]) -> list[tuple[Any, ...]]:
    """A row of `answers.parquet` for each question."""
    left: dict[tuple[str, str], int] = {}
    rows = []
    for each in asked:
        each.compare()
        question, answer, error = each.question, each.first(), each.error
        found: dict[str, Any] = {}
        if error is None and answer is not None:
            try:
                found = _summed_up(question, answer, left)
            except _Unreadable as wrong:
                error, each.lasting = str(wrong), True
        row = {
            **{name: question.get(name) for name in ANSWER_COLUMNS},
            **found,
            "error": error,
            "varies": each.varies,
            "cold_ms": each.cold_ms,
            "warm_ms": each.warm_ms,
            "client_ms": sorted(each.client_s)[len(each.client_s) // 2] * 1000 if each.client_s else None,
            "plan": each.plan,
        }
        rows.append(tuple(row[name] for name in ANSWER_COLUMNS))
    return rows


class _Unreadable(ValueError):
    """An answer has not the columns that its query says, or no time where it says that there is one."""


def _in_one_form(question: Mapping[str, Any], answer: sql.Answer) -> Rows:
    kinds = question["kinds"] or [None] * len(answer.columns)
    if len(kinds) != len(answer.columns):
        raise _Unreadable(f"gave {len(answer.columns)} columns, and the file says {len(kinds)}: {answer.columns}")
    try:
        return in_one_form(answer.rows, kinds, time_unit=question["time_unit"])
    except NotATime as wrong:
        raise _Unreadable(f"its answer cannot be read: {wrong}") from wrong


def _summed_up(question: Mapping[str, Any], answer: sql.Answer, left: dict[tuple[str, str], int]) -> dict[str, Any]:
    rows = _in_one_form(question, answer)
    in_order, of_set = digests(rows)
    cells = len(rows) * len(answer.columns)
    key = (question["part"], question["query"])
    room = left.setdefault(key, _WHOLE_CELLS) - cells
    if room >= 0:
        left[key] = room
    return {
        "columns": list(answer.columns),
        "rows": len(rows),
        "digest": in_order,
        "digest_of_set": of_set,
        "first": dumped(rows[:_FIRST_ROWS]),
        "whole": dumped(rows) if room >= 0 else None,
    }


def _without_statement(words: str, statement: str) -> str:
    """What a store said, without the statement that it was asked: that is kept beside it."""
    return (
        " ".join(words.partition(" (asked: ")[0].split())[:500] if statement in words or len(statement) > 500 else words
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
