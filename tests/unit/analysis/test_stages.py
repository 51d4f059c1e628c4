"""What a report says of a staged study: what was picked, and a comparison that stage one has no part in."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from scipy.stats import gmean
from tests.making import make_record, make_study

from dyno import report
from dyno.analysis import analyse, compare_folders, gate_sessions
from dyno.design import Design, Stop
from dyno.model.findings import Findings
from dyno.model.published import Claim, Published
from dyno.model.run import Outcome, RunRecord, Slot
from dyno.model.study import Study
from dyno.report import terminal

Value = Callable[[Slot], float]


def staged(response: str = "throughput", **rest: Any) -> Study:
    """A B C are the tunings of solution x, D E those of y."""
    given = {"min": 3, "max": 6, "precision": "5%", "retries": 0, **rest}
    return make_study(
        {"solution": ("x", "y"), "tuning": (10, 20, 30)},
        compare="solution",
        stages={"best": "tuning", "levels": {"x": [10, 20, 30], "y": [10, 20]}},
        precision_of="ratio",
        of=response,
        **given,
    )


def run_all(study: Study, value: Value, *, failing: Callable[[Slot], bool] = lambda _: False) -> list[RunRecord]:
    design, runs = Design(study), []
    while not isinstance(slot := design.decide(), Stop):
        outcome = Outcome.FAILED if failing(slot) else Outcome.OK
        of = study.replicates.of
        record = make_record(len(runs) + 1, slot, outcome, None if failing(slot) else value(slot), response=of)
        record = record.model_copy(update={"levels": study.cells[slot.cell].levels})
        design.record(record)
        runs.append(record)
    return runs


def jitter(slot: Slot) -> float:
    return 1 + 0.001 * ((slot.block * 7 + slot.cell * 3) % 5)


def apart(slot: Slot) -> float:
    """B and D are plainly the best of theirs; D is twice as fast as B, and looked 10 % faster still in stage one."""
    lucky = 1.1 if slot.stage == 1 and slot.cell == 3 else 1.0
    return (100.0, 150.0, 100.0, 300.0, 90.0)[slot.cell] * lucky * jitter(slot)


@pytest.fixture(scope="module")
def runs() -> list[RunRecord]:
    return run_all(staged(), apart)


@pytest.fixture(scope="module")
def found(runs: list[RunRecord]) -> Findings:
    return analyse(staged(), runs, ended="done")


def test_each_choice_is_shown_with_its_mean_its_runner_up_and_how_sure_it_is(
    found: Findings, runs: list[RunRecord]
) -> None:
    x, y = found.choices
    assert (x.within, x.chosen, x.cell, x.shown, x.could_be) == ({"solution": "x"}, "20", 1, True, 1)
    assert (y.within, y.chosen, y.cell, y.runner_up) == ({"solution": "y"}, "10", 3, "20")
    first = [run.responses["throughput"] for run in runs if run.slot.stage == 1 and run.slot.cell == 1]
    assert x.mean == pytest.approx(float(gmean(first)))
    assert [(each.level, each.standing) for each in x.candidates] == [
        ("10", "shown to be worse"), ("20", "chosen"), ("30", "shown to be worse"),
    ]  # fmt: skip
    assert x.sentence.startswith("With solution=x, tuning 20 is shown to be best: 1.50x [")
    assert "the throughput of the runner-up" in x.sentence
    assert "(adjusted p " in x.sentence
    assert x.sentence.endswith(", n = 3 pairs).")


def test_cells_and_comparisons_are_of_stage_two_alone(found: Findings, runs: list[RunRecord]) -> None:
    second = {
        cell: [run.responses["throughput"] for run in runs if run.slot.stage == 2 and run.slot.cell == cell]
        for cell in (1, 3)
    }
    assert [(cell.levels, cell.values) for cell in found.cells] == [
        ({"solution": "x"}, tuple(second[1])), ({"solution": "y"}, tuple(second[3])),
    ]  # fmt: skip
    (comparison,) = found.comparisons
    ratios = [math.log(b / a) for a, b in zip(second[1], second[3], strict=True)]
    assert comparison.ratio == pytest.approx(math.exp(sum(ratios) / len(ratios)))
    assert comparison.n == len(second[1])
    assert comparison.sentence.endswith("Picked as best tuning: 20 for x, 10 for y.")


def test_no_value_of_stage_one_enters_the_comparison(found: Findings, runs: list[RunRecord]) -> None:
    # All of stage one ten times as fast: the same is picked, and nothing of the comparison may move.
    faster = [
        run.model_copy(update={"responses": {"throughput": 10 * run.responses["throughput"]}})
        if run.slot.stage == 1
        else run
        for run in runs
    ]
    other = analyse(staged(), faster, ended="done")
    assert other.cells == found.cells
    assert other.comparisons == found.comparisons
    assert other.choices != found.choices


def test_how_much_better_the_pick_looked_is_told_with_its_interval(found: Findings) -> None:
    x, y = found.choices
    assert y.optimism == pytest.approx(1.1, rel=0.005)
    assert y.optimism_ci is not None
    assert y.optimism_ci[0] < 1.1 < y.optimism_ci[1] * 1.005
    assert x.optimism == pytest.approx(1.0, rel=0.005)
    assert any("looked 4.9% better" in note for note in found.notes)


def test_the_report_says_in_words_that_the_stages_share_no_run(found: Findings, runs: list[RunRecord]) -> None:
    first = sum(run.slot.stage == 1 for run in runs)
    assert found.notes[0] == (
        f"The best tuning was picked on the {first} runs of stage one; cells and comparisons are of the "
        f"{len(runs) - first} runs of stage two alone: no run is in both, so luck in picking decides nothing."
    )
    assert found.answer.startswith("y is faster than x: 2.00x [")
    assert found.answer.endswith("Each solution is at the tuning picked as its best, on other runs.")
    assert found.runs == len(runs)


def test_the_interval_of_stage_two_is_the_one_that_stopped_it(runs: list[RunRecord], found: Findings) -> None:
    design = Design(staged())
    for run in runs:
        design.record(run)
    assert design.state().reached == pytest.approx(found.comparisons[0].precision)
    assert all(cell.converged for cell in found.cells)


def test_a_pick_that_is_not_shown_says_among_how_many_it_was_made() -> None:
    def alike(slot: Slot) -> float:
        return 100 + 30 * ((slot.block + slot.cell) % 2) + 0.1 * (slot.cell in (1, 4))

    found = analyse(staged(), run_all(staged(), alike), ended="done")
    x, y = found.choices
    assert (x.chosen, x.shown, x.could_be) == ("20", False, 3)
    assert "tuning 20 is not shown to be best, chosen among 3 that could be: 1." in x.sentence
    assert found.comparisons[0].sentence.endswith(
        "Picked as best tuning: 20 (one of 3 that could be the best) for x, 20 (one of 2 that could be the best) for y."
    )
    assert any("not shown to be the best in 2 of 2 choices" in note for note in found.notes)
    assert found.answer.endswith("picked in stage one, which is not shown to be the best in 2 of 2 choices.")
    assert y.could_be == 2


def test_of_a_latency_the_lowest_is_picked_and_luck_is_a_lower_one() -> None:
    study = staged("latency_p99")

    def latency(slot: Slot) -> float:
        return (9.0, 5.0, 9.0, 4.0, 8.0)[slot.cell] * (0.9 if slot.stage == 1 else 1.0) * jitter(slot)

    found = analyse(study, run_all(study, latency), ended="done")
    assert [choice.chosen for choice in found.choices] == ["20", "10"]
    assert [choice.optimism for choice in found.choices] == pytest.approx([1 / 0.9, 1 / 0.9], rel=0.005)
    runner = found.choices[1].candidates[1]
    assert runner.ratio == pytest.approx(0.5, rel=0.005)


# ---- studies that are not over, or went wrong


@pytest.mark.parametrize("kept", [0, 1, 3, 7, 14])
def test_while_stage_one_lasts_nothing_is_answered(runs: list[RunRecord], kept: int) -> None:
    found = analyse(staged(), runs[:kept], ended=None)
    assert found.answer == "No answer yet: what is picked in stage one has not been compared."
    assert {each.verdict for each in found.comparisons} == {"not enough runs"}
    assert found.notes[0].startswith("Stage one is not over")


def test_a_tuning_that_failed_of_late_is_out_and_said_to_be() -> None:
    def failing(slot: Slot) -> bool:
        return slot.cell == 1 and slot.block >= 1

    runs = run_all(staged(), apart, failing=failing)
    found = analyse(staged(), runs, ended="done")
    assert found.choices[0].chosen in ("10", "30")
    assert found.choices[0].candidates[1].standing == "out: its last runs failed"
    assert len(found.failures) == 2
    assert {run.slot.cell for run in runs if run.slot.stage == 2} == {found.choices[0].cell, 3}


def test_a_solution_whose_every_tuning_failed_is_named_and_not_compared() -> None:
    runs = run_all(staged(), apart, failing=lambda slot: slot.cell >= 3)
    found = analyse(staged(), runs, ended="done")
    assert (found.choices[1].chosen, found.choices[1].cell) == (None, None)
    assert found.comparisons[0].verdict == "not enough runs"
    assert any("No tuning could be picked with solution=y" in note for note in found.notes)
    assert "none for y" in found.comparisons[0].sentence


def test_blocks_at_the_end_in_which_every_run_failed_still_count() -> None:
    # With both tunings of y lost in the last two blocks design picks none of them, and so must the report.
    study = staged(max=4)
    runs = run_all(study, lambda slot: 100 + slot.cell * 0.01 * slot.block, failing=lambda slot: slot.block in (2, 3))
    assert {run.slot.stage for run in runs} == {1}
    assert [choice.chosen for choice in analyse(study, runs, ended="done").choices] == [None, None]


def test_runs_of_what_was_not_picked_are_in_no_figure_and_told(runs: list[RunRecord], found: Findings) -> None:
    stray = make_record(len(runs) + 1, Slot(cell=0, block=99, stage=2), value=1.0)
    other = analyse(staged(), [*runs, stray], ended="done")
    assert other.cells == found.cells
    assert any(note.startswith("1 run of stage two are of cells that stage one") for note in other.notes)


def test_in_two_folders_the_cells_that_were_compared_are_set_side_by_side(runs: list[RunRecord]) -> None:
    sides = compare_folders(staged(), runs, staged(), runs)
    second = sum(run.slot.stage == 2 and run.slot.cell == 1 for run in runs)
    assert [(each.n_a, each.n_b) for each in sides] == [(0, 0), (second, second), (0, 0), (second, second), (0, 0)]


# ---- how it is shown


def test_findings_go_through_json_and_back(found: Findings) -> None:
    assert Findings.model_validate_json(report.to_json(found)) == found
    assert json.loads(report.to_json(found))["choices"][0]["chosen"] == "20"


@pytest.mark.parametrize("kept", [0, 5, 1000])
def test_the_terminal_shows_the_table_of_choices(runs: list[RunRecord], kept: int) -> None:
    out = io.StringIO()
    terminal.show(analyse(staged(), runs[:kept], ended=None), Console(file=out, width=200))
    assert "stage one: the best tuning by throughput (ops/s, geometric means)" in out.getvalue()
    assert "best / runner-up" in out.getvalue()


class Folder:
    """What a report needs, without a folder."""

    def __init__(self, study: Study, runs: list[RunRecord]) -> None:
        self.study, self.runs = study, runs
        self.study_yaml, self.environment, self.selfcheck = "", {}, None

    def samples(self, run: int) -> pl.DataFrame:
        return pl.DataFrame()

    def intervals(self, run: int) -> pl.DataFrame:
        return pl.DataFrame()


@pytest.mark.parametrize("kept", [0, 5, 1000])
def test_the_page_shows_each_choice_and_draws_only_what_was_compared(
    tmp_path: Path, runs: list[RunRecord], kept: int
) -> None:
    some = runs[:kept]
    found = analyse(staged(), some, ended=None)
    page = report.write(Folder(staged(), some), found, tmp_path).read_text()
    assert "Stage one: the best tuning" in page
    assert "All that was to be picked from" in page
    assert page.count('id="choices"') == 1
    if kept > len(runs):
        assert (tmp_path / "figures" / "forest.csv").read_text().count("\n") == 2


def test_published_findings_and_what_explains_the_variation_are_of_what_was_picked() -> None:
    predicate = {"ratio": {"of": "throughput", "b": {"solution": "y"}, "a": {"solution": "x"}}, "is": "> 1.5"}
    claim = Claim.model_validate({"id": "y-wins", "says": "y is faster at its best", "predicate": predicate})
    study = staged().model_copy(update={"published": Published(findings=(claim,))})
    found = analyse(study, run_all(study, apart), ended="done")
    (judged,) = found.claims
    assert judged.verdict == "confirmed", judged.reason
    (evidence,) = judged.evidence
    assert (evidence.a, evidence.b) == ({"solution": "x"}, {"solution": "y"})
    (explained,) = found.variation
    assert explained.sentence.startswith("Of throughput, solution explains")
    assert len(explained.runs) == sum(cell.n for cell in found.cells)


def test_only_what_was_compared_is_held_against_earlier_sessions() -> None:
    study, runs = staged(), run_all(staged(), apart)
    slower = [
        run.model_copy(update={"responses": {"throughput": run.responses["throughput"] / 2}})
        if run.slot.stage == 1
        else run
        for run in runs
    ]
    found = gate_sessions([(study, runs)] * 5, (study, slower), slower=0.03)
    assert {cell.verdict for cell in found.cells if cell.levels in ({"solution": "x", "tuning": "20"},)} == {
        "not slower"
    }


def test_a_finding_of_the_tuned_factor_is_judged_by_the_runs_of_stage_one() -> None:
    def best(level: str) -> dict[str, Any]:
        of = {"of": "throughput", "over": "tuning", "where": {"solution": "x"}}
        return {"trend": of, "is": {"peaks-at": level}}

    of_solutions = {"ratio": {"of": "throughput", "b": {"solution": "y"}, "a": {"solution": "x"}}, "is": "> 1.5"}
    said = {"right": best("20"), "other": of_solutions, "wrong": best("30"), "in all": {"all": [best("20")]}}
    findings = [Claim.model_validate({"id": id_, "says": id_, "predicate": each}) for id_, each in said.items()]
    study = staged().model_copy(update={"published": Published(findings=tuple(findings))})
    runs = run_all(study, apart)
    told = analyse(study, runs, ended="done").claims
    assert [(claim.id, claim.verdict) for claim in told] == [
        ("right", "confirmed"), ("other", "confirmed"), ("wrong", "contradicted"), ("in all", "confirmed"),
    ]  # fmt: skip
    assert told[0].evidence[0].value == pytest.approx(1.5, rel=0.01)
    assert told[0].evidence[0].b["tuning"] == "20"
