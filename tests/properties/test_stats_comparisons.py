"""What must hold of tests and comparisons for any values, and how often they are right."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dyno import stats

POSITIVE = st.floats(min_value=1e-3, max_value=1e6)
SAMPLES = st.lists(POSITIVE, min_size=2, max_size=12)
PAIRS = st.lists(st.tuples(POSITIVE, POSITIVE), min_size=2, max_size=12)
EXTREMES = st.lists(st.floats(min_value=0.0, max_value=1e308, exclude_min=True), min_size=2, max_size=6)
CONFIDENCES = st.floats(min_value=0.5, max_value=0.99)
FACTORS = st.floats(min_value=1e-3, max_value=1e3)
P_VALUES = st.lists(st.none() | st.floats(min_value=0.0, max_value=1.0), max_size=12)
MARGINS = st.floats(min_value=0.001, max_value=1.0)


def paired_fieller(a, b, confidence):
    return stats.fieller_ratio(a, b, confidence, paired=True)


def paired_equivalence(a, b, margin, alpha):
    return stats.equivalence_of(stats.paired_shift(a, b), margin, alpha)


def unpaired_equivalence(a, b, margin, alpha):
    return stats.equivalence_of(stats.unpaired_shift(a, b), margin, alpha)


PAIRED = (stats.paired_ratio, stats.paired_ranks, paired_fieller)
MEASURES = {
    "paired t": stats.paired_ratio,
    "Welch": stats.unpaired_ratio,
    "Fieller": stats.fieller_ratio,
    "paired Fieller": paired_fieller,
    "signed ranks": stats.paired_ranks,
    "rank sums": stats.unpaired_ranks,
    "paired equivalence": lambda a, b, confidence: paired_equivalence(a, b, 0.05, (1 - confidence) / 2),
    "equivalence": lambda a, b, confidence: unpaired_equivalence(a, b, 0.05, (1 - confidence) / 2),
}
every_measure = pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES.keys())
# Drawing thousands of samples anew for each example takes its time.
unhurried = settings(max_examples=30, deadline=None)


def _sides(pairs: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def _figures(found: object) -> list[float]:
    fields = dataclasses.asdict(found).values()
    return [value for value in fields if isinstance(value, float)]


@every_measure
@unhurried
@given(a=EXTREMES, b=EXTREMES, confidence=CONFIDENCES)
def test_every_figure_is_a_number_and_the_ratio_lies_in_its_interval(measure, a, b, confidence) -> None:
    size = min(len(a), len(b))
    found = measure(a[:size], b[:size], confidence)
    if found is None:
        return
    assert all(math.isfinite(figure) for figure in _figures(found))
    assert 0 <= found.p <= 1
    if found.lo is not None:
        assert found.lo <= found.ratio <= found.hi


@every_measure
@unhurried
@given(pairs=PAIRS, confidence=CONFIDENCES)
@example(pairs=[(143405.0, 0.25), (1.5, 66576.6015625)], confidence=0.5)
@example(pairs=[(1.0, 0.5), (262916.0, 262916.0)], confidence=0.5)
def test_swapping_the_sides_gives_the_reciprocal_and_the_same_p(measure, pairs, confidence) -> None:
    a, b = _sides(pairs)
    forth, back = measure(a, b, confidence), measure(b, a, confidence)
    assume(forth is not None and back is not None)
    assert back.p == pytest.approx(forth.p, rel=1e-6, abs=1e-9)
    assert back.ratio == pytest.approx(1 / forth.ratio)
    # A limit near 0 is the difference of two that are as large as the ratio, and is rounded as they are.
    if forth.lo and back.hi:
        assert 1 / back.hi == pytest.approx(forth.lo, rel=1e-5, abs=1e-9 * forth.ratio)
    if forth.hi and back.lo:
        assert back.lo == pytest.approx(1 / forth.hi, rel=1e-5, abs=1e-9 * back.ratio)


@every_measure
@unhurried
@given(pairs=PAIRS, factor=FACTORS)
def test_another_unit_changes_nothing(measure, pairs, factor) -> None:
    a, b = _sides(pairs)
    plain, scaled = measure(a, b, 0.9), measure([factor * x for x in a], [factor * x for x in b], 0.9)
    assume(plain is not None and scaled is not None)
    assert scaled.p == pytest.approx(plain.p, rel=1e-5, abs=1e-9)
    assert scaled.ratio == pytest.approx(plain.ratio)
    if plain.lo is not None and plain.lo > 1e-290 and plain.hi < 1e290:
        assert (scaled.lo, scaled.hi) == pytest.approx((plain.lo, plain.hi), rel=1e-6)


@every_measure
@unhurried
@given(data=st.data(), pairs=PAIRS)
def test_the_order_of_runs_does_not_matter(measure, data, pairs) -> None:
    found = measure(*_sides(pairs), 0.9)
    shuffled = measure(*_sides(data.draw(st.permutations(pairs))), 0.9)
    assume(found is not None and shuffled is not None)
    assume(found.hi is None or found.hi < 1e290)
    assert shuffled.ratio == pytest.approx(found.ratio)
    assert shuffled.p == pytest.approx(found.p, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("measure", [stats.paired_ratio, stats.unpaired_ratio, stats.fieller_ratio, paired_fieller])
@given(pairs=PAIRS, confidence=CONFIDENCES)
def test_p_is_small_just_where_the_interval_leaves_1_out(measure, pairs, confidence) -> None:
    found = measure(*_sides(pairs), confidence)
    assume(found is not None and abs(found.p - (1 - confidence)) > 1e-6)
    assert (found.p < 1 - confidence) == (not found.lo <= 1 <= found.hi)


@pytest.mark.parametrize("measure", [paired_equivalence, unpaired_equivalence])
@given(pairs=PAIRS, margin=MARGINS, alpha=st.floats(min_value=0.01, max_value=0.4))
def test_equivalence_is_shown_just_where_the_interval_lies_within_the_margin(measure, pairs, margin, alpha) -> None:
    found = measure(*_sides(pairs), margin, alpha)
    assume(abs(found.p - alpha) > 1e-6)
    assert found.shown == (1 / (1 + margin) < found.lo and found.hi < 1 + margin)


@given(PAIRS, MARGINS, FACTORS)
def test_a_wider_margin_is_easier_to_keep_within(pairs, margin, factor) -> None:
    a, b = _sides(pairs)
    p = paired_equivalence(a, b, margin, 0.05).p
    assert paired_equivalence(a, b, margin * (1 + factor), 0.05).p <= p


@given(SAMPLES)
def test_a_system_is_equivalent_to_itself_and_never_different(values) -> None:
    assert paired_equivalence(values, values, 0.01, 0.05).p == 0
    assert stats.paired_ratio(values, values, 0.95).p == 1
    assert stats.paired_ranks(values, values, 0.95).p == 1
    assert stats.unpaired_ranks(values, values, 0.95).ratio == pytest.approx(1)


@given(PAIRS)
def test_ranks_see_order_only(pairs) -> None:
    a, b = _sides(pairs)
    cubed = stats.unpaired_ranks([x**3 for x in a], [x**3 for x in b], 0.9)
    assert cubed.p == pytest.approx(stats.unpaired_ranks(a, b, 0.9).p)


@given(P_VALUES)
def test_adjusted_p_values_lie_between_the_raw_ones_and_bonferroni_s(p_values) -> None:
    adjusted = stats.holm(p_values)
    count = sum(p is not None for p in p_values)
    for raw, found in zip(p_values, adjusted, strict=True):
        assert (raw is None) == (found is None)
        if raw is not None:
            assert raw <= found <= min(1.0, count * raw)


@given(st.data(), P_VALUES)
def test_adjusting_keeps_the_order_and_does_not_hang_on_it(data, p_values) -> None:
    adjusted = stats.holm(p_values)
    both = sorted((raw, found) for raw, found in zip(p_values, adjusted, strict=True) if raw is not None)
    assert [found for _, found in both] == sorted(found for _, found in both)
    order = data.draw(st.permutations(range(len(p_values))))
    assert stats.holm([p_values[at] for at in order]) == tuple(adjusted[at] for at in order)


@given(P_VALUES, st.floats(min_value=0.0, max_value=1.0))
def test_one_more_comparison_never_makes_the_others_surer(p_values, more) -> None:
    alone, beside = stats.holm(p_values), stats.holm([*p_values, more])[:-1]
    assert all(one is None or one <= other for one, other in zip(alone, beside, strict=True))


FEW = st.integers(min_value=0, max_value=4).map(float)
ITEMS = st.lists(st.tuples(FEW | POSITIVE, FEW | POSITIVE), min_size=2, max_size=12)


@given(ITEMS)
def test_agreement_is_mutual_turns_with_a_side_and_sees_order_only(items) -> None:
    a, b = _sides(items)
    found = stats.kendall(a, b)
    assume(found is not None)
    assert -1 <= found.tau <= 1
    assert 0 <= found.p <= 1
    assert (stats.kendall(b, a).tau, stats.kendall(b, a).p) == pytest.approx((found.tau, found.p))
    turned = stats.kendall([-value for value in a], b)
    assert (turned.tau, turned.p) == pytest.approx((-found.tau, found.p))
    assert stats.kendall([8 * value for value in a], b) == found


@given(st.lists(POSITIVE, min_size=2, max_size=12, unique=True))
def test_a_ranking_agrees_with_itself(values) -> None:
    assert stats.kendall(values, values).tau == 1
    assert stats.kendall(values, values).p == pytest.approx(2 / math.factorial(len(values)), rel=1e-6)


SPREADS = st.floats(min_value=1e-4, max_value=2.0)
EFFECTS = st.floats(min_value=0.001, max_value=1.0)
ALPHAS = st.floats(min_value=1e-4, max_value=0.2)


@given(st.integers(min_value=2, max_value=200), SPREADS, EFFECTS, ALPHAS)
def test_power_grows_with_runs_and_effect_and_shrinks_with_noise(n, sd, effect, alpha) -> None:
    power = stats.paired_power(n, sd, effect, alpha)
    slack = 1e-6
    assert alpha * (1 - 1e-6) <= power <= 1
    assert stats.paired_power(n + 1, sd, effect, alpha) >= power - slack
    assert stats.paired_power(n, sd, 1.1 * effect, alpha) >= power - slack
    assert stats.paired_power(n, 1.1 * sd, effect, alpha) <= power + slack
    # Half as fast is as easy to see as twice as fast.
    assert stats.paired_power(n, sd, -effect / (1 + effect), alpha) == pytest.approx(power)


@settings(deadline=None)
@given(SPREADS, EFFECTS, ALPHAS, st.floats(min_value=0.3, max_value=0.99))
def test_the_runs_for_an_effect_are_enough_and_one_fewer_is_not(sd, effect, alpha, power) -> None:
    n = stats.runs_for_effect(sd, effect, alpha, power)
    assume(n is not None)
    assert stats.paired_power(n, sd, effect, alpha) >= power
    assert n == 2 or stats.paired_power(n - 1, sd, effect, alpha) < power


@given(SPREADS, st.floats(min_value=0.001, max_value=1.0), CONFIDENCES)
def test_a_narrower_interval_takes_more_runs(spread, precision, confidence) -> None:
    wide = stats.runs_for_mean_precision(spread, precision, confidence)
    narrow = stats.runs_for_mean_precision(spread, precision / 2, confidence)
    assume(wide is not None and narrow is not None)
    assert wide <= narrow
    # A ratio within 5 % to either side of 1 is a little narrower than 5 % of a mean.
    assert stats.runs_for_ratio_precision(spread, precision, confidence) >= wide


STUDIES, CONFIDENCE = 1000, 0.95
SLACK = 4 * math.sqrt(CONFIDENCE * (1 - CONFIDENCE) / STUDIES)  # four standard errors


def _studies(n: int, ratio: float) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(n)
    return [(random.lognormal(0, 0.1, n), ratio * random.lognormal(0, 0.1, n)) for _ in range(STUDIES)]


@pytest.mark.parametrize("measure", [stats.paired_ranks, stats.unpaired_ranks, stats.fieller_ratio, paired_fieller])
def test_the_interval_holds_the_truth_at_least_as_often_as_it_says(measure) -> None:
    found = [measure(a, b, CONFIDENCE) for a, b in _studies(8, 1.2)]
    assert sum(each.lo <= 1.2 <= each.hi for each in found) / STUDIES >= CONFIDENCE - SLACK


def test_a_family_without_any_difference_raises_a_false_alarm_no_more_often_than_claimed() -> None:
    random = np.random.default_rng(5)
    alarms = 0
    for _ in range(STUDIES):
        cells = random.lognormal(0, 0.1, (4, 6))
        p_values = [stats.paired_ratio(cells[i], cells[j], 0.95).p for i in range(4) for j in range(i)]
        alarms += min(stats.holm(p_values)) < 0.05
    assert alarms / STUDIES <= 0.05 + SLACK


def test_equivalence_is_claimed_wrongly_no_more_often_than_alpha() -> None:
    claimed = [paired_equivalence(a, b, 0.2, 0.05).shown for a, b in _studies(8, 1.2)]
    assert sum(claimed) / STUDIES == pytest.approx(0.05, abs=SLACK)
