"""A screening study's report: its effects in the table, on the page and in the half-normal plot."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import fake_results
import pytest
from rich.console import Console

from dyno.analysis import analyse
from dyno.model.findings import Findings
from dyno.model.study import DesignSpec
from dyno.report import figures, to_json, write
from dyno.report.figures.half_normal import _ticks
from dyno.report.html import render
from dyno.report.terminal import show


@pytest.fixture(scope="module")
def screened() -> fake_results.FakeResults:
    factors = {"journal_mode": ["delete", "wal"], "threads": [1, 8], "sync": ["full", "off"]}
    study = fake_results.make_study(factors, "journal_mode")
    study = study.model_copy(update={"design": DesignSpec(kind="screening")})
    return fake_results.FakeResults(study, fake_results.make_runs(study, 5))


@pytest.fixture(scope="module")
def findings(screened: fake_results.FakeResults) -> Findings:
    return analyse(screened.study, screened.runs, ended=screened.ended)


def test_the_table_has_each_effect_with_its_interval(findings: Findings) -> None:
    text = io.StringIO()
    show(findings, Console(file=text))
    _, _, below = text.getvalue().partition("Effects, high to low\n")
    of_response = [effect for effect in findings.effects if effect.response == findings.response]
    assert len(of_response) == 6
    below, _, _ = below.partition("\n\n")
    for effect in of_response:
        (line,) = [line for line in below.splitlines() if line.startswith(f"{' x '.join(effect.factors)}  ")]
        assert effect.verdict in line


def test_json_has_the_effects(findings: Findings) -> None:
    assert Findings.model_validate_json(to_json(findings)).effects == findings.effects


def test_the_page_has_each_effect_in_words_and_the_plot(
    screened: fake_results.FakeResults, findings: Findings, tmp_path: Path
) -> None:
    page = write(screened, findings, tmp_path).read_text().replace("\u00a0", " ")
    assert '<section id="effects">' in page
    assert 'id="figure-half-normal"' in page
    of_response = [effect for effect in findings.effects if effect.response == findings.response]
    for effect in of_response:
        assert effect.sentence[1:] in page
    assert (tmp_path / "figures" / "half-normal.csv").exists()


def test_the_plot_has_every_effect_in_the_order_of_size(findings: Findings) -> None:
    drawn = figures.half_normal(findings)
    assert drawn is not None
    rows = list(csv.DictReader(io.StringIO(drawn.csv)))
    sizes = [float(row["size"]) for row in rows]
    assert sizes == sorted(sizes)
    assert len(sizes) == 6
    assert min(sizes) >= 1


def test_without_effects_there_is_no_plot_and_no_section() -> None:
    results = fake_results.eight_cells()
    found = analyse(results.study, results.runs, ended=results.ended)
    assert figures.half_normal(found) is None
    assert 'id="effects"' not in render(results, found)


@pytest.mark.parametrize(("top", "expected"), [(1.09, [1, 1.02, 1.04, 1.06, 1.08]), (4.0, [1, 2, 3, 4]), (50, [1, 10])])
def test_ticks_are_round_and_few(top: float, expected: list[float]) -> None:
    assert _ticks(top) == pytest.approx(expected)
