"""Hot spots on the page and on the terminal, with flame graphs that `dyno-core` really draws."""

from __future__ import annotations

import io
import json
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import fake_results
import jsonschema
import polars as pl
import pytest
from rich.console import Console

from dyno.analysis import analyse, flames_of
from dyno.hosts.flames import draw, job_of
from dyno.hosts.local import core_binary
from dyno.model.findings import Findings
from dyno.model.flames import DrawnFlame
from dyno.report import hot_spots, terminal, write
from dyno.report.html import render

STACKS = {"run": pl.Int32, "subject": pl.String, "event": pl.String, "stack": pl.String, "samples": pl.Int64}
COPY = "mariadbd;do_command@mariadbd;do_syscall_64_[k];copy_user_generic_[k]"
TREE = "mariadbd;do_command@mariadbd;<btr>_cur_search@mariadbd"
UNKNOWN = "mariadbd;[mariadbd]"


def sampled(results: fake_results.FakeResults, of_run: Mapping[str, int]) -> pl.DataFrame:
    rows = [
        (run.run, "mariadbd", "cpu-clock", stack, samples + run.slot.cell)
        for run in results.runs
        for stack, samples in of_run.items()
    ]
    return pl.DataFrame(rows, STACKS, orient="row")


def made(results: Any, stacks: pl.DataFrame) -> tuple[Findings, list[DrawnFlame]]:
    found = analyse(results.study, results.runs, ended=results.ended, stacks=stacks)
    return found, draw(core_binary(), list(flames_of(results.study, results.runs, stacks)))


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> tuple[Findings, str, Path]:
    results = fake_results.eight_cells()
    found, flames = made(results, sampled(results, {COPY: 60, TREE: 30, UNKNOWN: 10}))
    folder = tmp_path_factory.mktemp("eight")
    return found, write(results, found, folder, flames).read_text(), folder


def part(page: str) -> str:
    (found,) = re.findall(r'<section id="hot-spots">.*?</section>', page, re.DOTALL)
    return found


def test_each_cell_has_its_groups_its_graph_and_what_changed(eight: tuple[Findings, str, Path]) -> None:
    found, page, folder = eight
    shown = part(page)
    assert len(found.hot_spots) == 8
    assert shown.count("<summary>Flame graph</summary>") == 8
    assert shown.count("<summary>What changed against delete</summary>") == 4
    assert "60%" in shown
    assert "copy_user_generic (kernel)" in shown
    assert len(list((folder / "figures").glob("flame-*.svg"))) == 12
    for address in re.findall(r'href="(figures/flame[^"]*)"', shown):
        assert (folder / address).is_file()


def test_it_is_said_what_samples_cannot_tell(eight: tuple[Findings, str, Path]) -> None:
    found, page, _ = eight
    shown = part(page)
    assert "(cpu-clock) while a CPU ran the system: waiting is not in them" in shown
    assert re.search(r"In at most 1\d% of a cell&#39;s samples the innermost function has no known name", shown)
    assert found.hot_spots[0].unknown == pytest.approx(0.1)


def test_a_name_that_is_markup_stays_a_name_and_the_drawings_bring_nothing_of_their_own(
    eight: tuple[Findings, str, Path],
) -> None:
    _, page, _ = eight
    shown = part(page)
    assert "<btr>" not in shown
    assert "&lt;btr&gt;_cur_search" in shown
    assert not re.search(r"<(script|style|image|use)|\sid=|\son\w+=", shown.removeprefix('<section id="hot-spots">'))


def test_a_job_for_the_drawing_program_is_as_its_schema_has_it() -> None:
    results = fake_results.eight_cells()
    flames = list(flames_of(results.study, results.runs, sampled(results, {COPY: 60, UNKNOWN: 10})))
    schema = Path(__file__).parents[3] / "schema"
    for job in (job_of(flames), json.loads((schema / "golden" / "flame-job.json").read_text())):
        jsonschema.validate(job, json.loads((schema / "flame-job.schema.json").read_text()))


def test_a_terminal_shows_the_first_groups_of_each_cell(eight: tuple[Findings, str, Path]) -> None:
    found, _, _ = eight
    out = io.StringIO()
    terminal.show(found, Console(file=out, width=200, color_system=None))
    assert re.search(
        r"threads=1 journal_mode=delete +copy +60% \[60%, 60%\] +copy_user_generic \(kernel\)", out.getvalue()
    )


def test_a_report_without_call_stacks_is_as_it_was() -> None:
    results = fake_results.eight_cells()
    found, flames = made(results, pl.DataFrame(schema=STACKS))
    assert (found.hot_spots, flames) == ((), [])
    page = render(results, found, flames)
    assert 'id="hot-spots"' not in page
    assert "flame-" not in page


def test_a_page_of_many_cells_stays_below_ten_megabytes(tmp_path: Path) -> None:
    """As deep and as many as a server's are, a thousand stacks a cell; half the cells get half of ten megabytes."""
    results = fake_results.sampled(fake_results.twenty_seven_cells())
    chance = random.Random(1)
    names = [f"row_search_mvcc_and_what_it_calls_{number}@mariadbd" for number in range(400)]

    def stack() -> str:
        depth = chance.randint(15, 40)
        # The nearer the root the fewer ways there are, as in a program.
        return ";".join(
            ["mariadbd", *(names[chance.randrange(min(1 + level, 8)) + 8 * level] for level in range(depth))]
        )

    stacks = sampled(results, {stack(): chance.randint(1, 20) for _ in range(1000)})
    found, flames = made(results, stacks)
    assert len(found.hot_spots) == 26, "one cell has no ok run"
    page = write(results, found, tmp_path, flames)
    assert len(flames) > 26
    assert page.stat().st_size < 10_000_000 * 26 / 54


def test_what_the_page_has_no_room_for_is_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    results = fake_results.eight_cells()
    found, flames = made(results, sampled(results, {COPY: 60, TREE: 30}))
    monkeypatch.setattr(hot_spots, "MOST_IN_PAGE", sum(len(each.page) for each in flames if each.against))
    shown = part(render(results, found, flames))
    assert shown.count("<summary>What changed against delete</summary>") == 4
    assert shown.count("<summary>Flame graph</summary>") == 0
    assert shown.count('.svg">Flame graph</a>, beside this page, which it would make too large') == 8
