"""Studies of queries and of rows: what is wrong is said at the key that is to be changed, also where it is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from study_example import written

import dyno.study
from dyno.lab import Rooms
from dyno.study.errors import StudyError

STUDY = """\
study: queries
question: Which store answers first?
factors:
  store: {{q: {{system.kind: questdb}}, p: {{system.kind: postgresql}}}}
compare: store
system: {{kind: questdb}}
workload: {{{workload}}}
replicates: {{min: 2, max: 2, of: {of}}}
"""
FILE = """
title: One query
queries:
  point:
    title: one row
    determinate: {columns: {n: number}, default: SELECT 1 AS n}
"""
ASKED = f"kind: queries, text: {json.dumps(FILE)}"


def problem(tmp_path: Path, workload: str, of: str) -> str:
    path = written(tmp_path, STUDY.format(workload=workload, of=of))
    with pytest.raises(StudyError) as raised:
        dyno.study.load(path, Rooms.open().kinds())
    return str(raised.value)


def test_a_key_that_is_missing_is_named_though_it_is_written_nowhere(tmp_path: Path) -> None:
    said = problem(tmp_path, "kind: tsbs, action: queries", "throughput")
    assert ":7: workload.queries: are of actions queries and mixed, which need them" in said


def test_what_decides_has_to_be_told_by_some_cell(tmp_path: Path) -> None:
    said = problem(tmp_path, ASKED, "q.absent.warm")
    assert ":8: replicates.of: no cell has q.absent: there are q.point" in said
    said = problem(tmp_path, f"{ASKED}, batch: 10, singly: false", "q.point.warm")
    assert "no cell has q.point: there are b.point" in said
    for of in ("q.point.warm", "warm", "cpu.util"):
        path = written(tmp_path, STUDY.format(workload=ASKED, of=of))
        assert dyno.study.load(path, Rooms.open().kinds()).replicates.of == of


def test_what_is_wrong_with_a_text_is_told_at_that_key_and_its_own_line(tmp_path: Path) -> None:
    text = "kind: queries,\n  text: " + json.dumps(FILE.replace("title: one row\n", "ordered: yes\n"))
    said = problem(tmp_path, text, "warm")
    assert ":8: workload.text: text:5: queries.point.ordered: is no key here" in said


def test_a_form_that_no_query_has_is_told(tmp_path: Path) -> None:
    assert "workload.form: no query of text has a verbatim form" in problem(
        tmp_path, f"{ASKED}, form: verbatim", "throughput"
    )
