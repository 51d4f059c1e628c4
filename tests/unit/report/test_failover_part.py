"""What a failover costs, on the page, as figures and on a terminal."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import fake_results
from rich.console import Console

from dyno.analysis import analyse
from dyno.model.faults import Fault, FaultPlan
from dyno.model.findings import Findings
from dyno.model.run import Faulted, Outcome
from dyno.report import figures, write
from dyno.report.html import render
from dyno.report.terminal import show

S = 1_000_000_000
AUDIT = {"acknowledged": 1000, "present": 1000, "lost": 0, "phantom": 1, "duplicated": 0, "altered": 0}


def struck(
    *, lost: int = 0, unended: bool = False, resolution_s: float = 0.004, sampled: bool = False
) -> tuple[fake_results.FakeResults, Findings]:
    """Of eight cells the first and the last, in each of whose runs something was struck 10 s after it began."""
    results = fake_results.sampled(fake_results.eight_cells(), 40 if sampled else 0)
    plan = FaultPlan(fault=Fault(kind="kill"), from_s=5, to_s=10, late_s=1, whole_s=60)
    chosen = (0, len(results.study.cells) - 1)
    cells = tuple(
        cell.model_copy(update={"fault": plan if cell.index in chosen else None}) for cell in results.study.cells
    )
    results.study = results.study.model_copy(update={"cells": cells})
    for place, run in enumerate(results.runs):
        if run.slot.cell in chosen:
            endless = unended and run.slot.cell == 0
            faulted: dict[str, Any] = {
                "kind": "kill",
                "role": "primary",
                "nodes": ("n<1>",),
                "at_ns": run.started_ns + 13 * S,
                "mended_ns": run.started_ns + 20 * S,
                "whole_ns": run.started_ns + 24 * S,
                "interrupted": True,
                "outage_s": None if endless else 2.5 + run.slot.block / 10,
                "at_least": {"outage": 25.0, "first_success": 25.0} if endless else {},
                "first_success_s": None if endless else 2.6,
                "resolution_s": resolution_s,
                "audits": {"clients": {**AUDIT, "lost": lost}},
            }
            known = {"rejoin": 4.0, "stale_reads": 0.25, "requests_failed": 30.0, "requests_late": 8.0}
            known |= {} if endless else {"outage": faulted["outage_s"], "first_success": 2.6}
            update = {"faulted": Faulted.model_validate(faulted), "responses": {**run.responses, **known}}
            results.runs[place] = run.model_copy(update=update)
    return results, analyse(results.study, results.runs, ended=results.ended)


def test_the_page_has_outages_the_bound_with_its_source_and_throughput_around_the_fault(tmp_path: Path) -> None:
    results, findings = struck(sampled=True)
    page = write(results, findings, tmp_path).read_text()
    (section,) = re.findall(r'<section id="failover">.*?</section>', page, re.DOTALL)
    for told in ("JAMA", "Kill of the primary", "of faults)", "figure-outages", "figure-fault-0", "rule of three"):
        assert told in section, told
    for told in (
        "rejoin<br>s",
        "time from mending until redundancy is whole, s",
        "share of reads that missed",
        "limits",
    ):
        assert told in section, told
    assert "seen to within" not in section
    assert (tmp_path / "figures" / "fault-0.svg").exists()
    assert "n&lt;1&gt; at the orange line" in page or "n<1>" not in page


def test_rows_that_were_lost_stand_in_the_table_instead_of_a_bound() -> None:
    results, findings = struck(lost=3)
    page = render(results, findings)
    (section,) = re.findall(r'<section id="failover">.*?</section>', page, re.DOTALL)
    runs = findings.failovers[0].runs
    assert f"{3 * runs} (in {runs} of {runs} runs)" in section
    assert "of faults)" not in section


def test_an_outage_that_clients_saw_only_coarsely_has_how_finely_beside_it() -> None:
    results, findings = struck(resolution_s=2.0)
    page = render(results, findings)
    assert "seen to within 2.000" in page


def test_a_median_among_outages_that_did_not_end_is_longer_than_was_seen() -> None:
    results, findings = struck(unended=True)
    page = render(results, findings)
    (section,) = re.findall(r'<section id="failover">.*?</section>', page, re.DOTALL)
    assert "&gt;= 25.00" in section
    assert " not over, of " in section


def test_the_distribution_has_every_outage_and_the_median_of_each_cell() -> None:
    _, findings = struck()
    figure = figures.outages(findings)
    assert figure is not None
    rows = list(csv.DictReader(io.StringIO(figure.csv)))
    assert len(rows) == sum(each.runs for each in findings.failovers)
    assert {row["what"] for row in rows} == {"ended"}


def test_outages_that_did_not_end_are_told_apart() -> None:
    results, findings = struck(unended=True)
    figure = figures.outages(findings)
    assert figure is not None
    rows = list(csv.DictReader(io.StringIO(figure.csv)))
    assert {float(row["seconds"]) for row in rows if row["what"] != "ended"} == {25.0}
    assert results.runs


def test_curves_have_the_fault_at_0() -> None:
    results, findings = struck(sampled=True)
    (first, _) = figures.around_faults(findings, results.runs, results.intervals)
    rows = list(csv.DictReader(io.StringIO(first.csv)))
    # The first interval begins 3 s after the run, and the fault is 13 s after it.
    assert min(float(row["t"]) for row in rows) == -9.5
    assert {row["failed"] for row in rows} == {"0.0"}


def test_a_runs_own_time_line_has_the_fault_on_it() -> None:
    results, findings = struck(sampled=True)
    run = next(run for run in results.runs if run.faulted is not None and run.outcome is Outcome.OK)
    cell = results.study.cells[run.slot.cell]
    figure = figures.timeline(cell, run, results.samples(run.run), results.intervals(run.run))
    assert figure is not None
    assert "kill struck n" in figure.svg
    bare = figures.timeline(
        cell, run.model_copy(update={"faulted": None}), results.samples(run.run), results.intervals(run.run)
    )
    assert bare is not None
    assert "orange line; dashed" not in bare.svg
    assert findings.failovers


def test_the_terminal_has_a_line_a_cell_and_a_sentence() -> None:
    _, findings = struck()
    console = Console(record=True, width=240, file=io.StringIO())
    show(findings, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "What a failover costs" in text
    for told in ("median outage, s", "rejoin, s", "requests_failed", "requests_late", "stale_reads", "rejoin, s"):
        assert told in text, told
    assert "kill of the primary" in text


def test_a_study_without_faults_says_nothing_of_them() -> None:
    results = fake_results.eight_cells()
    findings = analyse(results.study, results.runs, ended=results.ended)
    page = render(results, findings)
    assert 'id="failover"' not in page
    assert figures.outages(findings) is None


def test_a_report_of_faults_begins_with_what_a_failover_costs() -> None:
    results, findings = struck()
    page = render(results, findings)
    assert page.index('<section id="failover">') < page.index('<section id="cells">')
    console = Console(file=io.StringIO(), width=200)
    show(findings, console)
    told = console.file.getvalue()  # type: ignore[attr-defined]
    assert told.index("What a failover costs") < told.index("Before believing the figures")


def test_mending_and_being_whole_are_marked_in_the_figure_around_the_fault() -> None:
    results, findings = struck(sampled=True)
    figure = next(each for each in figures.around_faults(findings, results.runs, results.intervals))
    assert "dashed, mending began; dotted, all was whole: medians" in words(figure.svg)


def test_an_interval_without_an_upper_end_is_said_to_be_drawn_to_the_longest_that_was_seen() -> None:
    _, findings = struck()
    closed = figures.outages(findings)
    each = findings.failovers[0]
    told = tuple(
        one.model_copy(update={"ci": (2.5, None)}) if one.response == "outage" else one for one in each.figures
    )
    of_open = findings.model_copy(update={"failovers": (each.model_copy(update={"figures": told}),)})
    shown = figures.outages(of_open)
    assert closed is not None
    assert shown is not None
    assert "without an upper end is drawn to" not in words(closed.svg)
    assert "without an upper end is drawn to the longest outage that was seen" in words(shown.svg)


def words(svg: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", svg).split())


def test_what_each_fault_costs_is_no_wider_than_a_screen() -> None:
    """Twelve columns beside each other were cut off at the right; columns of nothing but 0 are left out."""
    results, findings = struck()
    page = render(results, findings)
    (section,) = re.findall(r'<section id="failover">.*?</section>', page, re.DOTALL)
    heads = [re.findall(r"<th[ >]", head) for head in re.findall(r"<thead>.*?</thead>", section, re.DOTALL)]
    assert max(map(len, heads[1:])) <= 7
    assert ">never acknowledged<" in section
    assert ">twice<" not in section
