"""Findings as JSON, CSV and terminal tables."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import fake_results
import pytest
from rich.console import Console

from dyno.analysis import analyse, compare_folders
from dyno.model.findings import format_reached, format_share
from dyno.model.run import Outcome
from dyno.model.targets import Target
from dyno.report import terminal, to_csv, to_json

GOLDEN = Path(__file__).parents[2] / "golden" / "report"


def findings_of(results):
    return analyse(results.study, results.runs, ended=results.ended)


@pytest.fixture(scope="module")
def eight():
    return findings_of(fake_results.eight_cells())


def shown(findings, *, width: int | None = None, chosen=None) -> str:
    """What lands in a file; on a terminal of that width where one is given."""
    out = io.StringIO()
    tty = width is not None
    terminal.show(findings, Console(file=out, width=width, force_terminal=tty, color_system=None), chosen)
    return out.getvalue()


def test_json_has_what_other_programs_were_promised(eight) -> None:
    found = json.loads(to_json(eight))
    assert found["study"] == "journal-mode"
    cell, comparison, failure = found["cells"][0], found["comparisons"][0], found["failures"][0]
    assert {"levels", "response", "unit", "n", "failed", "invalid", "mean", "sd", "cov", "ci", "converged"} <= set(cell)
    assert {"response", "a", "b", "within", "ratio", "ci", "verdict"} <= set(comparison)
    assert {"run", "step", "cause"} <= set(failure)
    assert len(cell["ci"]) == len(comparison["ci"]) == 2


def test_of_many_comparisons_those_that_show_nothing_are_counted_on_a_terminal(eight) -> None:
    first = next(each for each in eight.comparisons if each.response == eight.response)
    differs = first.model_copy(update={"verdict": "higher", "sentence": "This one differs."})
    alike = first.model_copy(update={"verdict": "no difference shown", "sentence": "This one does not."})
    many = shown(eight.model_copy(update={"comparisons": (differs, *[alike] * 20)}))
    assert (many.count("This one differs."), many.count("This one does not.")) == (1, 0)
    assert "none of the 20 other comparisons shows a difference" in many
    few = shown(eight.model_copy(update={"comparisons": (differs, *[alike] * 11)}))
    assert (few.count("This one does not."), "shows a difference" in few) == (11, False)


def test_json_is_the_same_letter_by_letter_as_it_was(eight) -> None:
    assert to_json(eight) + "\n" == (GOLDEN / "eight_cells.json").read_text()


def test_the_table_in_a_file_is_the_same_letter_by_letter_as_it_was(eight) -> None:
    assert shown(eight) == (GOLDEN / "eight_cells.txt").read_text()


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0199, "2%"),
        (0.02, "2%"),
        (0.0204, "2.04%"),
        (0.02004, "2.004%"),
        (0.020000001, "just over 2%"),
        (0.0213, "2.1%"),
        (1.5, "150%"),
    ],
)
def test_a_precision_of_2_per_cent_that_was_missed_is_not_written_as_2_per_cent(share: float, text: str) -> None:
    assert format_reached(share, 0.02) == text


def test_cells_and_notes_show_that_a_precision_was_just_missed(eight) -> None:
    cell = next(each for each in eight.cells if each.response == eight.response)
    missed = cell.model_copy(update={"precision": 0.0204, "reached": 0.0204, "converged": False})
    for precision_of in ("mean", "ratio"):
        found = eight.model_copy(update={"cells": (missed,), "precision": 0.02, "precision_of": precision_of})
        assert "2.04%" in shown(found)
        assert "2.04%" in shown(found, width=80)


def test_csv_has_a_line_for_each_response_of_each_cell(eight) -> None:
    rows = list(csv.DictReader(io.StringIO(to_csv(eight))))
    assert len(rows) == len(eight.cells)
    assert (rows[1]["levels.threads"], rows[1]["levels.journal_mode"], rows[1]["response"]) == (
        "1",
        "wal",
        "throughput",
    )
    assert float(rows[1]["mean"]) == eight.cells[1].mean
    assert (float(rows[1]["ci_low"]), float(rows[1]["ci_high"])) == eight.cells[1].ci


def test_csv_leaves_empty_what_is_not_known() -> None:
    row = next(csv.DictReader(io.StringIO(to_csv(findings_of(fake_results.nothing())))))
    assert (row["n"], row["mean"], row["ci_low"], row["precision"], row["converged"]) == ("0", "", "", "", "false")


def test_the_answer_is_the_first_thing_said(eight) -> None:
    assert shown(eight).splitlines()[0] == eight.answer


def test_a_file_gets_neither_colours_nor_folded_lines() -> None:
    text = shown(findings_of(fake_results.twenty_seven_cells()))
    assert "\x1b" not in text
    assert "deployment=container-volume workload=c threads=8" in text
    line = next(line for line in text.splitlines() if line.startswith("native "))
    assert "[376.4, 439.8]" in line


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_number_is_broken(width) -> None:
    text = shown(findings_of(fake_results.twenty_seven_cells()), width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "9,206" in text


def test_chosen_responses_are_shown_and_the_others_named(eight) -> None:
    text = shown(eight, chosen=("latency_p99",))
    assert "99th percentile latency (ms, lower is better)" in text
    assert "throughput (ops/s" not in text
    assert "Also measured: throughput, latency_mean" in text


def test_causes_shape_and_drift_follow_the_comparisons() -> None:
    text = shown(findings_of(fake_results.drifting()))
    headings = ["What explains the variation", "Shape over threads", "Drift and outliers", "Before believing"]
    assert [text.index(heading) for heading in headings] == sorted(text.index(heading) for heading in headings)
    line = next(line for line in text.splitlines() if line.startswith("threads x engine"))
    assert line.split()[3:] == ["2.3%", "1.468", "5", "11.03", "<", "0.0001"]


def test_residuals_that_are_far_from_normal_are_told_on_the_terminal_too() -> None:
    found = findings_of(fake_results.drifting())
    warning = "Residuals are far from normal: p is not to be trusted."
    for far in (True, False):
        explained = tuple(each.model_copy(update={"far_from_normal": far}) for each in found.variation)
        assert (warning in shown(found.model_copy(update={"variation": explained}))) is far


def test_a_shape_of_many_curves_is_cut_and_it_is_said() -> None:
    text = shown(findings_of(fake_results.many(runs=240)))
    assert text.count(" of what 8 times as many promise") == 6
    study = fake_results.make_study({"threads": [1, 2], "mix": list("abcdefgh"), "mode": ["x", "y"]}, "mode")
    text = shown(findings_of(fake_results.FakeResults(study, fake_results.make_runs(study, 3, trouble=False))))
    assert text.count(" of what 2 times as many promise") == terminal.MOST_CURVES
    assert "and 4 more" in text


def test_targets_and_what_was_published_are_shown_with_their_verdicts() -> None:
    text = shown(findings_of(fake_results.expected()))
    assert "throughput > 100 ops/s: met in all 8 cells." in text
    assert "99th percentile latency < 2 ms: missed; of 8 cells," in text
    assert "threads=1 journal_mode=wal" in text
    assert "utilisation of the busiest disk < 70 % with threads=8: cannot tell; it was not measured (runs may" in text
    assert "Order of the cells: " in text
    assert "With threads=8, wal against delete: " in text
    for line, verdict in (("faster: wal is faster", "confirmed"), ("alike:", "contradicted"), ("cycles:", "open")):
        assert next(each for each in text.splitlines() if each.startswith(line)).rstrip().endswith(verdict)


def test_what_was_observed_stands_beside_what_was_published_with_what_is_missing_and_why() -> None:
    text = shown(findings_of(fake_results.expected()))
    part = text.partition("What was published, and what was observed here")[2].partition("Published figures: seen.csv")[
        0
    ]
    assert "beside the 4 cells with threads=1 or 8. They do not tell threads: each stands for all cells" in part
    rows = [line for line in part.splitlines() if re.search(r"threads=\d journal_mode=", line)]
    assert len(rows) == 6
    assert re.match(r"throughput \(ops/s\) +threads=1 journal_mode=delete +800\.0 +\d", rows[0])
    here = r"1,600 +1,718 \[.*\] +1\.07x \[.*\] +2x +2\.74x \[.*\]"
    assert re.search(f"threads=8 journal_mode=wal +{here}", rows[3])
    assert (
        "Not measured here: instructions of the system / cycles of the system. Why: the study has no observer" in part
    )
    assert "ipc: of all." in part
    assert "Columns that stand beside nothing: window." in part


@pytest.mark.parametrize("width", [40, 60, 100])
def test_targets_and_what_was_published_fit_the_terminal(width) -> None:
    text = shown(findings_of(fake_results.expected()), width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "contradicted" in text


def test_a_target_that_many_cells_miss_is_cut_short() -> None:
    results = fake_results.twenty_seven_cells()
    target = Target(response="throughput", bound="> 9000 ops/s")
    results.study = results.study.model_copy(update={"targets": (target,)})
    part = shown(findings_of(results)).partition("\nTargets\n")[2].partition("\n\n")[0]
    assert part.count("deployment=") == terminal.MOST_CELLS
    assert re.search(r"^and \d+ more$", part, re.M)


def test_what_was_published_cannot_steer_the_terminal() -> None:
    text = shown(findings_of(fake_results.expected("\x1b[2J[red]")), width=120)
    assert "\x1b[2J" not in text
    assert "[red]" in text


def test_levels_and_causes_are_text_and_never_markup_or_terminal_codes() -> None:
    study = fake_results.make_study({"mode": ["[red]", "[/]"]}, "mode")
    runs = fake_results.make_runs(study, 6)
    runs[0] = runs[0].model_copy(update={"outcome": Outcome.FAILED, "cause": "bell \x07 and \x1b[2J wipe"})
    text = shown(findings_of(fake_results.FakeResults(study, runs)), width=120)
    assert "[red]" in text
    assert "\x1b[2J" not in text
    assert "\x07" not in text


def test_every_failure_is_counted_even_where_not_all_are_listed() -> None:
    study = fake_results.make_study({}, None)
    run = fake_results.make_runs(study, 1, trouble=False)[0].model_copy(
        update={"outcome": Outcome.FAILED, "cause": "no disk"}
    )
    runs = [run.model_copy(update={"run": n}) for n in range(1, 31)]
    text = shown(findings_of(fake_results.FakeResults(study, runs)))
    assert text.startswith("No answer: there is no ok run. All 30 runs: no disk.")
    assert text.count("no disk") == 1 + terminal.MOST_FAILURES
    assert "and 10 more" in text


def test_two_folders_stand_side_by_side_with_the_warning() -> None:
    a, b = fake_results.eight_cells(), fake_results.eight_cells(9)
    out = io.StringIO()
    terminal.show_folders(
        compare_folders(a.study, a.runs, b.study, b.runs), Console(file=out), "results/a", "results/b"
    )
    assert "6 / 9" in out.getvalue()
    assert "not interleaved" in out.getvalue()
    assert "faster" not in out.getvalue()


@pytest.mark.parametrize("make", [fake_results.nothing, fake_results.one_cell, fake_results.hostile])
def test_every_kind_of_study_can_be_shown(make) -> None:
    assert "throughput (ops/s" in shown(findings_of(make()))


@pytest.mark.parametrize(
    ("share", "text"), [(0.0, "0%"), (1e-9, "<0.01%"), (0.0351, "3.5%"), (2.5, "250%"), (1074.064, ">1,000%")]
)
def test_a_precision_that_was_reached_is_a_plain_number_at_any_size(share: float, text: str) -> None:
    assert format_share(share) == text
