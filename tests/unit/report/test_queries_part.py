"""Queries on the page and on a terminal: times, whether answers are the same, and plans."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import fake_results
from rich.console import Console

from dyno.analysis import analyse
from dyno.model.answers import BatchCell, BatchFinding
from dyno.model.findings import Findings
from dyno.report.html import render
from dyno.report.queries import BATCHES, BEST_AND_WORST
from dyno.report.terminal import show

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
from answered import answers, row


def made(*, wrong: bool) -> tuple[fake_results.FakeResults, Findings]:
    """Of eight cells the last answers otherwise, where it is `wrong`."""
    results = fake_results.eight_cells()
    last = len(results.study.cells) - 1
    for place, run in enumerate(results.runs):
        update = {"responses": {**run.responses, "q.point.cold": 5.0 + place / 100, "q.point.warm": 1.0 + place / 100}}
        results.runs[place] = run.model_copy(update=update)
    given = answers(
        results.runs,
        lambda run: [row([["x", 2 if wrong and run.slot.cell == last else 1]], run.run, comment="as it was <told>")],
    )
    return results, analyse(results.study, results.runs, ended=results.ended, answers=given)


def on_terminal(findings: Findings) -> str:
    out = io.StringIO()
    show(findings, Console(file=out, width=200))
    return out.getvalue()


def test_the_page_has_times_answers_texts_and_plans() -> None:
    page = render(*made(wrong=False))
    assert 'id="queries"' in page
    assert "is answered the same by all cells that were asked the same" in page
    assert "Scan of point" in page
    assert "SELECT point" in page
    assert "as it was &lt;told&gt;" in page
    assert "not answered the same" not in page


def test_a_query_that_is_asked_by_itself_and_in_batches_is_one() -> None:
    results, _ = made(wrong=False)
    given = answers(
        results.runs,
        lambda run: (
            [row([["x", 1]], run.run, "point", part) for part in ("q", "b")] + [row([["y", 2]], run.run, "max")]
        ),
    )
    findings = analyse(results.study, results.runs, ended=results.ended, answers=given)
    page = render(results, findings)
    assert "Each of the 2 queries is answered the same, by itself and in batches, by all cells" in page
    assert "<h3>Queries asked at once</h3>" in page, "all configurations"
    assert "The query is answered the same by all cells" in render(*made(wrong=False))


def test_the_best_and_the_worst_are_headed_so_and_told_as_a_whole() -> None:
    results, _ = made(wrong=False)
    given = answers(results.runs, lambda run: [row([["x", 1]], run.run, "point", "b")])
    findings = analyse(results.study, results.runs, ended=results.ended, answers=given)
    best, worst = (BatchCell(cell=cell.index, levels=cell.levels, mean=2.0) for cell in results.study.cells[:2])
    found = BatchFinding(query="point", workers=2, best=best, worst=worst, of=2)
    page = render(results, findings.model_copy(update={"batches": (found,)}))
    first, second = (page.index(f"<h3>{heading}</h3>") for heading in (BATCHES, BEST_AND_WORST))
    assert first < page.index("Texts and plans of batches") < second
    assert '<td class="whole">' in page[second:]


def test_an_answer_that_differs_is_told_with_its_first_row() -> None:
    results, findings = made(wrong=True)
    page = render(results, findings)
    assert "(x, 1) against (x, 2)" in page
    assert "differs (B)" in page
    shown = on_terminal(findings)
    assert "differs (B)" in shown
    assert "point (determinate) is not answered the same" in shown


def test_a_study_without_queries_has_no_part_for_them() -> None:
    results = fake_results.eight_cells()
    findings = analyse(results.study, results.runs, ended=results.ended)
    assert 'id="queries"' not in render(results, findings)
    assert "Queries: answers" not in on_terminal(findings)
