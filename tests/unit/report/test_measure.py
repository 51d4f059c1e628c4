"""Text has the width that room was made for, in every figure and whatever fonts a reader has."""

from __future__ import annotations

import re
from html import unescape
from itertools import pairwise

import fake_results
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dyno.analysis import analyse
from dyno.report import figures
from dyno.report.figures import style
from dyno.report.figures.measure import held, widths, wrapped

LONG = "postgresql-15 with synchronous_commit=off, full_page_writes=on and a large shared buffer / {} beside it"


# Of Adobe's font metrics for its Helvetica and Helvetica-Bold (Core 14 AFM files, WX of each character, in thousandths
# of the size), which Liberation Sans was made to share.
@pytest.mark.parametrize(
    ("character", "regular", "bold"),
    [("a", 556, 556), ("b", 556, 611), ("i", 222, 278), ("W", 944, 944), ("/", 278, 278), ("0", 556, 556)],
)
def test_text_is_as_wide_as_the_metrics_of_its_font_say(character, regular, bold) -> None:
    found = widths([(character * 10, 100.0, "normal"), (character * 10, 100.0, "600")])
    assert found == pytest.approx([regular, bold], abs=2)


@example(["::WW=:::::::=== ="])  # a space after a mark was taken to have no width
@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.sampled_from("aWi-_/=:,. "), min_size=1, max_size=80).map(str.strip), max_size=3))
def test_lines_have_all_of_a_text_and_none_is_too_wide(texts) -> None:
    for text, lines in zip(texts, wrapped(texts, 90.0, 12), strict=True):
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
        # A pixel for letters that stand closer together in pairs, or further apart.
        assert all(width <= 91 for width in widths([(line, 12.0, "normal") for line in lines]))


def test_a_text_is_broken_at_its_marks() -> None:
    assert wrapped(["short", "mariadb-10.11 / postgresql"], 90.0, 12) == [["short"], ["mariadb-10.11 /", "postgresql"]]


def test_a_text_of_several_lines_is_as_many_texts_each_held_to_its_width() -> None:
    type_ = 'font-size="100px" font-weight="normal"'
    svg = f'<text {type_}><tspan>aa</tspan><tspan x="0" dy="15">a&amp;</tspan><tspan x="0" dy="15">i</tspan></text>'
    assert re.findall(r'(?: y="(\d+)")? textLength="([\d.]+)" lengthAdjust="spacingAndGlyphs">(.*?)<', held(svg)) == [
        ("0", "111.2", "aa"),
        ("15", "122.3", "a&amp;"),
        ("30", "22.2", "i"),
    ]


def all_figures(results):
    found, palette = analyse(results.study, results.runs, ended=results.ended), style.Palette(results.study)
    yield figures.heat_map(results.study, found)
    yield from (draw(results.study, found, palette) for draw in (figures.lines, figures.bars, figures.forest))
    cells = {cell.index: cell for cell in results.study.cells}
    run = results.runs[0]
    yield figures.timeline(cells[run.slot.cell], run, results.samples(run.run), results.intervals(run.run))


def test_every_text_of_every_figure_is_held_to_its_width() -> None:
    for figure in all_figures(fake_results.sampled(fake_results.eight_cells())):
        assert len(re.findall("<text", figure.svg)) == figure.svg.count(' lengthAdjust="spacingAndGlyphs">')
        assert "<tspan" not in figure.svg


@pytest.fixture(scope="module")
def long_names():
    levels = [LONG.format(1), LONG.format(2), "s"]
    study = fake_results.make_study({"store": levels, "mix": ["a" * 90, "b" * 90]}, "store")
    results = fake_results.FakeResults(study, fake_results.make_runs(study, 3, trouble=False))
    return study, analyse(study, results.runs, ended=None)


def said(figure) -> str:
    """All of a figure's text, without the spaces at which lines are broken."""
    return unescape("".join(re.findall(r"<text[^>]*>([^<]*)</text>", figure.svg))).replace(" ", "")


def test_names_of_any_length_stand_whole_in_the_comparisons(long_names) -> None:
    study, found = long_names
    drawn = said(figures.forest(study, found, style.Palette(study)))
    assert found.comparisons
    for each in found.comparisons:
        assert f"mix={each.within['mix']}: {each.b} / {each.a}".replace(" ", "") in drawn


def test_names_of_any_length_stand_whole_beside_bars_and_about_the_map(long_names) -> None:
    study, found = long_names
    for figure in (figures.bars(study, found, style.Palette(study)), figures.heat_map(study, found)):
        drawn = said(figure)
        assert "…" not in drawn
        for name in (LONG.format(1), LONG.format(2), "mix=" + "a" * 90, "mix=" + "b" * 90):
            assert name.replace(" ", "") in drawn


def test_lines_have_the_names_of_their_levels_whole() -> None:
    study = fake_results.make_study({"store": [LONG.format(1), LONG.format(2)], "threads": [1, 4]}, "store")
    results = fake_results.FakeResults(study, fake_results.make_runs(study, 3, trouble=False))
    drawn = said(figures.lines(study, analyse(study, results.runs, ended=None), style.Palette(study)))
    assert all(LONG.format(number).replace(" ", "") in drawn for number in (1, 2))


def test_rows_have_room_for_the_tallest_of_their_names(long_names) -> None:
    study, found = long_names
    svg = figures.forest(study, found, style.Palette(study)).svg
    of_names = re.findall(
        r'<text text-anchor="start" transform="translate\(6,([\d.]+)\)"[^>]*?(?: y="(\d+)")? textLength', svg
    )
    heights = sorted(float(top) + float(down or 0) for top, down in of_names)
    assert len(heights) > len(found.comparisons) / 2
    assert all(below - above >= 12 for above, below in pairwise(heights)), "lines of 12 px lie upon each other"


def test_an_axis_of_thousands_is_written_out() -> None:
    results = fake_results.one_cell()
    runs = [run.model_copy(update={"responses": {"throughput": 1500.0 + run.run}}) for run in results.runs]
    drawn = figures.bars(results.study, analyse(results.study, runs, ended=None), style.Palette(results.study))
    ticks = re.findall(r'text-anchor="middle"[^>]*>([\d.,e+]+)<', drawn.svg)
    assert "1,000" in ticks
    assert not any("e" in tick for tick in ticks)
