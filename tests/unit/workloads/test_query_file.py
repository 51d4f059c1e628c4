"""Files of queries: what they may say, and that what is wrong is told with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.workloads.query_file import QueryFileError, parse

STUDY = Path(__file__).parents[3] / "studies" / "queries" / "time-series.yaml"
GOOD = """\
title: some queries
names:
  time: {default: ts, questdb: timestamp}
parameters:
  machine: {kind: host}
queries:
  point:
    title: one row
    parameters:
      at: {kind: moment}
    determinate:
      ordered: true
      columns: {moment: time, used: number}
      order_by: [moment]
      default: SELECT {time}, used FROM cpu WHERE hostname = {machine} AND {time} = {at}
      sqlite: SELECT ts, used FROM cpu WHERE ts = {at}
"""


def test_a_file_has_its_queries() -> None:
    file = parse(GOOD, "q.yaml")
    form = file.queries["point"].determinate
    assert form is not None
    assert form.of("sqlite") == "SELECT ts, used FROM cpu WHERE ts = {at}"
    assert form.of("duckdb") == form.default
    assert list(file.drawn_for(file.queries["point"])) == ["machine", "at"]


def test_the_published_queries_are_thirteen_in_two_forms_for_every_dialect() -> None:
    file = parse(STUDY.read_text(), STUDY.name)
    assert len(file.queries) == 13
    for name, query in file.queries.items():
        assert [form for form, _ in query.forms()] == ["verbatim", "determinate"], name
        for _, form in query.forms():
            assert all(form.of(dialect) for dialect in ("questdb", "cratedb", "postgresql", "duckdb", "sqlite"))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("    title: one row\n", "", "q.yaml:7: queries.point: has no title"),
        ("ordered: true", "ordered: maybe", "q.yaml:12: queries.point.determinate.ordered: should be true or false"),
        ("ordered: true", "orderd: true", "q.yaml:12: queries.point.determinate.orderd: is no key here"),
        ("ordered: true", "ordered: false", "q.yaml:14: queries.point.determinate.order_by: is of rows in an order"),
        ("[moment]", "[time]", "q.yaml:14: queries.point.determinate.order_by: 'time' is no column of it"),
        ("= {machine}", "= {mashine}", "q.yaml:15: queries.point.determinate.default: {mashine} is neither"),
        (
            "{kind: moment}",
            "{kind: minute}",
            "q.yaml:10: queries.point.parameters.at.kind: kind minute is not known; there are host, window, moment, ",
        ),
        ("{kind: moment}", "{count: 3}", "q.yaml:10: queries.point.parameters.at: has no kind"),
        (
            "at: {kind: moment}",
            "{at: {kind: window, length: 5 s}}",
            "q.yaml:15: queries.point.determinate.default: {at.end}: at has no end; a window has from and to",
        ),
        ("{kind: moment}", "{kind: window, length: 5}", "q.yaml:10: queries.point.parameters.at.length: 5 has no unit"),
        ("{kind: moment}", "{kind: window, length: 5 s}", "queries.point.determinate.default: {at} has two ends"),
        ("{kind: moment}", "{kind: integer, least: 3, most: 1}", "q.yaml:10: queries.point.parameters.at.most: 1 is"),
        ("= {at}\n      sqlite", "= 5\n      duckdb", "queries.point.determinate.duckdb"),
        ("  point:", "  point: 5\n  point:", "q.yaml:8: queries.point: is given twice, first in line 7"),
        ("  machine:", "  time: {kind: host}\n  machine:", "q.yaml:5: parameters.time: is one of names too"),
        (
            "moment: time",
            "moment: tim",
            "q.yaml:13: queries.point.determinate.columns.moment: should be time, text or number",
        ),
        ("title: some", "titel: some", "q.yaml:1: titel: is no key here"),
        ("queries:", "queries: [", "q.yaml:"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_key(old: str, new: str, told: str) -> None:
    assert GOOD.count(old) >= 1
    text = GOOD.replace(old, new)
    if "duckdb" in new:
        text = text.replace("duckdb: SELECT ts", "duckdb: SELECT {nothing}")
    if ".end" in told:
        text = text.replace("= {at}", "= {at.end}")
    with pytest.raises(QueryFileError) as error:
        parse(text, "q.yaml")
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_parameter_that_no_text_has_is_a_slip() -> None:
    text = GOOD.replace("      at: {kind: moment}", "      at: {kind: moment}\n      spare: {kind: host}")
    with pytest.raises(QueryFileError, match=r"q.yaml:11: queries.point.parameters.spare: stands in no text"):
        parse(text, "q.yaml")


def test_off_is_a_word_and_not_false() -> None:
    with pytest.raises(QueryFileError, match="ordered"):
        parse(GOOD.replace("ordered: true", "ordered: of"), "q.yaml")


def told_of(text: str) -> str:
    """What is wrong with a file; empty where nothing is."""
    try:
        parse(text, "q.yaml")
    except QueryFileError as error:
        return str(error)
    return ""


@given(st.text(max_size=200))
def test_whatever_a_file_holds_is_queries_or_one_line(text: str) -> None:
    told = told_of(text)
    assert told.startswith("q.yaml:")
    assert "\n" not in told


@given(st.integers(0, len(GOOD) - 1), st.text(max_size=3))
def test_a_slip_anywhere_is_queries_or_one_line(place: int, slip: str) -> None:
    told = told_of(GOOD[:place] + slip + GOOD[place + 1 :])
    assert told == "" or told.startswith("q.yaml:")
