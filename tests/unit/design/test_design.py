"""Which run comes next, and when a study is done. Read `execution.py` for the language of the scenarios."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dyno import stats
from dyno.design import Design, Stop, block_order, forecast
from dyno.design.rule import Rule
from dyno.model.looks import GIVE_UP_AFTER
from dyno.model.run import Outcome, Slot
from dyno.model.study import Study
from tests.making import make_record, make_study
from tests.unit.design.execution import carry_out, order_of, steady, wide

SEEDS = st.integers(0, 2**63 - 1)


def cells(number: int, **rest: Any) -> Study:
    """A study of so many cells in the order in which they are declared, that never reaches its precision by chance."""
    return make_study({"mean": tuple(range(1, number + 1))}, **{"order": "fixed", "precision": "1%", **rest})


# ---- the order within a block


@given(SEEDS, st.integers(0, 1000), st.integers(1, 12))
def test_a_block_has_every_cell_once(seed: int, block: int, number: int) -> None:
    assert sorted(block_order(cells(number, seed=seed, order="randomised"), block)) == list(range(number))


@given(SEEDS, st.integers(0, 1000))
def test_the_order_of_a_block_is_the_same_whenever_it_is_asked(seed: int, block: int) -> None:
    first, second = (cells(8, seed=seed, order="randomised") for _ in range(2))
    assert block_order(first, block) == block_order(second, block)


@given(SEEDS)
def test_the_order_differs_between_blocks_and_between_seeds(seed: int) -> None:
    # 12 cells: that two of 479,001,600 orders agree by chance does not happen within these examples.
    study, other = (cells(12, seed=s, order="randomised") for s in (seed, (seed + 1) % 2**63))
    assert block_order(study, 0) != block_order(study, 1)
    assert block_order(study, 0) != block_order(other, 0)


def test_the_order_is_that_of_earlier_dynos() -> None:
    # A study that was cut off is resumed by whatever dyno and Python are there then.
    study = cells(6, seed=1, order="randomised")
    assert [block_order(study, block) for block in range(3)] == GOLDEN_ORDER


GOLDEN_ORDER = [(5, 0, 1, 2, 4, 3), (3, 1, 2, 5, 0, 4), (5, 2, 3, 0, 1, 4)]


def test_each_place_in_a_block_is_as_likely_for_each_cell() -> None:
    study, blocks = cells(4, order="randomised"), 2000
    counts = [[0] * 4 for _ in range(4)]
    for block in range(blocks):
        for place, cell in enumerate(block_order(study, block)):
            counts[place][cell] += 1
    chi_squared = sum((n - blocks / 4) ** 2 / (blocks / 4) for row in counts for n in row)
    assert chi_squared < 27.9, "chi-squared with 9 degrees of freedom, 99.9th percentile"


def test_a_fixed_order_is_that_of_the_study_file() -> None:
    assert [block_order(cells(4), block) for block in range(3)] == [(0, 1, 2, 3)] * 3


# ---- when it ends


def test_precise_cells_end_at_the_fewest_blocks() -> None:
    assert order_of(cells(2, min=4, max=9)) == "A B | A B | A B | A B => every interval is within 1% after 4 blocks"


def test_no_study_ends_precise_before_an_interval_can_hold_what_it_says() -> None:
    assert order_of(cells(2, min=2, max=9)).endswith("after 4 blocks")
    compared = cells(2, min=2, max=9, compare="mean", precision_of="ratio")
    assert order_of(compared).endswith("after 3 blocks")
    # With one look, at the end, nothing was picked by luck.
    assert order_of(cells(2, min=2, max=2)).endswith("within 1% after 2 blocks")


def test_noisy_cells_end_at_the_most_blocks() -> None:
    told = order_of(cells(2, min=2, max=4), values=wide)
    assert told == "A B | A B | A B | A B => the maximum of 4 blocks was reached"


def test_a_study_ends_at_the_first_block_end_after_its_precision_is_reached() -> None:
    def settles(slot: Slot) -> float:
        return 100.0 + (10.0 if slot.block < 2 else 0.0) * (-1 if slot.block % 2 else 1)

    study = cells(1, min=2, max=1000, precision="10%")
    records, stop = carry_out(study, values=settles)
    assert stop is not None
    assert stop.converged
    values = np.array([[record.responses["throughput"]] for record in records])
    assert width(values) <= 0.10
    assert all(width(values[:n]) > 0.10 for n in range(4, len(values)))


def width(values: NDArray[np.float64]) -> float:
    """Of the interval of the only cell's mean, relative to it."""
    times = np.arange(1.0, len(values) + 1)[:, None]
    found = stats.cell_means(values, times, 0.95, randomised=False, widening=stats.widening_of_means(4, 1000))
    return float(stats.relative_widths(found)[0])


def test_cells_that_are_precise_stay_in_until_all_are() -> None:
    def noisy_b(slot: Slot) -> float:
        return 100.0 + (80 * (-1) ** slot.block if slot.cell == 1 and slot.block < 4 else 0)

    records, stop = carry_out(cells(2, min=2, max=30, precision="50%"), values=noisy_b)
    blocks = records[-1].slot.block + 1
    assert stop is not None
    assert stop.converged
    assert blocks > 4
    assert [record.slot.cell for record in records] == [0, 1] * blocks


@pytest.mark.parametrize("budget", [1, 4, 5, 6, 7, 10, 11, 12])
def test_a_budget_ends_at_a_block_end_before_it_is_passed(budget: int) -> None:
    study = cells(3, min=2, max=30, budget=f"{budget} s")
    records, stop = carry_out(study, values=wide, seconds=1.0)
    assert stop is not None
    assert "budget" in stop.reason
    assert not stop.converged
    assert len(records) % 3 == 0, "never within a block"
    assert len(records) == max(budget // 3, 1) * 3, "as many whole blocks as fit, and one at the least"


def test_a_budget_that_is_large_enough_changes_nothing() -> None:
    assert order_of(cells(2, budget="60 min")) == "A B | A B => every interval is within 1% after 2 blocks"


def test_retries_and_partial_runs_use_up_the_budget() -> None:
    study = cells(1, min=2, max=30, budget="7 s")
    assert order_of(study, values=wide, seconds=1).startswith("A | A | A | A | A | A | A =>")
    assert order_of(study, {"A": "x.~."}, values=wide, seconds=1).startswith("Ax A | A~ A | A | A =>")


# ---- what goes wrong


@pytest.mark.parametrize("mark", ["x", "?"])
def test_a_run_that_went_wrong_is_tried_again_within_its_block(mark: str) -> None:
    assert order_of(cells(2), {"A": mark}).startswith(f"A{mark} A B | A B =>")


def test_a_cell_is_tried_as_often_as_the_study_says_and_then_left_for_the_next_block() -> None:
    assert order_of(cells(2, retries=2, max=3, min=3), {"A": "xxx"}).startswith("Ax Ax Ax B | A B | A B =>")
    assert order_of(cells(2, retries=0, max=3, min=3), {"A": "x"}).startswith("Ax B | A B | A B =>")


def test_a_setting_that_was_refused_is_not_tried_again() -> None:
    """Four runs failed in the same way, of which each took a server's start."""
    design = Design(cells(1, retries=1, min=3, max=3))
    slot = design.decide()
    assert not isinstance(slot, Stop)
    design.record(make_record(1, slot, Outcome.FAILED).model_copy(update={"permanent": True}))
    stop = design.decide()
    assert isinstance(stop, Stop)
    assert stop.reason == "every cell failed 2 blocks in a row, or asks for what is refused"
    assert not stop.converged


def test_a_budget_that_ends_a_study_before_min_says_what_to_raise() -> None:
    _, stop = carry_out(cells(2, min=5, max=9, budget="10 s", precision="0.0001%"), values=wide, seconds=2.0)
    assert stop is not None
    assert stop.reason.endswith("2 blocks were run; min 5 not reached: raise replicates.budget")
    _, stop = carry_out(cells(2, min=2, max=9, budget="10 s", precision="0.0001%"), values=wide, seconds=2.0)
    assert stop is not None
    assert stop.reason.endswith("2 blocks were run")


def test_attempts_count_from_zero_in_each_block() -> None:
    records, _ = carry_out(cells(1, retries=2, min=2), {"A": "xx.x."})
    assert [(record.slot.block, record.slot.attempt) for record in records] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)]


def test_a_cell_that_loses_two_blocks_in_a_row_is_given_up_and_the_others_go_on() -> None:
    assert GIVE_UP_AFTER == 2
    told = order_of(cells(3, retries=1, min=4, max=4), {"B": "xxxx"})
    assert told == (
        "A Bx Bx C | A Bx Bx C | A C | A C => every interval is within 1% after 4 blocks, save 1 cell that failed"
    )


def test_a_study_that_gave_a_cell_up_has_not_converged() -> None:
    _, stop = carry_out(cells(2, retries=0, min=2), {"A": "xx"})
    assert stop is not None
    assert not stop.converged


def test_a_good_block_between_two_lost_ones_keeps_a_cell_in() -> None:
    told = order_of(cells(2, retries=0, min=5, max=5), {"A": "x.x."})
    assert told.startswith("Ax B | A B | Ax B | A B | A B =>")


def test_a_study_in_which_every_cell_fails_ends() -> None:
    told = order_of(cells(2, retries=1, min=5, max=30), {"A": "x" * 99, "B": "x" * 99})
    assert told == "Ax Ax Bx Bx | Ax Ax Bx Bx => every cell failed 2 blocks in a row"


def test_a_partial_run_leaves_its_slot_open() -> None:
    assert order_of(cells(2), {"A": "~", "B": ".~~"}).startswith("A~ A B | A B~ B~ B =>")


def test_a_partial_run_is_no_attempt() -> None:
    records, _ = carry_out(cells(1, retries=1, min=2), {"A": "x~."})
    assert [record.slot.attempt for record in records] == [0, 1, 1, 0]


def test_an_ok_run_without_the_response_that_decides_counts_as_one_that_went_wrong() -> None:
    design = Design(cells(1, retries=1))
    design.record(make_record(1, Slot(cell=0, block=0), Outcome.OK, 5.0, response="latency_p99"))
    assert design.decide() == Slot(cell=0, block=0, attempt=1)


def test_the_response_that_decides_is_the_one_of_the_study() -> None:
    study = cells(1, of="read.latency_p99", min=2, max=30)
    design = Design(study)
    for block in range(4):
        record = make_record(block + 1, Slot(cell=0, block=block), Outcome.OK, 3.0, response="read.latency_p99")
        design.record(record)
    stop = design.decide()
    assert isinstance(stop, Stop)
    assert stop.converged


# ---- going on


@st.composite
def histories(draw: st.DrawFn) -> tuple[Study, dict[str, str]]:
    number = draw(st.integers(1, 4))
    least = draw(st.integers(2, 3))
    study = cells(
        number,
        order=draw(st.sampled_from(["fixed", "randomised"])),
        seed=draw(SEEDS),
        retries=draw(st.integers(0, 2)),
        min=least,
        max=draw(st.integers(least, 5)),
        budget=draw(st.sampled_from([None, "9 s", "60 min"])),
        compare=draw(st.sampled_from([None, "mean"])),
        precision_of=draw(st.sampled_from(["mean", "ratio"])),
    )
    endings = {chr(ord("A") + n): draw(st.text("..x?~", max_size=8)) for n in range(number)}
    return study, endings


@given(histories(), st.sampled_from([steady, wide]))
@settings(max_examples=60)
def test_a_design_that_is_fed_the_runs_again_asks_for_the_same_at_every_point(
    history: tuple[Study, dict[str, str]], values: Any
) -> None:
    study, endings = history
    records, stop = carry_out(study, endings, values=values)
    resumed = Design(study)
    for record in records:
        assert resumed.decide() == record.slot
        fresh = Design(study)
        for earlier in records[: record.run - 1]:
            fresh.record(earlier)
        assert fresh.decide() == record.slot
        assert fresh.state() == resumed.state()
        resumed.record(record)
    assert resumed.decide() == stop


@given(histories())
def test_every_history_ends_within_the_most_runs_that_the_study_allows(history: tuple[Study, dict[str, str]]) -> None:
    study, endings = history
    rule = study.replicates
    partial = sum(ends.count("~") for ends in endings.values())
    records, stop = carry_out(study, endings, values=wide)
    assert stop is not None
    assert len(records) <= rule.max * len(study.cells) * (rule.retries + 1) + partial


@given(histories())
def test_asking_twice_is_the_same_as_asking_once(history: tuple[Study, dict[str, str]]) -> None:
    study, _ = history
    design = Design(study)
    assert design.decide() == design.decide()
    assert design.state() == design.state()


@pytest.mark.parametrize(
    "slot", [Slot(cell=1, block=0), Slot(cell=0, block=1), Slot(cell=0, block=0, attempt=1), Slot(cell=7, block=0)]
)
def test_a_run_that_is_not_the_one_to_come_is_refused(slot: Slot) -> None:
    design = Design(cells(2))
    with pytest.raises(ValueError, match="is not what the design asks for"):
        design.record(make_record(1, slot, value=1.0))
    assert design.state().runs == 0


def test_a_run_after_the_end_is_refused() -> None:
    study = cells(1)
    records, _ = carry_out(study)
    design = Design(study)
    for record in records:
        design.record(record)
    with pytest.raises(ValueError, match="is not what the design asks for"):
        design.record(make_record(9, Slot(cell=0, block=2), value=1.0))


# ---- what precision is of


def drifting(slot: Slot) -> float:
    """A machine that becomes slower with each block, on which B is always twice as fast as A."""
    return (1000 - 150 * slot.block) * (slot.cell + 1) * (1 + 0.001 * ((slot.block + slot.cell) % 2))


def test_a_ratio_within_blocks_is_precise_where_the_means_are_not() -> None:
    rule: dict[str, Any] = {"min": 3, "max": 5, "precision": "5%", "compare": "mean"}
    _, of_means = carry_out(cells(2, precision_of="mean", **rule), values=drifting)
    _, of_ratios = carry_out(cells(2, precision_of="ratio", **rule), values=drifting)
    assert of_means is not None
    assert of_ratios is not None
    assert not of_means.converged
    assert of_ratios.converged


def test_the_precision_of_a_ratio_is_the_half_width_that_stats_gives() -> None:
    study = cells(2, precision_of="ratio", compare="mean", min=4, max=4)
    records, _ = carry_out(study, values=drifting)
    design = Design(study)
    for record in records:
        design.record(record)
    a, b = ([r.responses["throughput"] for r in records if r.slot.cell == cell] for cell in (0, 1))
    ratio = stats.paired_ratio(a, b, 0.95)
    assert ratio is not None
    assert design.state().reached == pytest.approx(math.expm1(ratio.half_width))


def test_ratios_are_of_the_blocks_that_both_cells_have() -> None:
    study = cells(2, precision_of="ratio", compare="mean", min=3, max=3, retries=0)
    records, stop = carry_out(study, {"A": ".x."}, values=drifting)
    assert stop is not None
    assert not stop.converged, "two pairs are fewer than the three that were asked for"
    assert sum(record.outcome is Outcome.OK for record in records) == 5


def test_a_lost_run_is_made_up_for_before_a_study_is_called_precise() -> None:
    """The rule counted blocks and analysis runs, so that a strict study stopped early and was then found wanting."""
    told = order_of(cells(2, retries=0, min=4, max=9), {"A": ".x."})
    assert told == "A B | Ax B | A B | A B | A B => every interval is within 1% after 5 blocks"


def test_a_run_at_which_the_study_was_halted_leaves_its_slot_open() -> None:
    design = Design(cells(2))
    slot = design.decide()
    assert isinstance(slot, Slot)
    halted = make_record(1, slot, Outcome.FAILED).model_copy(update={"halted": True})
    design.record(halted)
    assert design.decide() == slot


def test_without_a_compared_factor_a_ratio_falls_back_to_the_means() -> None:
    _, stop = carry_out(cells(2, precision_of="ratio", compare=None), values=steady)
    assert stop is not None
    assert stop.converged


def test_a_ratio_of_what_is_not_above_zero_is_never_precise() -> None:
    study = cells(2, precision_of="ratio", compare="mean", min=2, max=3)
    _, stop = carry_out(study, values=lambda slot: float(slot.cell))
    assert stop is not None
    assert not stop.converged


def test_nothing_is_known_of_the_precision_before_the_second_block() -> None:
    study = cells(2)
    records, _ = carry_out(study, most=2)
    design = Design(study)
    assert design.state().reached is None
    for record in records:
        design.record(record)
    assert design.state().reached is None


# ---- how long it takes


def test_the_rest_is_at_most_the_blocks_that_are_left() -> None:
    study = cells(2, min=2, max=5)
    design = Design(study)
    assert design.seconds_left() is None
    records, _ = carry_out(study, values=wide, seconds=3, most=3)
    for record in records:
        design.record(record)
    assert design.seconds_left() == pytest.approx(3 * (5 * 2 - 3))


def test_the_rest_is_never_more_than_the_budget_has_left_nor_below_nothing() -> None:
    study = cells(2, min=2, max=100, budget="20 s")
    records, _ = carry_out(study, values=wide, seconds=3, most=3)
    design = Design(study)
    for record in records:
        design.record(record)
    assert design.seconds_left() == pytest.approx(20 - 9)


@pytest.mark.parametrize(
    ("budget", "seconds", "expected"),
    [
        (None, {0: 1.0, 1: 2.0}, (12, 15)),  # a mean is not looked at before block 4, whatever `min` says
        ("13 s", {0: 1.0, 1: 2.0}, (12, 13)),
        ("4 s", {0: 1.0, 1: 2.0}, (4, 4)),
        (None, {0: 1.0, 1: None}, (None, None)),
        ("10 s", {0: 1.0, 1: None}, (None, 10)),
    ],
)
def test_a_forecast_is_from_the_fewest_blocks_to_the_most_or_to_the_budget(
    budget: str | None, seconds: dict[int, float | None], expected: tuple[float | None, float | None]
) -> None:
    told = forecast(cells(2, min=2, max=5, budget=budget), seconds)
    assert (told.least, told.most) == expected


def test_a_cell_with_a_value_of_0_has_no_precise_ratio() -> None:
    # The ratio of its other blocks would be one of a system that never stood still.
    study = cells(2, compare="mean", precision_of="ratio", min=5, max=30)
    values = np.array([[100.0, 200.0 + block] for block in range(6)])
    times, tried = np.arange(12.0).reshape(6, 2), np.array([True, True])
    assert Rule.of(study).reached(values, times, tried) < 0.05
    values[2, 1] = 0.0
    assert Rule.of(study).reached(values, times, tried) == math.inf
