"""What a run went through, as reports show it."""

from __future__ import annotations

import csv
import io
import json
import re

import fake_results
import pytest
from rich.console import Console

from dyno.analysis import analyse
from dyno.model.run import MeasuredPart, RateChange, RateWithin
from dyno.report import figures, terminal, to_csv, to_json
from dyno.report.figures.timeline import CHANGED
from dyno.report.html import render

CUT = MeasuredPart(
    course="warm-up then steady",
    from_s=5.0,
    to_s=35.0,
    seconds=30.0,
    intervals=30,
    steady_from_s=5.0,
    change_points=(RateChange(at_s=3.0, before=200, after=350), RateChange(at_s=5.0, before=350, after=400)),
    within=RateWithin(mean=400.0, lo=390.0, hi=410.0, confidence=0.95, intervals=30, effective=21.0),
)
NONE = MeasuredPart(course="none", to_s=35.0, seconds=35.0, intervals=35)


def folder(*parts):
    """One cell whose runs in turn had these measured parts."""
    results = fake_results.sampled(fake_results.one_cell(len(parts)))
    results.runs = [run.model_copy(update={"measured": part}) for run, part in zip(results.runs, parts, strict=True)]
    return results


def findings_of(results):
    return analyse(results.study, results.runs, ended=results.ended)


def timeline_of(results):
    (run, *_), (cell,) = results.runs, results.study.cells
    return figures.timeline(cell, run, results.samples(run.run), results.intervals(run.run))


def spaced(drawn):
    """The text of a figure, whose lines are wrapped."""
    return " ".join(re.findall(r">([^<>]+)</t(?:ext|span)>", drawn.svg))


def lines_at(drawn):
    """Where the rules for change points stand in the first panel, in pixels."""
    found = re.findall(rf'<line transform="translate\(([\d.]+),[^>]*stroke="{CHANGED}"', drawn.svg)
    return sorted({float(x) for x in found})


def test_the_time_line_shades_what_was_left_out_and_marks_change_points() -> None:
    drawn = timeline_of(folder(CUT))
    text = spaced(drawn)
    assert "Its course: warm-up then steady, throughput changed at the 2 orange lines." in text
    assert "The first 5 s, shaded orange, are left out as warm-up." in text
    left_out = re.findall(rf'<path[^>]*d="M([\d.]+),[^>]*fill="{CHANGED}"', drawn.svg)
    assert left_out, "nothing is shaded"
    # Change points count from where the part begins that was asked for: 8 s less the 5 s that were cut, and 3 s on.
    at = lines_at(drawn)
    assert len(at) == 2
    begin = float(left_out[0])
    assert (at[0] - begin) / (at[1] - begin) == pytest.approx(3 / 5, abs=0.02)


def test_the_time_line_gives_the_run_s_own_mean_by_batch_means_with_the_effective_sample_size() -> None:
    text = spaced(timeline_of(folder(CUT)))
    assert "Within this run alone 400.0 [390.0, 410.0] ops/s at 95% by batch means" in text
    assert "effective sample size 21.00 of 30 intervals" in text


def test_a_run_of_an_earlier_dyno_is_drawn_as_before() -> None:
    drawn = timeline_of(folder(None))
    assert "course" not in spaced(drawn)
    assert lines_at(drawn) == []


def test_a_run_that_is_too_short_says_why() -> None:
    short = MeasuredPart(course=None, reason="too short: 4 intervals", to_s=4.0, seconds=4.0, intervals=4)
    assert "Its course: too short: 4 intervals." in spaced(timeline_of(folder(short)))


SAID = "no steady state in 2 of 3 runs"


def test_no_steady_state_is_said_beside_the_cell_everywhere() -> None:
    results = folder(NONE, CUT, NONE)
    findings = findings_of(results)
    out = io.StringIO()
    terminal.show(findings, Console(file=out))
    assert SAID in next(line for line in out.getvalue().splitlines() if line.startswith("the only cell"))
    assert f'<td class="remark warn">{SAID}</td>' in render(results, findings)
    assert json.loads(to_json(findings))["cells"][0]["remark"] == SAID
    assert {row["unsteady"] for row in csv.DictReader(io.StringIO(to_csv(findings)))} == {"2"}


@pytest.mark.parametrize("width", [60, 80])
def test_a_remark_fits_a_narrow_terminal(width) -> None:
    out = io.StringIO()
    terminal.show(findings_of(folder(NONE, CUT, NONE)), Console(file=out, width=width, force_terminal=True))
    text = re.sub(r"\x1b\[[\d;]*m", "", out.getvalue())
    assert max(map(len, text.splitlines())) <= width
    assert "remark" in text


def test_there_is_no_column_for_remarks_where_there_are_none() -> None:
    results = folder(CUT, CUT)
    findings = findings_of(results)
    out = io.StringIO()
    terminal.show(findings, Console(file=out))
    assert "remark" not in out.getvalue()
    assert "<th>remark</th>" not in render(results, findings)
