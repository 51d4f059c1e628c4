"""`published.observed`: what its columns become, and what each mistake in it is answered with."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from study_example import EXAMPLE, KINDS, written

import dyno.study
from dyno.model import measures
from dyno.model.published import ObservedTable
from dyno.model.sampled import SAMPLED
from dyno.observers.perf_record import PerfRecordOptions
from dyno.study import StudyError

REPOSITORY = Path(__file__).parents[3]

SEEN = """\
mode,ipc,insns_1e9,written_mb_s,await_us,copy_pct,note
DELETE,0.7,44.26,43.1,220,48.1,
WAL,0.8,,41.8,230,,"fewer"
TRUNCATE,0.9,1,1,1,1,a mode of its own
"""
HOT = "threads,symbol,cycles_pct\n1,memcpy,48.1\n1,clear_page,9.76\n4,memcpy,20\n"

SECTION = """\
published:
  observed:
    - file: seen.csv
      map: {journal: mode}
      levels: {journal: {delete: DELETE, wal: WAL}}
      where: {threads: 4}
      columns:
        ipc: {of: server.instructions, over: server.cycles, note: of all that ran}
        insns_1e9: {of: server.instructions, per: 500000, times: 1e9}
        written_mb_s: {of: disk.written, per: s, unit: MB/s}
        await_us: {of: disk.w_await, unit: us}
        copy_pct: {group: copy}
"""


def load(folder: Path, more: str = SECTION, **rest) -> tuple[ObservedTable, ...]:
    (folder / "seen.csv").write_text(SEEN)
    (folder / "hot.csv").write_text(HOT)
    published = dyno.study.load(written(folder, EXAMPLE + more), KINDS, **rest).published
    assert published is not None
    return published.observed


def test_columns_become_figures_in_the_units_of_what_is_measured(tmp_path: Path) -> None:
    (table,) = load(tmp_path)
    assert (table.file, table.where, table.left_out) == ("seen.csv", {"threads": ("4",)}, ("note",))
    assert table.notes == {"ipc": "of all that ran"}
    of_delete = {each.column: each for each in table.figures if each.levels == {"journal": "delete"}}
    assert {column: each.value for column, each in of_delete.items()} == pytest.approx(
        {"ipc": 0.7, "insns_1e9": 44.26e9 / 500_000, "written_mb_s": 43.1, "await_us": 220, "copy_pct": 48.1}
    )
    units = {column: each.unit for column, each in of_delete.items()}
    assert units == {"ipc": "1", "insns_1e9": "1", "written_mb_s": "MB/s", "await_us": "us", "copy_pct": "%"}
    units = {column: each.quantity.measured_in for column, each in of_delete.items()}
    assert units == {"ipc": "1", "insns_1e9": "1", "written_mb_s": "B/s", "await_us": "ms", "copy_pct": "%"}
    # What is empty was not published, and a mode of its own is of no cell.
    assert [each.column for each in table.figures if each not in of_delete.values()] == [
        "ipc",
        "written_mb_s",
        "await_us",
    ]


def test_a_row_may_say_itself_how_many_operations_its_figures_are_of(tmp_path: Path) -> None:
    (tmp_path / "counted.csv").write_text("mode,ops,switches\ndelete,50159,82700\nwal,0,74082\n")
    column = "{switches: {of: driver.switches, per_column: ops}}"
    more = f"published: {{observed: [{{file: counted.csv, map: {{journal: mode}}, columns: {column}}}]}}\n"
    with pytest.raises(StudyError, match=r"counted.csv:3: switches: should be a number"):
        load(tmp_path, more)  # of no operations
    (tmp_path / "counted.csv").write_text("mode,ops,switches\ndelete,50159,82700\n")
    (table,) = load(tmp_path, more)
    assert [each.value for each in table.figures] == [82700 / 50159]
    assert table.left_out == ()
    with pytest.raises(StudyError, match=r"per_column: is of what was used, and stands instead of per"):
        load(tmp_path, more.replace("per_column: ops", "per: 5, per_column: ops"))


def test_a_row_may_be_of_a_function_that_it_names(tmp_path: Path) -> None:
    hot = "{file: hot.csv, map: {threads: threads}, columns: {cycles_pct: {symbols_in: symbol}}}"
    more = f"published:\n  observed:\n    - {hot}\n"
    (table,) = load(tmp_path, more)
    assert [(each.quantity.symbol, each.levels["threads"], each.value) for each in table.figures] == [
        ("memcpy", "1", 48.1),
        ("clear_page", "1", 9.76),
        ("memcpy", "4", 20.0),
    ]
    assert table.left_out == ()


def test_a_group_may_be_one_that_the_rules_of_the_study_know(tmp_path: Path) -> None:
    kinds = replace(KINDS, observers={**KINDS.observers, "perf-record": PerfRecordOptions})
    more = SECTION.replace("{group: copy}", "{group: parser}")
    rules = "observe: [{perf-record: {rules: [{group: parser, symbol: ^parse}]}}]\n"
    (tmp_path / "seen.csv").write_text(SEEN)
    path = written(tmp_path, EXAMPLE + rules + more)
    assert dyno.study.load(path, kinds).published.observed[0].figures[4].quantity.group == "parser"
    with pytest.raises(StudyError, match="unknown group 'parser'"):
        dyno.study.load(written(tmp_path, EXAMPLE + more), kinds)


MISTAKES = {
    "an unknown measure": (
        "server.instructions, over: server.cycles, note",
        "server.instruction, note",
        "27: published.observed[0].columns.ipc.of: unknown measure 'server.instruction'; did you mean 'server.instruct",
    ),
    "an unknown divisor": (
        "over: server.cycles",
        "over: disk.w_await",
        "27: published.observed[0].columns.ipc.over: unknown resource 'disk.w_await'",
    ),
    "a share that is divided": (
        "{of: server.instructions, over",
        "{of: server.sys_share, over",
        "27: published.observed[0].columns.ipc.over: only what was used is divided by what was used",
    ),
    "another kind of unit": (
        "unit: MB/s",
        "unit: ms",
        "29: published.observed[0].columns.written_mb_s.unit: unknown unit 'ms' (units: B/s, kB/s, MB/s",
    ),
    "a metric a second": (
        "unit: us",
        "per: s",
        "30: published.observed[0].columns.await_us.per: only what was used is of an operation or of a second, and",
    ),
    "an unknown group": (
        "{group: copy}",
        "{group: copies}",
        "31: published.observed[0].columns.copy_pct.group: unknown group 'copies'; did you mean 'copy'?",
    ),
    "two kinds at once": (
        "{group: copy}",
        "{group: copy, symbol: memcpy}",
        "31: published.observed[0].columns.copy_pct: should have one of of, group, symbol, symbols_in, module; it has",
    ),
    "nothing measured": (
        "{group: copy}",
        "{note: x}",
        "31: published.observed[0].columns.copy_pct: should have one of of, group, symbol, symbols_in, module; it has",
    ),
    "a list": (
        "{group: copy}",
        "[copy]",
        "31: published.observed[0].columns.copy_pct: should be the name of what is measured here or a mapping",
    ),
    "a share of operations": (
        "{group: copy}",
        "{group: copy, per: s}",
        "31: published.observed[0].columns.copy_pct.per: a share of the samples has no per; leave it out",
    ),
    "no operations": (
        "per: 500000",
        "per: 0",
        "28: published.observed[0].columns.insns_1e9.per: should be s, or a number of operations above 0",
    ),
    "an unknown column": (
        "        ipc:",
        "        icp:",
        "27: published.observed[0].columns.icp: unknown column 'icp'; did you mean 'ipc'? (columns of seen.csv: mode, ",
    ),
    "an unknown column of the map": (
        "{journal: mode}",
        "{journal: modes}",
        "23: published.observed[0].map.journal: unknown column 'modes'; did you mean 'mode'?",
    ),
    "an unknown factor": (
        "where: {threads: 4}",
        "where: {thread: 4}",
        "25: published.observed[0].where.thread: unknown factor 'thread'; did you mean 'threads'?",
    ),
    "an unknown level": (
        "where: {threads: 4}",
        "where: {threads: 3}",
        "25: published.observed[0].where.threads: unknown level '3' (levels of threads: 1, 4)",
    ),
    "a factor in two places": (
        "where: {threads: 4}",
        "where: {journal: wal}",
        "25: published.observed[0].where.journal: journal stands under map already; leave it out here",
    ),
    "a spelling that the file has not": (
        "delete: DELETE",
        "delete: Delete",
        "24: published.observed[0].levels.journal.delete: unknown value 'Delete'",
    ),
    "no cell of the study": (
        "      levels: {journal: {delete: DELETE, wal: WAL}}\n",
        "",
        "22: published.observed[0]: no row of seen.csv is of a cell of this study; say how it spells the levels",
    ),
    "an unknown key": (
        "note: of all that ran",
        "notes: x",
        "27: published.observed[0].columns.ipc.notes: unknown key",
    ),
    "a missing file": (
        "file: seen.csv",
        "file: sen.csv",
        "22: published.observed[0].file: 'sen.csv': no such file; did you mean 'seen.csv'?",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_with_file_line_and_key(name: str, tmp_path: Path) -> None:
    old, new, message = MISTAKES[name]
    assert old in SECTION
    with pytest.raises(StudyError) as caught:
        load(tmp_path, SECTION.replace(old, new))
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(f"study.yaml:{message}"), str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("0.7,", "much,", "seen.csv:2: ipc: should be a number, not 'much'"),
        ("0.7,", "-1,", "seen.csv:2: ipc: should be 0 or more, not '-1'"),
        ("TRUNCATE", "WAL", "seen.csv:4: ipc: gives journal=wal again, as line 3; choose rows with rows"),
    ],
)
def test_a_figure_that_is_none_is_answered_with_its_line_in_the_table(old, new, message, tmp_path: Path) -> None:
    load(tmp_path)
    (tmp_path / "other.csv").write_text(SEEN.replace(old, new))
    with pytest.raises(StudyError) as caught:
        load(tmp_path, SECTION.replace("seen.csv", "other.csv"))
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(message.replace("seen.csv", "other.csv"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(value=st.floats(1e-6, 1e12), times=st.floats(1e-3, 1e9), per=st.integers(1, 10**9))
def test_any_figure_is_taken_for_an_operation(value, times, per, tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text(f"mode,x\nwal,{value!r}\n")
    column = json.dumps({"of": "disk.written", "unit": "MB", "times": times, "per": per})
    more = f"published: {{observed: [{{file: one.csv, map: {{journal: mode}}, columns: {{x: {column}}}}}]}}\n"
    (figure,) = load(tmp_path, more)[0].figures
    assert figure.value == pytest.approx(value * times / per)
    assert figure.unit == "MB"


def test_the_metrics_of_samples_are_those_of_the_sampler() -> None:
    told = json.loads((REPOSITORY / "schema" / "metrics.json").read_text())["metrics"]
    units = {each["name"]: each["unit"].replace("bytes", "B") for each in told if each["source"] == "machine"}
    assert {name: units.get(name) for name in SAMPLED} == SAMPLED
    assert [name for name in SAMPLED if measures.is_one(name)] == ["disk.util"]
