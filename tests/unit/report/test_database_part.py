"""What stores said of themselves, on the page and on a terminal."""

from __future__ import annotations

import io

import fake_results
import pytest
from rich.console import Console

from dyno.analysis import analyse
from dyno.model.findings import CounterFigure, DatabaseCell, Findings, GaugeFigure, WaitFigure
from dyno.report import terminal
from dyno.report.database import FOREMOST, groups
from dyno.report.html import render


def figures(scale: float) -> tuple[CounterFigure, ...]:
    plain = [
        CounterFigure(name=f"plain_{n:02}", per_op=scale, ci=(0.9 * scale, 1.1 * scale), per_s=2.0) for n in range(15)
    ]
    apart = CounterFigure(name="innodb_far", per_op=scale, ci=(scale, scale), per_s=12_345.0, apart=3.0)
    return (*plain, apart, CounterFigure(name="never", per_op=0.0, ci=(0.0, 0.0), per_s=0.0))


def with_database(results: fake_results.FakeResults) -> Findings:
    findings = analyse(results.study, results.runs, ended=results.ended)
    cells = tuple(
        DatabaseCell(
            cell=cell.index,
            levels=cell.levels,
            n=3,
            counters=figures(1.0 + cell.index),
            waits=(WaitFigure(name="wait/io/<file>", clients=0.5, ci=(0.4, 0.6), us_per_op=40.0),),
            gauges=(GaugeFigure(name=f"n{1 + cell.index % 2}.heap_share", mean=0.25, ci=(0.2, 0.3), n=3),),
            remark="performance_schema was off",
        )
        for cell in results.study.cells
    )
    return findings.model_copy(update={"database": cells})


@pytest.fixture(scope="module")
def results() -> fake_results.FakeResults:
    return fake_results.eight_cells()


@pytest.fixture(scope="module")
def findings(results: fake_results.FakeResults) -> Findings:
    return with_database(results)


def test_cells_that_are_compared_stand_beside_each_other(findings: Findings) -> None:
    found = groups(findings)
    assert len(found) * len(found[0].columns) == 8
    assert found[0].columns == ("delete", "wal")
    assert all(findings.compare not in group.within for group in found)


def test_what_is_apart_comes_first_and_what_is_nowhere_is_left_out(findings: Findings) -> None:
    group = groups(findings)[0]
    assert group.foremost[0].name == "innodb_far"
    assert len(group.foremost) == FOREMOST
    assert {row.name for row in (*group.foremost, *group.others)} == {
        "innodb_far",
        *(f"plain_{n:02}" for n in range(15)),
    }


def test_the_page_has_the_counters_and_folds_those_that_tell_less(results, findings: Findings) -> None:
    page = render(results, findings)
    section = page[page.index('<section id="database">') :]
    section = section[: section.index("</section>")]
    assert section.index("innodb_far") < section.index("4 more counters") < section.index("plain_14")
    assert "12,345 a second" in section
    assert "wait/io/&lt;file&gt;" in section
    assert section.count("<details open>") == 1, "of many combinations the first is open"
    assert "Performance_schema was off." in section


def test_what_goes_up_and_down_is_shown_where_a_store_has_it(results, findings: Findings) -> None:
    first = groups(findings)[0]
    assert [gauge.name for gauge in first.gauges] == ["n1.heap_share", "n2.heap_share"]
    assert [figure is None for figure in first.gauges[0].figures] == [False, True]
    page = render(results, findings)
    section = page[page.index("that go up and down") :]
    row = section[section.index('data-name="n1.heap_share"') :].split("</tr>")[0]
    assert "0.2500 [0.2000, 0.3000]" in row
    assert "–" in row


def test_what_nobody_waited_for_in_these_cells_has_no_row_and_no_bar(results, findings: Findings) -> None:
    """It is there since clients of other cells waited for it; the bars of such a group were of no length."""
    none = WaitFigure(name="wait/lock/row", clients=0.0, ci=None, us_per_op=0.0)
    cells = [each.model_copy(update={"waits": (none,)}) for each in findings.database[:2]]
    found = findings.model_copy(update={"database": (*cells, *findings.database[2:])})
    assert groups(found)[0].waits == ()
    assert "wait/lock/row" not in render(results, found)


def test_where_no_store_was_asked_the_page_has_no_such_section(results) -> None:
    page = render(results, analyse(results.study, results.runs, ended=results.ended))
    assert 'id="database"' not in page


def test_a_terminal_shows_the_first_combinations(findings: Findings) -> None:
    out = io.StringIO()
    terminal.show(findings, Console(file=out, color_system=None))
    said = out.getvalue()
    assert said.count("What the store said of itself, for each operation") == 3
    assert "and 1 more combinations" in said
    assert "innodb_far" in said
    assert "3x" in said
    assert "wait/io/<file>" in said
    assert "n1.heap_share, mean" in said
