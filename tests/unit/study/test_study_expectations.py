"""`targets` and `published`: what they become, and what each mistake in them is answered with."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from study_example import EXAMPLE, KINDS, written

import dyno.study
from dyno.model.published import MeanIs, Peak, RatioIs, TrendIs, WithinIs
from dyno.model.study import Study
from dyno.study import StudyError, figures
from dyno.study.figures import TableSpec
from dyno.study.loader import parse_file
from dyno.study.tree import plain

FIGURES = """\
mode,clients,ops,low,high,note
DELETE,1,100,90,110,
WAL,1,300,280,320,"the best, by far"
DELETE,4,150,,,
WAL,4,,,,not measured
TRUNCATE,1,90,,,a mode of its own
"""

TABLE = """\
published:
  tables:
    - file: figures.csv
      response: throughput
      value: ops
      interval: [low, high]
      map: {journal: mode, threads: clients}
      levels: {journal: {delete: DELETE, wal: WAL}}
"""

FINDINGS = """\
some-study:
  - {id: faster, says: wal is faster, here: yes}
  - {id: cycles, says: wal takes fewer cycles, here: counters, note: on their machine}
other: {id: x}
"""


def load(folder: Path, more: str = "", scale: str = "default", overrides: tuple[str, ...] = ()) -> Study:
    (folder / "figures.csv").write_text(FIGURES)
    (folder / "findings.yaml").write_text(FINDINGS)
    return dyno.study.load(written(folder, EXAMPLE + more), KINDS, scale=scale, overrides=overrides)


def refused(folder: Path, more: str, **rest) -> str:
    with pytest.raises(StudyError) as caught:
        load(folder, more, **rest)
    return str(caught.value).replace(f"{folder}/", "")


def finding(predicate: str) -> str:
    return f"published:\n  findings:\n    - id: x\n      says: y\n      predicate: {predicate}\n"


# Targets


def test_targets_are_bounds_of_responses_also_of_single_operations(tmp_path: Path) -> None:
    study = load(tmp_path, 'targets: {latency_p99: < 5 ms, read.latency_p99: < 1 s, throughput: ">= 12000 ops/s"}\n')
    assert [(target.response, target.bound, target.where) for target in study.targets] == [
        ("latency_p99", "< 5 ms", {}),
        ("read.latency_p99", "< 1 s", {}),
        ("throughput", ">= 12000 ops/s", {}),
    ]


def test_a_target_may_be_asked_of_some_cells(tmp_path: Path) -> None:
    study = load(tmp_path, 'targets:\n- {response: throughput, bound: "> 5 ops/s", where: {threads: 4}}\n')
    assert study.targets[0].where == {"threads": ("4",)}
    study = load(tmp_path, "targets:\n- {response: cpu.util, bound: < 70 %, where: {journal: [wal, delete]}}\n")
    assert study.targets[0].where == {"journal": ("wal", "delete")}


@pytest.mark.parametrize("more", ["", "targets: null\n", "targets: {}\n", "targets: []\n", "published: null\n"])
def test_without_targets_there_are_none(more, tmp_path: Path) -> None:
    study = load(tmp_path, more)
    assert (study.targets, study.published) == ((), None)


def test_a_level_that_only_a_scale_leaves_out_may_be_named(tmp_path: Path) -> None:
    more = 'targets: [{response: throughput, bound: "> 5 ops/s", where: {threads: 4}}]\n'
    assert load(tmp_path, more, overrides=("factors.threads=[1]",)).targets[0].where == {"threads": ("4",)}


TARGETS = {
    "an unknown response": (
        "targets:\n  latency_p98: < 5 ms\n",
        "21: targets.latency_p98: unknown response 'latency_p98'; did you mean 'latency_p99'?",
    ),
    "another kind of unit": (
        "targets:\n  latency_p99: < 5 ops/s\n",
        "21: targets.latency_p99: '< 5 ops/s' is not in a unit of what it bounds (units: s, ms, us, ns, min)",
    ),
    "no unit": ("targets: {latency_p99: < 5}\n", "20: targets.latency_p99: '< 5' has no unit; write it as < 5 ms"),
    "no side": (
        "targets: {latency_p99: 5 ms}\n",
        "20: targets.latency_p99: '5 ms' says no side; write < 5 ms or >= 5 ms",
    ),
    "a sign that YAML takes for its own": (
        "targets:\n  throughput: >= 12000 ops/s\n",
        "21: not valid YAML: while scanning a block scalar: ",
    ),
    "the same within braces": ("targets: {throughput: > 1 ops/s}\n", "20: not valid YAML: "),
    "no mapping": (
        "targets: < 5 ms\n",
        "20: targets: should map responses to bounds, such as {latency_p99: < 5 ms}, not '< 5 ms'",
    ),
    "an unknown key": (
        "targets:\n- {response: throughput, bond: < 5 ops/s}\n",
        "21: targets[0].bond: unknown key; did you mean 'bound'? (keys: response, bound, where)",
    ),
    "an unknown response in a list": (
        "targets:\n- {response: speed, bound: < 5 ops/s}\n",
        "21: targets[0].response: unknown response 'speed' (responses, each also",
    ),
    "an unknown factor": (
        'targets:\n- {response: throughput, bound: "> 5 ops/s", where: {thread: 4}}\n',
        "21: targets[0].where.thread: unknown factor 'thread'; did you mean 'threads'? (factors: journal, threads)",
    ),
    "an unknown level": (
        'targets:\n- {response: throughput, bound: "> 5 ops/s", where: {threads: 8}}\n',
        "21: targets[0].where.threads: unknown level '8' (levels of threads: 1, 4)",
    ),
    "an unknown level of several": (
        'targets:\n- response: throughput\n  bound: "> 5 ops/s"\n  where:\n    threads:\n    - 1\n    - 8\n',
        "26: targets[0].where.threads[1]: unknown level '8' (levels of threads: 1, 4)",
    ),
    "a level that is none": (
        'targets:\n- {response: throughput, bound: "> 5 ops/s", where: {threads: {at: 4}}}\n',
        "21: targets[0].where: threads should be a level or a list of levels, such as {threads: [1, 4]}",
    ),
    "a factor's level put in": (
        "targets: {latency_p99: '< ${threads} ms'}\n",
        "20: targets.latency_p99: '< ${threads} ms' cannot stand here: a factor acts only under host, system",
    ),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_mistake_in_targets_is_answered_with_line_key_and_remedy(name, tmp_path: Path) -> None:
    more, message = TARGETS[name]
    assert refused(tmp_path, more).startswith(f"study.yaml:{message}")


@pytest.mark.parametrize("name", ["a sign that YAML takes for its own", "the same within braces"])
def test_what_yaml_cannot_read_says_to_quote_it(name, tmp_path: Path) -> None:
    assert refused(tmp_path, TARGETS[name][0]).endswith("; quote a text that begins with '>'")


# Tables


def test_a_table_s_rows_become_figures_of_the_study_s_cells(tmp_path: Path) -> None:
    (table,) = load(tmp_path, TABLE).published.tables
    assert (table.file, table.response, table.same_within) == ("figures.csv", "throughput", 0.1)
    # The row without a figure was not published, and that of another mode is of no cell here.
    assert [(figure.levels, figure.value, figure.interval) for figure in table.figures] == [
        ({"journal": "delete", "threads": "1"}, 100.0, (90.0, 110.0)),
        ({"journal": "wal", "threads": "1"}, 300.0, (280.0, 320.0)),
        ({"journal": "delete", "threads": "4"}, 150.0, None),
    ]


def listed(folder: Path, columns: str = "Journal,THREADS,throughput_ops_s,note", rows: str = "WAL,1,300,\n", **rest):
    (folder / "listed.csv").write_text(f"{columns}\n{rows}")
    (folder / "said.yaml").write_text(FINDINGS.replace("some-study", "sqlite-journal"))
    return load(folder, "published: [listed.csv, said.yaml]\n", **rest).published


def test_a_list_of_files_is_read_by_the_names_of_their_columns_and_sections(tmp_path: Path) -> None:
    published = listed(tmp_path, rows="WAL,1,300,\nDelete,4,150,x\n")
    (table,) = published.tables
    assert (table.file, table.response) == ("listed.csv", "throughput")
    assert [(figure.levels, figure.value) for figure in table.figures] == [
        ({"journal": "wal", "threads": "1"}, 300.0),
        ({"journal": "delete", "threads": "4"}, 150.0),
    ]
    assert [claim.id for claim in published.findings] == ["faster", "cycles"]
    assert [each.file for each in published.files] == ["listed.csv", "said.yaml"]


@pytest.mark.parametrize(
    ("column", "response", "value"),
    [
        ("throughput", "throughput", 300.0),
        ("throughput_1_s", "throughput", 300.0),
        ("latency_p99_us", "latency_p99", 0.3),
        ("latency_p99", "latency_p99", 300.0),
        ("cpu.util_pct", "cpu.util", 300.0),
    ],
)
def test_a_column_of_figures_may_have_its_unit_behind_its_name(column, response, value, tmp_path: Path) -> None:
    (table,) = listed(tmp_path, f"journal,threads,{column}", "wal,1,300\n").tables
    assert (table.response, table.figures[0].value) == (response, pytest.approx(value))


LONG = "; say what the columns hold under published.tables"


@pytest.mark.parametrize(
    ("columns", "rows", "message"),
    [
        (
            "journal,clients,throughput",
            "wal,1,3\n",
            "listed.csv:1: threads: no column is named as this factor (columns: journal, clients, throughput)" + LONG,
        ),
        (
            "journal,threads,ops",
            "wal,1,3\n",
            "listed.csv:1: no column is named as a response (columns: journal, threads, ops)" + LONG,
        ),
        (
            "journal,threads,throughput,latency_p99_ms",
            "wal,1,3,4\n",
            "listed.csv:1: throughput, latency_p99_ms are all named as a response (columns: journal, threads, ",
        ),
        (
            "journal,threads,throughput",
            "wal,1,3\ntruncate,1,4\n",
            "listed.csv:3: journal: 'truncate' is no level of journal (levels: delete, wal)" + LONG,
        ),
        (
            "journal,threads,throughput",
            "wal,1,3\nWAL,4,4\n",
            "listed.csv:3: journal: 'WAL' and 'wal' are both journal=wal" + LONG,
        ),
    ],
)
def test_what_a_listed_table_leaves_unsaid_is_one_error_with_the_long_form(
    columns, rows, message, tmp_path: Path
) -> None:
    with pytest.raises(StudyError) as caught:
        listed(tmp_path, columns, rows)
    assert str(caught.value).replace(f"{tmp_path}/", "").startswith(message)


def test_a_scale_without_some_levels_leaves_their_rows_out(tmp_path: Path) -> None:
    published = listed(tmp_path, rows="wal,1,300,\nwal,8,150,\n", overrides=("factors.threads=[1]",))
    assert [figure.value for figure in published.tables[0].figures] == [300.0]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("published: [figures.txt]\n", "20: published[0]: should be a CSV file of figures or a YAML file of findings"),
        ("published: [{file: x}]\n", "20: published[0]: should be a CSV file of figures or a YAML file of findings"),
        (
            "published: [findings.yaml]\n",
            "20: published[0]: unknown section 'sqlite-journal' (sections of findings.yaml: some-study, other); name",
        ),
        ("published: [none.csv]\n", "20: published[0]: 'none.csv': no such file"),
    ],
)
def test_a_mistake_in_a_list_of_files_is_answered_with_its_line(more, message, tmp_path: Path) -> None:
    assert refused(tmp_path, more).startswith(f"study.yaml:{message}")


def test_a_figure_below_zero_is_refused(tmp_path: Path) -> None:
    assert load(tmp_path, TABLE).published
    (tmp_path / "below.csv").write_text(FIGURES.replace("WAL,1,300,280", "WAL,1,-5,-9"))
    assert refused(tmp_path, TABLE.replace("figures.csv", "below.csv")).startswith(
        "below.csv:3: ops: should be 0 or more, not '-5'"
    )


def test_a_precision_that_was_stated_is_an_interval_of_each_figure(tmp_path: Path) -> None:
    more = TABLE.replace("interval: [low, high]", "precision: 5%")
    (table,) = load(tmp_path, more).published.tables
    assert table.figures[2].interval == pytest.approx((142.5, 157.5))


def test_figures_are_taken_in_the_unit_of_the_response(tmp_path: Path) -> None:
    more = TABLE.replace("response: throughput", "response: latency_p99\n      unit: us")
    (table,) = load(tmp_path, more).published.tables
    assert table.figures[0].value == pytest.approx(0.1)
    assert table.figures[0].interval == pytest.approx((0.09, 0.11))


def test_rows_are_chosen_and_a_factor_without_a_column_has_its_level(tmp_path: Path) -> None:
    more = TABLE.replace("threads: clients}", "}\n      at: {threads: 4}\n      rows: {clients: 1}")
    (table,) = load(tmp_path, more).published.tables
    assert [figure.levels["threads"] for figure in table.figures] == ["4", "4"]


def test_the_files_are_in_the_plan_by_checksum_and_can_be_kept(tmp_path: Path) -> None:
    study = load(tmp_path, TABLE)
    assert [each.file for each in study.published.files] == ["figures.csv"]
    assert dyno.study.attached(tmp_path / "study.yaml", study) == {"figures.csv": FIGURES.encode()}
    (tmp_path / "figures.csv").write_text(FIGURES + "\n")
    with pytest.raises(StudyError, match="was changed while it was read"):
        dyno.study.attached(tmp_path / "study.yaml", study)


def test_a_scale_with_other_levels_may_have_no_published_figure(tmp_path: Path) -> None:
    more = TABLE + "      rows: {note: none such}\n"
    assert "no row of figures.csv is of a cell of this study" in refused(tmp_path, more)
    assert load(tmp_path, more, scale="smoke").published.tables[0].figures == ()


TABLES = {
    "a file that is missing": (
        ("file: figures.csv", "file: figure.csv"),
        "22: published.tables[0].file: 'figure.csv': no such file; did you mean 'figures.csv'?",
    ),
    "a path of one machine": (
        ("file: figures.csv", "file: /data/figures.csv"),
        "22: published.tables[0].file: '/data/figures.csv' should be a path from the study file",
    ),
    "an unknown response": (
        ("response: throughput", "response: speed"),
        "23: published.tables[0].response: unknown response 'speed'",
    ),
    "an unknown column": (
        ("value: ops", "value: op"),
        "24: published.tables[0].value: unknown column 'op'; did you mean 'ops'? (columns of figures.csv: mode, clie",
    ),
    "an unknown column of the interval": (
        ("[low, high]", "[lo, high]"),
        "25: published.tables[0].interval[0]: unknown column 'lo'; did you mean 'low'?",
    ),
    "an unknown column of a factor": (
        ("journal: mode", "journal: modes"),
        "26: published.tables[0].map.journal: unknown column 'modes'; did you mean 'mode'?",
    ),
    "an unknown column of the rows": (
        ("value: ops", "value: ops\n      rows: {notes: x}"),
        "25: published.tables[0].rows.notes: unknown column 'notes'; did you mean 'note'?",
    ),
    "an unknown factor": (
        ("journal: mode", "journals: mode"),
        "26: published.tables[0].map.journals: unknown factor 'journals'; did you mean 'journal'?",
    ),
    "a factor without a column": (
        ("journal: mode, threads: clients", "journal: mode"),
        "22: published.tables[0]: says nothing of threads; name a column under map, or a level under at",
    ),
    "a factor with a column and a level": (
        ("value: ops", "value: ops\n      at: {threads: 1}"),
        "22: published.tables[0]: threads stands under map and under at; keep one of them",
    ),
    "a spelling that the file has not": (
        ("delete: DELETE", "delete: Delete"),
        "27: published.tables[0].levels.journal.delete: unknown value 'Delete'; did you mean 'DELETE'?",
    ),
    "a spelling of an unknown level": (
        ("delete: DELETE", "delte: DELETE"),
        "27: published.tables[0].levels.journal.delte: unknown level 'delte'; did you mean 'delete'?",
    ),
    "two kinds of interval": (
        ("value: ops", "value: ops\n      precision: 5%"),
        "22: published.tables[0]: give interval or precision, not both",
    ),
    "a unit of another kind": (
        ("value: ops", "value: ops\n      unit: ms"),
        "25: published.tables[0].unit: unknown unit 'ms' (units: ops/s",
    ),
    "an unknown key": (
        ("value: ops", "values: ops"),
        "24: published.tables[0].values: unknown key; did you mean 'value'? (keys: file, response, value, unit",
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_a_mistake_in_a_table_s_mapping_is_answered_with_line_key_and_remedy(name, tmp_path: Path) -> None:
    (old, new), message = TABLES[name]
    assert refused(tmp_path, TABLE.replace(old, new)).startswith(f"study.yaml:{message}")


FILES = {
    "a figure that is no number": (
        FIGURES.replace("100,90", "hundred,90"),
        "figures.csv:2: ops: should be a number, not 'hundred'",
    ),
    "a figure that is infinite": (FIGURES.replace("100,90", "inf,90"), "figures.csv:2: ops: should be a number"),
    "a figure outside its interval": (
        FIGURES.replace("100,90,110", "80,90,110"),
        "figures.csv:2: ops: 80 lies outside its interval, 90 to 110",
    ),
    "a cell twice": (
        FIGURES + "WAL,1,301,,,\n",
        "figures.csv:7: gives journal=wal, threads=1 again, as line 3; choose rows with rows: {column: value}",
    ),
    "a row too short": (FIGURES + "WAL,1\n", "figures.csv:7: has 2 fields, and the first line names 6 columns"),
    "a column twice": (
        FIGURES.replace("note", "mode", 1),
        "figures.csv:1: mode: this column is named twice; rename one of them",
    ),
    "nothing": ("", "figures.csv:1: should begin with a line of column names"),
    "a quote that is not closed": (
        FIGURES + '"WAL,1,1,1,1,x\n',
        "figures.csv:7: not valid CSV: unexpected end of data",
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_mistake_in_a_file_of_figures_is_answered_with_its_own_line(name, tmp_path: Path) -> None:
    text, message = FILES[name]
    (tmp_path / "published").mkdir()
    (tmp_path / "published" / "figures.csv").write_text(text)
    said = refused(tmp_path, TABLE.replace("file: figures.csv", "file: published/figures.csv"))
    assert said.startswith(f"published/{message}")


def test_two_files_of_one_name_cannot_both_be_kept(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "figures.csv").write_text(FIGURES)
    second = TABLE.removeprefix("published:\n  tables:\n").replace("file: figures.csv", "file: more/figures.csv")
    assert "another file is called 'figures.csv' too" in refused(tmp_path, TABLE + second)


def test_a_file_that_is_not_utf_8_is_named(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes(b"mode\n\xe9\n")
    said = refused(tmp_path, TABLE.replace("figures.csv", "latin.csv"))
    assert "'latin.csv': byte 6 is not UTF-8" in said


@given(st.one_of(st.text(max_size=200), st.text(alphabet='ab1,"\n\r.', max_size=60)))
def test_any_text_is_a_table_of_whole_rows_or_has_a_problem(text: str) -> None:
    problems = []
    table = figures.parse(text, "f.csv", problems)
    assert (table is None) == bool(problems)
    if table:
        assert all(tuple(row) == table.columns for _, row in table.rows)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 9), st.floats(0.001, 1e9)), max_size=9))
def test_each_figure_that_is_written_is_read_back_once(rows) -> None:
    text = "name,n,ops\n" + "".join(f"{name},{n},{value!r}\n" for name, n, value in rows)
    spec = TableSpec(file="f.csv", response="throughput", value="ops", map={"f": "name", "g": "n"})
    problems = []
    levels = {"f": ("a", "b"), "g": tuple("12345")}
    found = figures.figures(figures.parse(text, "f.csv", []), spec, levels, "ops/s", problems)
    ours = [(name, str(n), value) for name, n, value in rows if n <= 5]
    first = {(name, n): value for name, n, value in reversed(ours)}
    assert {(figure.levels["f"], figure.levels["g"]): figure.value for figure in found} == first
    assert len(problems) == len(ours) - len(first)


# Findings


def test_findings_of_a_file_get_the_predicates_of_the_study(tmp_path: Path) -> None:
    more = """\
published:
  findings_in: {file: findings.yaml, section: some-study}
  findings:
    - id: faster
      predicate: {ratio: {of: throughput, b: {journal: wal}, a: {journal: delete}}, is: "> 1"}
    - {id: mine, says: it is quick, here: disk, needs: one CPU}
"""
    faster, cycles, mine = load(tmp_path, more).published.findings
    assert (faster.says, faster.here, faster.predicate.wanted, faster.predicate.cells) == (
        "wal is faster",
        "yes",
        "> 1",
        "every cell",
    )
    assert (cycles.here, cycles.note, cycles.predicate) == ("counters", "on their machine", None)
    assert (mine.says, mine.here, mine.needs) == ("it is quick", "disk", "one CPU")


def test_a_predicate_is_what_its_key_says(tmp_path: Path) -> None:
    more = finding(
        "\n        all:"
        "\n        - {ratio: {of: throughput, b: {threads: 4}, a: {threads: 1}}, is: '> 1.5', in: some cell}"
        "\n        - {within: {of: throughput, b: {threads: 4}, a: {threads: 1}, margin: 2%}}"
        "\n        - {mean: {of: latency_p99, where: {threads: [1, 4]}}, is: < 5 ms}"
        "\n        - any:"
        "\n          - {trend: {of: throughput, over: threads, where: {journal: wal}}, is: falls}"
        "\n          - {trend: {of: throughput, over: threads}, is: {peaks-at: 4}}"
    )
    (claim,) = load(tmp_path, more).published.findings
    ratio, within, mean, group = claim.predicate.all
    assert isinstance(ratio, RatioIs)
    assert ratio.ratio.b == {"threads": "4"}
    assert isinstance(within, WithinIs)
    assert within.within.margin == 0.02
    assert isinstance(mean, MeanIs)
    assert mean.mean.where == {"threads": ("1", "4")}
    falls, peaks = group.any
    assert isinstance(falls, TrendIs)
    assert (falls.wanted, peaks.wanted) == ("falls", Peak(at="4"))


def test_a_predicate_may_be_of_removals_of_calls_and_of_quotients(tmp_path: Path) -> None:
    more = finding(
        "\n        all:"
        "\n        - {removal: {transaction: payment, component: log}, is: largest}"
        "\n        - {removal: {transaction: payment, component: [log, keys], of: cycles, over: instructions}, is: < 1}"
        "\n        - {calls: {transaction: payment, made: {lookup: 3}, where: {threads: 1}}}"
        "\n        - {mean: {of: new_order.instructions, over: payment.instructions}, is: 8 to 12}"
    )
    (claim,) = load(tmp_path, more).published.findings
    largest, shares, calls, mean = claim.predicate.all
    assert (largest.removal.component, largest.wanted) == (("log",), "largest")
    assert (shares.removal.of, shares.removal.over) == ("cycles", "instructions")
    assert (calls.calls.made, calls.calls.where) == ({"lookup": 3}, {"threads": ("1",)})
    assert mean.mean.over == "payment.instructions"


REMOVED = "transaction,component,pct,note\npay,logging,18,about\npay,rest,5,\nnew,logging,,\n"
REMOVAL = """\
published:
  removal:
    file: removed.csv
    value: pct
    unit: "%"
    note: note
    transactions: {payment: pay}
    components: {log: logging, left: rest}
"""


def test_published_shares_of_removals_are_read_by_the_names_that_the_study_gives(tmp_path: Path) -> None:
    (tmp_path / "removed.csv").write_text(REMOVED)
    read = load(tmp_path, REMOVAL).published.removal
    assert [(each.transaction, each.component, each.share, each.note) for each in read.shares] == [
        ("payment", "log", 0.18, "about"),
        ("payment", "left", 0.05, ""),
    ]


@pytest.mark.parametrize(
    ("was", "becomes", "message"),
    [
        ("value: pct", "value: pc", "published.removal.value: unknown column 'pc'; did you mean 'pct'?"),
        ("log: logging", "logs: logging", "published.removal.components.logs: unknown component 'logs'"),
        ("left: rest", "left: remaining", "published.removal.components.left: unknown value 'remaining'"),
        ('unit: "%"', "unit: ms", "published.removal.unit: unknown unit 'ms'"),
    ],
)
def test_a_mistake_in_published_removals_is_answered_where_it_is(tmp_path: Path, was, becomes, message) -> None:
    (tmp_path / "removed.csv").write_text(REMOVED)
    assert message in refused(tmp_path, REMOVAL.replace(was, becomes))


def test_a_published_share_that_is_no_number_is_answered_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "removed.csv").write_text(REMOVED.replace("18", "a fifth"))
    assert "removed.csv:2: pct: should be a number, not 'a fifth'" in refused(tmp_path, REMOVAL)


def test_a_predicate_may_be_of_what_was_used(tmp_path: Path) -> None:
    more = finding(
        "\n        all:"
        "\n        - {within: {of: server.switches, b: {threads: 4}, a: {threads: 1}, margin: 1%}}"
        "\n        - {mean: {of: machine.sys_share}, is: < 70 %}"
        "\n        - {trend: {of: disk.written, over: threads}, is: rises}"
    )
    (claim,) = load(tmp_path, more).published.findings
    within, mean, trend = claim.predicate.all
    assert (within.within.of, mean.mean.of, trend.trend.of) == ("server.switches", "machine.sys_share", "disk.written")


def test_a_target_may_be_of_what_was_used(tmp_path: Path) -> None:
    (target,) = load(tmp_path, "targets: {server.cpu: < 5 us}\n").targets
    assert (target.response, target.bound) == ("server.cpu", "< 5 us")
    assert "did you mean 'server.cpu'?" in refused(tmp_path, "targets: {server.cpus: < 5 us}\n")


def test_tables_of_figures_are_of_responses_alone(tmp_path: Path) -> None:
    more = TABLE.replace("response: throughput", "response: server.cpu")
    assert "unknown response 'server.cpu'" in refused(tmp_path, more)


def test_a_plan_with_everything_in_it_is_read_back_as_it_was(tmp_path: Path) -> None:
    more = TABLE + finding("{trend: {of: throughput, over: threads}, is: {peaks-at: 4}}").removeprefix("published:\n")
    study = load(tmp_path, more + "targets: {latency_p99: < 5 ms}\n")
    assert Study.model_validate(json.loads(study.model_dump_json())) == study


RATIO = "{of: throughput, b: {threads: 4}, a: {threads: 1}}"
PREDICATES = {
    "no kind": (
        "{rato: 5}",
        "predicate: should have one of ratio, within, mean, trend, removal, calls, all, any as a key; it has rato",
    ),
    "no mapping": (
        "faster",
        "predicate: should have one of ratio, within, mean, trend, removal, calls, all, any, not 'faster'",
    ),
    "two kinds": (f"{{ratio: {RATIO}, within: 5}}", "predicate: should have one of"),
    "a bound that is none": (
        f"{{ratio: {RATIO}, is: more}}",
        "predicate.is: 'more' is no bound; write <, <=, > or >= and a number with its unit, such as < 5",
    ),
    "a bound that is missing": (f"{{ratio: {RATIO}}}", "predicate.is: this required key is missing"),
    "a ratio with a unit": (
        f"{{ratio: {RATIO}, is: < 5 ms}}",
        "predicate.is: '< 5 ms' is not in a unit of what it bounds (units: %)",
    ),
    "a mean in another unit": (
        "{mean: {of: latency_p99}, is: < 5 ops/s}",
        "predicate.is: '< 5 ops/s' is not in a unit of what it bounds (units: s, ms, us, ns, min)",
    ),
    "an unknown response": (
        "{mean: {of: latency}, is: < 5 ms}",
        "predicate.mean.of: unknown response 'latency'",
    ),
    "an unknown level": (
        "{ratio: {of: throughput, b: {threads: 8}, a: {threads: 1}}, is: < 5}",
        "predicate.ratio.b.threads: unknown level '8' (levels of threads: 1, 4)",
    ),
    "sides of different factors": (
        "{ratio: {of: throughput, b: {threads: 4}, a: {journal: wal}}, is: < 5}",
        "predicate.ratio: a and b should give levels of the same factors, such as {threads: 1} and {threads: 4}",
    ),
    "sides that are the same": (
        "{ratio: {of: throughput, b: {threads: 4}, a: {threads: 4}}, is: < 5}",
        "predicate.ratio: a and b are the same; a ratio is of two cells",
    ),
    "a side that is chosen again": (
        "{ratio: {of: throughput, b: {threads: 4}, a: {threads: 1}, where: {threads: 1}}, is: < 5}",
        "predicate.ratio.where.threads: a and b have their threads already; leave it out here",
    ),
    "a side of several levels": (
        "{ratio: {of: throughput, b: {threads: [1, 4]}, a: {threads: 1}}, is: < 5}",
        "predicate.ratio.b: should be a mapping of factors to one level each, such as {threads: 4}",
    ),
    "a trend over what is no factor": (
        "{trend: {of: throughput, over: thread}, is: rises}",
        "predicate.trend.over: unknown factor 'thread'; did you mean 'threads'?",
    ),
    "a trend of no kind": ("{trend: {of: throughput, over: threads}, is: grows}", "predicate.is: should be one of"),
    "a peak at no level": (
        "{trend: {of: throughput, over: threads}, is: {peaks-at: 5}}",
        "predicate.is.peaks-at: unknown level '5' (levels of threads: 1, 4)",
    ),
    "a margin without its unit": (
        "{within: {of: throughput, b: {threads: 4}, a: {threads: 1}, margin: 0.02}}",
        "predicate.within.margin: 0.02 has no unit: write it as 2.00% (units: %)",
    ),
    "cells of no kind": (
        f"{{ratio: {RATIO}, is: < 5, in: most cells}}",
        "predicate.in: should be one of every cell, some cell, all together; not 'most cells'",
    ),
    "a removal of what is no component": (
        "{removal: {transaction: payment, component: [keys, logs]}, is: '> 10%'}",
        "predicate.removal.component: unknown component 'logs'; did you mean 'log'?",
    ),
    "a removal that is neither of two": (
        "{removal: {transaction: payment, component: log}, is: most}",
        "predicate.is: 'most' is no bound",
    ),
    "calls of a cell that there is not": (
        "{calls: {transaction: payment, made: {lookup: 3}, where: {threads: 8}}}",
        "predicate.calls.where.threads: unknown level '8'",
    ),
    "calls of no number": (
        "{calls: {transaction: payment, made: {lookup: few}}}",
        "predicate.calls.made.lookup: should be a whole number",
    ),
    "a figure over what there is not": (
        "{mean: {of: payment.instructions, over: payment.instruction}, is: '> 1'}",
        "predicate.mean.over: unknown response 'payment.instruction'",
    ),
    "a group of nothing": ("{all: []}", "predicate.all: should have a predicate or more; an empty list says nothing"),
    "a group that is no list": ("{any: 5}", "predicate.any: should be a list of predicates, not 5"),
    "a key beside a group": (
        f"{{all: [{{ratio: {RATIO}, is: < 5}}], in: some cell}}",
        "predicate.in: cannot stand beside all; put it into the predicates below",
    ),
    "a mistake within a group": (
        "{all: [{any: [{mean: {of: speed}, is: < 5}]}]}",
        "predicate.all[0].any[0].mean.of: unknown response 'speed'",
    ),
}


@pytest.mark.parametrize("name", PREDICATES)
def test_a_mistake_in_a_predicate_is_answered_with_line_key_and_remedy(name, tmp_path: Path) -> None:
    predicate, message = PREDICATES[name]
    said = refused(tmp_path, finding(predicate))
    assert said.startswith(f"study.yaml:24: published.findings[0].{message}")


SECTIONS = {
    "a finding that the file has not": (
        "  findings_in: {file: findings.yaml, section: some-study}\n  findings: [{id: fastr}]\n",
        "22: published.findings[0].id: unknown finding 'fastr'; did you mean 'faster'? (findings in the file: faster",
    ),
    "a finding that says nothing": (
        "  findings: [{id: fast}]\n",
        "21: published.findings[0].id: unknown finding 'fast' (findings in the file: none), or give says",
    ),
    "a finding twice": (
        "  findings:\n  - {id: a, says: b}\n  - {id: a, says: c}\n",
        "23: published.findings[1].id: 'a' stands here a second time; a finding has a name of its own",
    ),
    "what no machine has": (
        "  findings: [{id: a, says: b, here: moon}]\n",
        "21: published.findings[0].here: should be one of yes, counters, hosts, disk, kvm; not 'moon'",
    ),
    "an unknown section": (
        "  findings_in: {file: findings.yaml, section: some-studi}\n",
        "21: published.findings_in.section: unknown section 'some-studi'; did you mean 'some-study'?",
    ),
    "a section that is no list": (
        "  findings_in: {file: findings.yaml, section: other}\n",
        "21: published.findings_in.section: 'other' should be a list of findings in findings.yaml",
    ),
    "a file that is missing": (
        "  findings_in: {file: finding.yaml, section: other}\n",
        "21: published.findings_in.file: 'finding.yaml': no such file; did you mean 'findings.yaml'?",
    ),
    "an unknown key": (
        "  figures: []\n",
        "21: published.figures: unknown key (keys: tables, observed, removal, findings_in, findings)",
    ),
}


@pytest.mark.parametrize("name", SECTIONS)
def test_a_mistake_in_the_section_is_answered_with_line_key_and_remedy(name, tmp_path: Path) -> None:
    more, message = SECTIONS[name]
    assert refused(tmp_path, f"published:\n{more}").startswith(f"study.yaml:{message}")


def test_a_mistake_in_a_file_of_findings_is_answered_with_its_own_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("s:\n  - {id: a, says: b}\n  - {id: c, sais: d}\n")
    said = refused(tmp_path, "published: {findings_in: {file: mine.yaml, section: s}}\n")
    assert said.startswith("mine.yaml:3: s[1].sais: unknown key; did you mean 'says'?")
    (tmp_path / "mine.yaml").write_text("s: [\n")
    assert "mine.yaml:" in refused(tmp_path, "published: {findings_in: {file: mine.yaml, section: s}}\n")


# The schema


def is_valid(folder: Path, more: str) -> bool:
    values = plain(parse_file((EXAMPLE + more).encode(), "study.yaml"))
    return bool(jsonschema.Draft202012Validator(dyno.study.json_schema(KINDS)).is_valid(values))


def test_the_schema_takes_all_forms(tmp_path: Path) -> None:
    deep = finding(f"{{all: [{{any: [{{ratio: {RATIO}, is: '> 1', in: some cell}}]}}]}}")
    assert is_valid(tmp_path, "targets: {latency_p99: < 5 ms}\n")
    assert is_valid(tmp_path, "targets: [{response: throughput, bound: < 5 ops/s, where: {threads: [1, 4]}}]\n")
    assert is_valid(tmp_path, TABLE)
    assert is_valid(tmp_path, deep)
    assert is_valid(tmp_path, finding("{trend: {of: throughput, over: threads}, is: {peaks-at: 4}}"))


@pytest.mark.parametrize(
    "more",
    [
        "targets: < 5 ms\n",
        "targets: [{response: throughput, bond: < 5 ops/s}]\n",
        TABLE.replace("value: ops", "values: ops"),
        finding("{rato: 5}"),
        finding("{all: []}"),
        finding(f"{{ratio: {RATIO}}}"),
        finding(f"{{all: [{{ratio: {RATIO}, is: '> 1', of: x}}]}}"),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(more, tmp_path: Path) -> None:
    assert not is_valid(tmp_path, more)
    refused(tmp_path, more)


SCALAR = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["> 1", "wal", "threads", "throughput"])
)
WORD = st.sampled_from(
    [
        *("ratio", "within", "mean", "trend", "all", "any", "of", "a", "b", "where", "is", "in", "over", "margin"),
        *("tables", "findings", "findings_in", "file", "id", "says", "predicate", "response", "bound", "map"),
    ]
)
TREE = st.recursive(SCALAR, lambda below: st.lists(below, max_size=3) | st.dictionaries(WORD, below, max_size=4))


FORMS = {
    "targets": lambda tree: {"targets": tree},
    "published": lambda tree: {"published": tree},
    "a table": lambda tree: {"published": {"tables": [tree]}},
    "a finding": lambda tree: {"published": {"findings": [tree]}},
    "a predicate": lambda tree: {"published": {"findings": [{"id": "x", "says": "y", "predicate": tree}]}},
}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300, deadline=None)
@given(form=st.sampled_from(sorted(FORMS)), tree=TREE)
def test_whatever_stands_there_is_taken_or_refused_in_one_line(form, tree, tmp_path: Path) -> None:
    said = ""
    try:
        load(tmp_path, json.dumps(FORMS[form](tree))[1:-1] + "\n")
    except StudyError as error:
        said = str(error)
    assert "\n" not in said
