"""The analysis of variance gives the tables that others print."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dyno import stats


def _row(found: stats.Variation, source: str) -> stats.VariationRow:
    return next(row for row in found.rows if row.source == source)


def _table(found: stats.Variation) -> dict[str, tuple[int, float]]:
    return {row.source: (row.degrees, row.sum_of_squares) for row in found.rows}


def _times(labels: str, each: int, whole: int = 1) -> list[str]:
    return [label for _ in range(whole) for label in labels for _ in range(each)]


# R. Jain, The Art of Computer Systems Performance Analysis, 1991. Code size of a workload on three processors, chapter
# 20 (table 20.1; allocation 10.4 % and 89.6 %, F = 0.7).
CODE_SIZE = (144, 120, 176, 288, 144, 101, 144, 211, 288, 72, 130, 180, 141, 374, 302)

# Execution time of five workloads with two caches, one and none, chapter 21 (table 21.2; sums of squares 12857.20,
# 308.40 and 236.80, F = 217.2 and 2.6).
CACHES = (54, 55, 106, 60, 60, 123, 43, 43, 120, 49, 52, 111, 49, 50, 108)

# Code size of five workloads on four processors, three times each, chapter 22 (table 22.1; in common logs the shares
# are 65.96 %, 29.90 %, 3.48 % and 0.66 %, F = 1340.01, 455.65 and 17.70).
CODE_SIZES = (
    7006, 12042, 29061, 9903, 6593, 11794, 27045, 9206, 7302, 13074, 30057, 10035,
    3207, 5123, 8960, 4153, 2883, 5632, 8064, 4257, 3523, 4608, 9677, 4065,
    4707, 9407, 19740, 7089, 4935, 8933, 19345, 6982, 4465, 9964, 21122, 6678,
    5107, 5613, 22340, 5356, 5508, 5947, 23102, 5734, 4743, 5161, 21446, 4965,
    6807, 12243, 28560, 9803, 6392, 11995, 26846, 9306, 7208, 12974, 30559, 10233,
)  # fmt: skip

# The data set `npk` of R: yields of peas in six blocks of four, one interaction confounded with blocks. Below what
# example(aov) prints.
NPK = (
    49.5, 62.8, 46.8, 57.0, 59.8, 58.5, 55.5, 56.0, 62.8, 55.8, 69.5, 55.0,
    62.0, 48.8, 45.5, 44.2, 52.0, 51.5, 49.8, 48.8, 57.2, 59.0, 53.2, 56.0,
)  # fmt: skip
N, P, K = "010111000110110010101100", "110001011100010110010110", "100101100101011000111010"
NPK_TABLE = {
    "blocks": (5, 343.2950),
    "N": (1, 189.2817),
    "P": (1, 8.4017),
    "K": (1, 95.2017),
    "N x P": (1, 21.2817),
    "N x K": (1, 33.1350),
    "P x K": (1, 0.4817),
    "N x P x K": (0, 0.0),
    "residual": (12, 185.2867),
}
NPK_F = {"blocks": 4.447, "N": 12.259, "P": 0.544, "K": 6.166, "N x P": 1.378, "N x K": 2.146, "P x K": 0.031}
NPK_P = {"blocks": 0.01594, "N": 0.00437, "P": 0.47490, "K": 0.02880, "N x P": 0.26317, "N x K": 0.16865}

# The data set `Moore` of R's package carData: conformity by the status of a partner (low, high) and authoritarianism
# (low, medium, high), cells of 6 to 11. Below what the documentation of statsmodels prints for anova_lm, typ=2.
MOORE = (
    8, 4, 8, 7, 10, 6, 12, 4, 13, 12, 4, 13, 7, 9, 9, 24, 6, 7, 23, 13, 8, 12,
    19, 12, 21, 9, 23, 7, 17, 14, 11, 16, 15, 20, 8, 12, 14, 14, 17, 7, 17, 13, 16, 10, 15,
)  # fmt: skip
MOORE_STATUS = "l" * 22 + "h" * 23
MOORE_CATEGORY = "lhhlllmmllmhlmhhlhhhll" + "hmlhlhmmhmlmmlhmmmmhlhm"
MOORE_TYPE_2 = {"category": (11.614700, 2), "status": (212.213778, 1), "category x status": (175.488928, 2)}
MOORE_F_P = {"category": (0.276958, 0.759564), "status": (10.120692, 0.002874)}


def test_one_factor_is_jain_s() -> None:
    found = stats.variation(CODE_SIZE, {"processor": _times("RVZ", 5)}, log=False)
    assert _table(found) == {
        "processor": (2, pytest.approx(10992.13, abs=0.005)),
        "residual": (12, pytest.approx(94365.20, abs=0.005)),
    }
    row = _row(found, "processor")
    assert (row.share, row.f) == (pytest.approx(0.104, abs=5e-4), pytest.approx(0.7, abs=0.05))


def test_of_two_levels_in_blocks_p_is_that_of_the_ratio_however_widened() -> None:
    rng = np.random.default_rng(4)
    a, b = np.exp(0.1 * rng.standard_normal((2, 7)))
    for widening in (1.0, 1.2, 1.4):
        found = stats.variation([*a, *b], {"x": "a" * 7 + "b" * 7}, blocks=[*range(7), *range(7)], widening=widening)
        row, ratio = _row(found, "x"), stats.paired_ratio(a, b, 0.95, widening)
        assert row.p == pytest.approx(ratio.p)
        assert row.f == pytest.approx(_row(stats.variation([*a, *b], {"x": "a" * 7 + "b" * 7}, [*range(7)] * 2), "x").f)


def test_two_factors_with_one_run_a_cell_are_jain_s_with_the_interaction_as_noise() -> None:
    levels = {"cache": _times("210", 1, 5), "workload": _times("abcde", 3)}
    found = stats.variation(CACHES, levels, log=False, max_order=1)
    noise = "residual (interactions of more than 1 factors)"
    assert _table(found) == {
        "cache": (2, pytest.approx(12857.20)),
        "workload": (4, pytest.approx(308.40)),
        noise: (8, pytest.approx(236.80)),
    }
    assert _row(found, "cache").f == pytest.approx(217.2, abs=0.05)
    assert _row(found, "workload").f == pytest.approx(2.6, abs=0.05)
    unjudged = stats.variation(CACHES, levels, log=False)
    assert _row(unjudged, "residual") == stats.VariationRow("residual", 0.0, 0, 0.0)
    assert {row.f for row in unjudged.rows} == {None}


def test_two_factors_with_replicates_are_jain_s() -> None:
    levels = {"workload": _times("IJKLM", 12), "processor": _times("WXYZ", 1, 15)}
    shares = {"processor": 0.6596, "workload": 0.2990, "workload x processor": 0.0348, "residual": 0.0066}
    common = stats.variation(np.log10(CODE_SIZES), levels, log=False)
    natural = stats.variation(CODE_SIZES, levels)
    for found in (common, natural):
        assert {row.source: row.share for row in found.rows} == pytest.approx(shares, abs=5e-5)
        assert [row.f for row in found.rows[:3]] == pytest.approx([455.65, 1340.01, 17.70], abs=0.006)
    assert natural.sum_of_squares == pytest.approx(math.log(10) ** 2 * common.sum_of_squares)
    assert (natural.log, natural.adds_up, natural.degrees) == (True, True, 59)


def test_blocks_and_three_factors_are_those_that_r_prints() -> None:
    found = stats.variation(NPK, {"N": N, "P": P, "K": K}, blocks=_times("123456", 4), log=False)
    assert {source: degrees for source, (degrees, _) in _table(found).items()} == {
        source: degrees for source, (degrees, _) in NPK_TABLE.items()
    }
    assert {source: squares for source, (_, squares) in _table(found).items()} == pytest.approx(
        {source: squares for source, (_, squares) in NPK_TABLE.items()}, abs=5.1e-5
    )
    assert {source: _row(found, source).f for source in NPK_F} == pytest.approx(NPK_F, abs=5.1e-4)
    assert {source: _row(found, source).p for source in NPK_P} == pytest.approx(NPK_P, abs=5.1e-6)
    assert found.adds_up
    # What blocks took with them cannot be told; it is not called absent.
    assert (_row(found, "N x P x K").f, _row(found, "N x P x K").p) == (None, None)


def test_unbalanced_cells_are_those_that_statsmodels_prints_for_type_2() -> None:
    found = stats.variation(MOORE, {"category": MOORE_CATEGORY, "status": MOORE_STATUS}, log=False)
    for source, (squares, degrees) in MOORE_TYPE_2.items():
        assert _row(found, source).sum_of_squares == pytest.approx(squares, abs=5.1e-7)
        assert _row(found, source).degrees == degrees
    for source, expected in MOORE_F_P.items():
        assert (_row(found, source).f, _row(found, source).p) == pytest.approx(expected, abs=5.1e-7)
    assert _row(found, "residual").sum_of_squares == pytest.approx(817.763961, abs=5.1e-7)
    assert _row(found, "residual").degrees == 39
    assert not found.adds_up


def test_the_order_of_factors_does_not_matter_where_runs_are_missing() -> None:
    one = stats.variation(MOORE, {"category": MOORE_CATEGORY, "status": MOORE_STATUS}, log=False)
    other = stats.variation(MOORE, {"status": MOORE_STATUS, "category": MOORE_CATEGORY}, log=False)
    for source in ("category", "status", "residual"):
        assert _row(one, source).sum_of_squares == pytest.approx(_row(other, source).sum_of_squares)


def test_interactions_above_the_order_are_one_row_beside_noise() -> None:
    levels = {"a": _times("12", 8), "b": _times("12", 4, 2), "c": _times("12", 2, 4)}
    values = np.random.default_rng(1).lognormal(size=16)
    full, pooled = stats.variation(values, levels), stats.variation(values, levels, max_order=1)
    above = _row(pooled, "interactions of more than 1 factors")
    rest = [row for row in full.rows if " x " in row.source]
    assert above.degrees == sum(row.degrees for row in rest) == 4
    assert above.sum_of_squares == pytest.approx(sum(row.sum_of_squares for row in rest))
    assert _row(pooled, "residual") == _row(full, "residual")


def test_fitted_values_are_the_means_of_cells_and_residuals_what_is_left() -> None:
    found = stats.variation(MOORE, {"category": MOORE_CATEGORY, "status": MOORE_STATUS}, log=False)
    cells = np.array([f"{category}{status}" for category, status in zip(MOORE_CATEGORY, MOORE_STATUS, strict=True)])
    values = np.array(MOORE, dtype=float)
    assert found.fitted == pytest.approx(np.array([values[cells == cell].mean() for cell in cells]))
    assert found.fitted + found.residuals == pytest.approx(values)


def test_blocks_take_the_drift_of_the_machine_out_of_noise() -> None:
    random = np.random.default_rng(1)
    blocks, cells = np.repeat(np.arange(8), 3), np.tile(np.arange(3), 8)
    values = np.exp(random.normal(0, 0.3, 8)[blocks] + 0.05 * cells + random.normal(0, 0.02, 24))
    with_blocks = stats.variation(values, {"cell": cells.tolist()}, blocks=blocks.tolist())
    without = stats.variation(values, {"cell": cells.tolist()})
    assert _row(with_blocks, "cell").p < 1e-4
    assert _row(without, "cell").p > 0.5
    assert _row(with_blocks, "cell").sum_of_squares == pytest.approx(_row(without, "cell").sum_of_squares)


def test_a_cell_without_any_run_costs_its_interaction_the_degrees_of_freedom() -> None:
    levels = {"a": "112211", "b": "121122"}  # no run of a = 2 with b = 2
    found = stats.variation([1.0, 2.0, 3.0, 3.1, 2.1, 2.2], levels)
    assert _row(found, "a x b").degrees == 0
    assert _row(found, "a").degrees == _row(found, "b").degrees == 1
    assert _row(found, "residual").degrees == 3


def test_what_does_not_vary_has_no_shares() -> None:
    found = stats.variation([0.1] * 6, {"a": "112233"})
    assert found.sum_of_squares == 0.0
    assert {(row.share, row.f, row.p) for row in found.rows} == {(None, None, None)}
    assert not found.residuals.any()


def test_without_noise_nothing_is_judged() -> None:
    found = stats.variation([1.1, 1.1, 2.3, 2.3], {"a": "1122"})
    assert _row(found, "a").share == pytest.approx(1.0)
    assert (_row(found, "a").f, _row(found, "residual").sum_of_squares) == (None, 0.0)


def test_factors_that_multiply_have_no_interaction_on_logs_whatever_is_missing() -> None:
    levels = {"a": "1112223", "b": "1232311"}
    found = stats.variation([3.0, 0.3, 21.0, 0.9, 63.0, 9.0, 27.0], levels)
    assert _row(found, "a x b").sum_of_squares == 0.0
    assert not found.adds_up


def test_one_value_has_no_variation() -> None:
    assert stats.variation([1.0], {"a": "1"}) is None


@pytest.mark.parametrize(
    ("values", "levels", "blocks", "more", "message"),
    [
        ([1.0, 2.0], {"a": "123"}, None, {}, "a has 3 labels for 2 values"),
        ([1.0, 2.0], {"a": "12"}, "1", {}, "blocks has 1 labels for 2 values"),
        ([1.0, 2.0], {}, None, {}, "no factor"),
        ([1.0, 2.0], {"a": "12"}, None, {"max_order": 0}, "max_order"),
        ([1.0, 0.0], {"a": "12"}, None, {}, "above 0"),
        ([1.0, math.nan], {"a": "12"}, None, {"log": False}, "not finite"),
    ],
)
def test_what_makes_no_sense_is_refused(values, levels, blocks, more, message) -> None:
    with pytest.raises(ValueError, match=message):
        stats.variation(values, levels, blocks, **more)


def test_thousands_of_blocks_cost_no_more_than_one() -> None:
    # Each block as columns of its own would be a table of 12,000 by 4,000.
    random = np.random.default_rng(1)
    blocks, factor = np.repeat(np.arange(4000), 3), list("abc") * 4000
    logs = np.repeat(random.standard_normal(4000), 3) + 0.1 * random.standard_normal(12_000)
    found = stats.variation(logs, {"f": factor}, list(blocks), log=False)
    assert _row(found, "blocks").degrees == 3999
    assert _row(found, "residual").degrees == 12_000 - 4000 - 2
    assert _row(found, "residual").mean_square == pytest.approx(0.01, rel=0.05)
    assert found.adds_up
