"""What interventions say, on the page, as a figure and on a terminal."""

from __future__ import annotations

import csv
import io
import re

import fake_results
import pytest
from rich.console import Console

from dyno.analysis import analyse
from dyno.model.findings import DoseEffect, Findings, Probed
from dyno.report import figures, write
from dyno.report.html import render
from dyno.report.interventions import show_interventions
from dyno.report.terminal import show


def probed(kind: str = "sync-delay", **rest: object) -> Probed:
    doses = tuple(
        DoseEffect(
            cell=place,
            level=f"{kind} {place} ms",
            dose=place / 1000,
            added=place / 4,
            n=5,
            ratio=1 / (1 + place / 4) if place else None,
            ci=(1 / (1 + place / 4) - 0.03, 1 / (1 + place / 4) + 0.03) if place else None,
        )
        for place in range(4)
    )
    return Probed.model_validate(
        {
            "within": {"threads": "4"},
            "kind": kind,
            "title": "time added to each sync",
            "unit": "s",
            "clients": 4,
            "calls_per_op": 1.02,
            "time_per_op_s": 4e-3,
            "doses": doses,
            "own_cost": 0.93,
            "own_cost_ci": (0.9, 0.96),
            "slope": -0.98,
            "slope_ci": (-1.05, -0.91),
            "confidence": 0.95,
            "verdict": "felt in full",
            "sentence": "time added to each sync (1.02 an operation): all of it is felt: <operations> wait for this "
            "(slope -0.98 [-1.05, -0.91])",
            "notes": ("the server has an io_uring",),
            **rest,
        }
    )


def with_probes(*found: Probed) -> tuple[fake_results.FakeResults, Findings]:
    results = fake_results.eight_cells()
    findings = analyse(results.study, results.runs, ended=results.ended)
    return results, findings.model_copy(update={"interventions": found})


def test_the_page_has_slopes_sentences_and_a_figure(tmp_path) -> None:
    results, findings = with_probes(probed(), probed("cpu-load", unit="share", calls_per_op=None, notes=()))
    page = write(results, findings, tmp_path).read_text()
    (section,) = re.findall(r'<section id="interventions">.*?</section>', page, re.DOTALL)
    assert "-0.98 [-1.05, -0.91]" in section
    assert "&lt;operations&gt;" in section
    assert "io_uring" in section
    assert "figure-interventions" in section
    assert (tmp_path / "figures" / "interventions.svg").exists()


def test_a_page_without_interventions_says_nothing_of_them() -> None:
    results, findings = with_probes()
    page = render(results, findings)
    assert "interventions" not in page
    assert figures.doses(findings) is None


@pytest.mark.parametrize("number", [1, 2, 4])
def test_the_figure_has_each_dose_with_its_interval(number: int) -> None:
    kinds = ("sync-delay", "read-delay", "cpu-load", "memory")[:number]
    _, findings = with_probes(*(probed(kind) for kind in kinds))
    figure = figures.doses(findings)
    assert figure is not None
    rows = list(csv.DictReader(io.StringIO(figure.csv)))
    assert len(rows) == 4 * number
    assert {row["ci_low"] == "" for row in rows if row["ratio"] == "1.0"} == {True}
    assert all(kind in figure.svg for kind in kinds[1:])


def test_one_whose_runs_are_all_not_ok_breaks_nothing() -> None:
    empty = probed(
        doses=(DoseEffect(cell=0, level="sync-delay 0", dose=0, n=0),), slope=None, slope_ci=None, own_cost=None,
        own_cost_ci=None, calls_per_op=None, verdict="cannot tell", sentence="cannot tell",
    )  # fmt: skip
    results, findings = with_probes(empty)
    assert 'id="interventions"' in render(results, findings)
    assert figures.doses(findings) is None


def test_one_without_a_slope_is_in_the_table_and_in_no_figure() -> None:
    doses = tuple(dose.model_copy(update={"added": None}) for dose in probed().doses)
    memory = probed(
        "memory", unit="share", doses=doses, slope=None, slope_ci=None, differs_from=0.003, calls_per_op=None,
        verdict="differs from a dose on", sentence="memory: throughput differs from 0.3% on",
    )  # fmt: skip
    results, findings = with_probes(memory)
    page = render(results, findings)
    assert "Memory: throughput differs from 0.3% on" in page
    assert figures.doses(findings) is None
    console = Console(file=io.StringIO())
    show_interventions((memory,), console)
    assert "throughput differs from 0.3% on" in console.file.getvalue()  # type: ignore[attr-defined]


def test_the_terminal_has_them_last() -> None:
    _, findings = with_probes(probed())
    console = Console(record=True, width=200, file=io.StringIO())
    show(findings, console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.index("What throughput hangs on") > text.index("runs")
    assert "0, 1 ms, 2 ms, 3 ms" in text
    assert "0.93x [0.90, 0.96]" in text
    assert "<operations>" in text


def test_of_nothing_nothing_is_printed() -> None:
    console = Console(file=io.StringIO())
    show_interventions((), console)
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]
