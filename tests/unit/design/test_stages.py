"""A study in two stages: what is run, when stage one ends, and that a resumed study goes on where it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dyno.design import Design, Stop, forecast
from dyno.model.run import Outcome, Slot
from dyno.model.stages import choices, comparing, looks_at_picks, picking
from dyno.model.study import Study
from tests.making import make_record, make_study
from tests.unit.design.execution import Values, carry_out, order_of, wide

# A B C are the tunings 1 2 3 of solution x, D E those of y.
OWN = {"x": [1, 2, 3], "y": [1, 2]}


def staged(levels: dict[str, list[int]] = OWN, *, share: str = "50%", most: int | None = None, **rest: Any) -> Study:
    given = {"order": "fixed", "min": 3, "max": 6, "precision": "5%", **rest}
    return make_study(
        {"solution": tuple(levels), "tuning": (1, 2, 3)},
        compare="solution",
        stages={"best": "tuning", "levels": levels, "share": share, "max": most},
        precision_of="ratio",
        **given,
    )


def apart(slot: Slot) -> float:
    """B and D are plainly the best of theirs, and every comparison is precise."""
    return (100.0, 150.0, 100.0, 200.0, 90.0)[slot.cell] * (1 + 0.001 * ((slot.block * 7 + slot.cell * 3) % 5))


def alike(slot: Slot) -> float:
    """Nothing is shown of any; B and E have the highest means."""
    return 100 + 30 * ((slot.block + slot.cell) % 2) + 0.1 * (slot.cell in (1, 4))


# ---- what is run


def test_stage_one_runs_all_and_stage_two_only_what_was_picked_in_blocks_of_its_own() -> None:
    assert order_of(staged(), values=apart) == (
        "A B C D E | A B C D E | A B C D E | B D | B D | B D => every interval is within 5% after 3 blocks"
    )


def test_the_blocks_go_on_counting_and_each_run_carries_its_stage() -> None:
    records, _ = carry_out(staged(), values=apart)
    assert {(run.slot.stage, run.slot.block) for run in records} == {(1, 0), (1, 1), (1, 2), (2, 3), (2, 4), (2, 5)}


def test_picks_that_are_not_shown_are_made_after_the_most_blocks_all_the_same() -> None:
    records, _ = carry_out(staged(most=4), values=alike)
    assert [run.slot.block for run in records if run.slot.stage == 1] == [block for block in range(4) for _ in "ABCDE"]
    assert {run.slot.cell for run in records if run.slot.stage == 2} == {1, 4}


def test_stage_two_begins_with_nothing() -> None:
    # The runs of stage one are precise long before; it still takes its own fewest blocks.
    records, _ = carry_out(staged(min=4, max=9), values=apart)
    assert len([run for run in records if run.slot.stage == 2]) == 4 * 2


def test_a_solution_with_one_tuning_has_nothing_to_pick_and_runs_in_stage_two_alone() -> None:
    assert order_of(staged({"x": [1, 2, 3], "y": [1]}), values=apart).startswith("A B C | A B C | A B C | B D | B D")


def test_each_combination_of_the_other_factors_has_its_own_pick() -> None:
    study = make_study(
        {"solution": ("x", "y"), "tuning": (1, 2), "threads": (1, 4)},
        compare="solution",
        stages={"best": "tuning"},
        precision_of="ratio",
        order="fixed",
        min=3,
        max=3,
    )
    assert [choice.name for choice in choices(study)] == [
        "solution=x threads=1", "solution=x threads=4", "solution=y threads=1", "solution=y threads=4",
    ]  # fmt: skip
    fast = {0, 3, 6, 5}  # the best of x is 1 at one thread and 2 at four; that of y is 2 at one and 1 at four
    values = [1000.0 if cell in fast else 500.0 for cell in range(8)]
    records, _ = carry_out(study, values=lambda slot: values[slot.cell] + slot.block)
    assert {run.slot.cell for run in records if run.slot.stage == 2} == fast


def test_the_lowest_is_picked_where_lower_is_better() -> None:
    study = staged(of="latency_p99")
    design, number = Design(study), 0
    while not isinstance(slot := design.decide(), Stop):
        number += 1
        design.record(make_record(number, slot, value=apart(slot), response="latency_p99"))
        if slot.stage == 2:
            assert slot.cell in (0, 2, 4)


def test_the_study_of_stage_two_has_every_factor_but_the_tuned_one() -> None:
    second = comparing(staged(), [1, None])
    assert [factor.name for factor in second.factors] == ["solution"]
    assert [(cell.index, cell.levels) for cell in second.cells] == [(1, {"solution": "x"}), (3, {"solution": "y"})]
    assert second.stages is None


# ---- when stage one ends


def test_stage_one_is_looked_at_few_times_the_last_at_its_most_blocks() -> None:
    assert looks_at_picks(staged(min=5, max=30)) == (5, 8, 12, 18, 27, 30)
    assert looks_at_picks(staged(min=3, max=30, most=7)) == (3, 4, 6, 7)
    assert looks_at_picks(staged(min=2, max=2)) == (2,)
    assert looks_at_picks(staged(min=5, max=20, most=3)) == (3,)
    assert looks_at_picks(staged(min=2, max=4, most=50)) == (3, 4), "a scale that lowers max lowers it here too"


def test_a_pick_that_is_shown_between_two_looks_ends_nothing_before_the_next() -> None:
    # Blocks 0 to 2 are alike, so the first look (3) shows nothing; from then on B and D are far ahead.
    def late(slot: Slot) -> float:
        return alike(slot) if slot.block < 3 else 40 * apart(slot)

    records, _ = carry_out(staged(min=3, max=30), values=late)
    ended = 1 + max(run.slot.block for run in records if run.slot.stage == 1)
    assert ended in looks_at_picks(staged(min=3, max=30))
    assert ended > 3


def test_stage_one_takes_no_more_than_its_share_of_the_budget_and_stage_two_the_rest() -> None:
    study = staged(min=3, max=1000, budget="100 s", share="40%")
    records, stop = carry_out(study, values=wide_and_alike)
    first = [run for run in records if run.slot.stage == 1]
    assert len(first) == 8 * 5, "a ninth block would end at 45 s"
    assert len(records) - len(first) == 30 * 2
    assert stop is not None
    assert "budget of 1 min 40 s; 30 blocks were run" in stop.reason


def test_stage_one_keeps_its_fewest_blocks_beyond_its_share() -> None:
    """A share of 35 % ended it after two blocks where three were asked for, and every interval was of two pairs."""
    study = staged(min=3, max=1000, budget="100 s", share="5%")
    records, _ = carry_out(study, values=wide_and_alike)
    first = [run for run in records if run.slot.stage == 1]
    assert len(first) == 3 * 5
    assert len(records) - len(first) == 42 * 2


def test_stage_one_takes_no_more_than_half_of_the_budget_for_its_fewest_blocks() -> None:
    study = staged(min=3, max=1000, budget="28 s", share="5%")
    records, _ = carry_out(study, values=wide_and_alike)
    assert sum(run.slot.stage == 1 for run in records) == 2 * 5, "a third block would end at 15 s"


def test_stage_one_may_have_a_fewest_of_its_own() -> None:
    base = staged(min=6, max=30)
    assert base.stages is not None
    study = base.model_copy(update={"stages": base.stages.model_copy(update={"min": 3})})
    assert looks_at_picks(study)[0] == 3
    records, _ = carry_out(study, values=apart)
    assert [sum(run.slot.stage == stage for run in records) for stage in (1, 2)] == [3 * 5, 6 * 2]


def wide_and_alike(slot: Slot) -> float:
    return wide(slot) + (slot.cell == 0)


def test_a_tuning_that_fails_is_given_up_and_cannot_be_picked() -> None:
    told = order_of(staged(retries=0), {"B": "xx"}, values=apart)
    assert told.startswith("A Bx C D E | A Bx C D E | A C D E |")
    assert told.partition("=>")[0].split("|")[-1].split() in (["A", "D"], ["C", "D"])


def test_where_every_tuning_of_a_solution_fails_the_other_is_still_measured_and_nothing_is_precise() -> None:
    records, stop = carry_out(staged(retries=0, max=4), {"D": "xx", "E": "xx"}, values=apart)
    assert {run.slot.cell for run in records if run.slot.stage == 2} == {1}
    assert stop == Stop("the maximum of 4 blocks was reached", converged=False)


def test_where_everything_fails_there_is_no_stage_two() -> None:
    told = order_of(staged(retries=0), dict.fromkeys("ABCDE", "xxxxxx"))
    assert told == "Ax Bx Cx Dx Ex | Ax Bx Cx Dx Ex => every cell failed 2 blocks in a row"


# ---- resuming


@st.composite
def histories(draw: st.DrawFn) -> tuple[Study, dict[str, str], Values]:
    least = draw(st.integers(2, 3))
    study = staged(
        draw(st.sampled_from([OWN, {"x": [1, 2], "y": [3]}, {"x": [1], "y": [1, 2, 3]}])),
        share=draw(st.sampled_from(["20%", "50%"])),
        most=draw(st.sampled_from([None, 2, 4])),
        order=draw(st.sampled_from(["fixed", "randomised"])),
        seed=draw(st.integers(0, 100)),
        retries=draw(st.integers(0, 1)),
        min=least,
        max=draw(st.integers(least, 5)),
        budget=draw(st.sampled_from([None, "40 s"])),
    )
    endings = {letter: draw(st.text("...x?~", max_size=6)) for letter in "ABCDE"}
    return study, endings, draw(st.sampled_from([apart, alike, wide]))


@given(histories())
@settings(max_examples=40, deadline=None)
def test_a_staged_design_that_is_fed_the_runs_again_asks_for_the_same_at_every_point(
    history: tuple[Study, dict[str, str], Values],
) -> None:
    study, endings, values = history
    records, stop = carry_out(study, endings, values=values)
    assert stop is not None
    for place in range(0, len(records) + 1, 3):
        fresh = Design(study)
        for earlier in records[:place]:
            fresh.record(earlier)
        following = records[place].slot if place < len(records) else stop
        assert fresh.decide() == fresh.decide() == following
        assert fresh.state() == fresh.state()


@given(histories())
@settings(max_examples=40, deadline=None)
def test_no_block_is_of_two_stages_and_every_cell_of_stage_two_is_one_of_each_choice(
    history: tuple[Study, dict[str, str], Values],
) -> None:
    study, endings, values = history
    records, _ = carry_out(study, endings, values=values)
    stages = {run.slot.block: run.slot.stage for run in records}
    assert list(stages.values()) == sorted(stages.values(), key=int)
    assert all(stages[run.slot.block] == run.slot.stage for run in records)
    compared = {run.slot.cell for run in records if run.slot.stage == 2}
    for choice in choices(study):
        assert len(compared & {cell.index for cell in choice.cells}) <= 1


def test_a_run_without_its_stage_is_refused() -> None:
    with pytest.raises(ValueError, match="is not what the design asks for"):
        Design(staged()).record(make_record(1, Slot(cell=0, block=0), value=1.0))


def test_a_study_without_stages_asks_for_runs_without_one() -> None:
    slot = Design(make_study()).decide()
    assert isinstance(slot, Slot)
    assert slot.stage is None


def test_the_state_tells_the_stage_and_no_width_while_picking() -> None:
    study = staged()
    records, _ = carry_out(study, values=apart)
    design, told = Design(study), []
    for record in records:
        design.record(record)
        state = design.state()
        told.append((state.stage, state.reached is None))
    assert told[:15] == [(1, True)] * 15
    assert told[-1] == (2, False)


# ---- how long it takes


def test_the_forecast_is_of_both_stages_with_the_quickest_and_the_slowest_picks() -> None:
    study = staged(min=3, max=6)
    found = forecast(study, dict(enumerate([1.0, 2.0, 3.0, 4.0, 5.0])))
    assert found.least == 3 * 15 + 3 * (1 + 4)
    assert found.most == 6 * 15 + 6 * (3 + 5)


def test_what_is_left_is_never_less_than_what_was_then_run() -> None:
    study = staged(max=4)
    records, _ = carry_out(study, values=alike)
    design = Design(study)
    for done, record in enumerate(records, 1):
        design.record(record)
        left = design.seconds_left()
        assert left is not None
        assert left >= len(records) - done


def test_the_cells_of_stage_one_are_those_with_something_to_pick() -> None:
    assert [cell.index for cell in picking(staged({"x": [1, 2], "y": [3]})).cells] == [0, 1]


def test_outcomes_that_fill_no_slot_change_nothing() -> None:
    study = staged()
    with_partial, _ = carry_out(study, {"A": ".~"}, values=apart)
    without, _ = carry_out(study, values=apart)
    assert [run.slot for run in with_partial if run.outcome is Outcome.OK] == [run.slot for run in without]
