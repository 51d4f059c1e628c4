"""Effects of a screening design: what was planted is found, nothing else is claimed, and aliases are named."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from tests.making import make_record, make_study

from dyno.analysis import analyse
from dyno.model.findings import FactorEffect, Findings
from dyno.model.fractions import Fraction
from dyno.model.run import Outcome, RunRecord, Slot
from dyno.model.study import DesignSpec, Study

FACTORS = {"journal": ("delete", "wal"), "sync": ("full", "off"), "threads": (1, 8)}


def study_of(generators: Sequence[str] = ()) -> Study:
    """Three factors, in all their combinations or in those of the fraction."""
    study = make_study(FACTORS, min=4, max=30)
    rows = Fraction(list(FACTORS), generators).signs()
    names = [
        {name: str(levels[sign > 0]) for (name, levels), sign in zip(FACTORS.items(), row, strict=True)} for row in rows
    ]
    kept = [cell for cell in study.cells if cell.levels in names]
    return study.model_copy(
        update={
            "design": DesignSpec(kind="screening", generators=tuple(generators)),
            "compare": "journal",
            "cells": tuple(cell.model_copy(update={"index": index}) for index, cell in enumerate(kept)),
        }
    )


def findings(study: Study, blocks: int = 6, noise: float = 0.02, seed: int = 1, **effects: float) -> Findings:
    """Runs whose throughput is so many times as large where a factor is high; `a_b` for an interaction."""
    rng = np.random.default_rng(seed)
    runs: list[RunRecord] = []
    for block in range(blocks):
        for cell in study.cells:
            signs = {name: 1 if cell.levels[name] == str(levels[1]) else -1 for name, levels in FACTORS.items()}
            log = sum(
                math.log(ratio) / 2 * math.prod(signs[factor] for factor in name.split("_"))
                for name, ratio in effects.items()
            )
            value = 1000 * math.exp(log + 0.3 * (block % 2) + noise * float(rng.standard_normal()))
            runs.append(make_record(len(runs) + 1, Slot(cell=cell.index, block=block), value=value))
    return analyse(study, runs, ended="enough")


def by_name(found: Findings) -> dict[str, FactorEffect]:
    return {" x ".join(effect.factors): effect for effect in found.effects}


def test_what_was_planted_is_found_and_nothing_else_is_claimed() -> None:
    effects = by_name(findings(study_of(), journal=1.5, sync=2.0, journal_sync=1.2))
    assert list(effects) == [
        "journal", "sync", "threads", "journal x sync", "journal x threads", "sync x threads",
    ]  # fmt: skip
    for name, ratio in {"journal": 1.5, "sync": 2.0, "journal x sync": 1.2}.items():
        effect = effects[name]
        assert effect.verdict == "higher"
        assert effect.ratio == pytest.approx(ratio, rel=0.02)
        assert effect.ci is not None
        assert effect.ci[0] < ratio < effect.ci[1]
    assert {effects[name].verdict for name in ("threads", "journal x threads", "sync x threads")} == {
        "no difference shown"
    }
    assert sum(effect.share or 0 for effect in effects.values()) < 1  # blocks differ by 35 %


def test_an_effect_is_told_in_a_sentence_with_its_levels() -> None:
    effects = by_name(findings(study_of(), journal=1.5, journal_sync=1.2))
    assert effects["journal"].sentence.startswith("journal wal has 1.5")
    assert "the throughput of delete (n = 48 runs)." in effects["journal"].sentence
    assert effects["threads"].sentence.startswith("No effect of threads on throughput is shown: ")
    assert effects["journal x sync"].sentence.startswith(
        "journal and sync interact: where both are high or both low, throughput is 1."
    )


def test_the_answer_tells_the_largest_effects_first() -> None:
    answer = findings(study_of(), journal=1.5, sync=0.4).answer
    assert answer.startswith("Largest effects on throughput (high level / low level): sync, ")
    assert answer.index("sync") < answer.index("journal")
    assert answer.endswith("No effect is shown of 4 of 6.")
    assert findings(study_of()).answer == "No effect on throughput is shown of any factor or interaction of two."


def test_of_a_fraction_each_effect_names_what_it_cannot_be_told_from() -> None:
    found = findings(study_of(["C=AB"]), blocks=10, journal=1.5)
    effects = by_name(found)
    assert list(effects) == ["journal", "sync", "threads"]
    assert effects["journal"].aliases == ("sync x threads",)
    assert "or sync x threads, which this design cannot tell from it" in effects["journal"].sentence
    assert "journal, wal against delete: 1.5" in found.answer
    assert "(may instead be sync x threads)" in found.answer
    assert any("cannot tell apart" in note and "journal = sync x threads" in note for note in found.notes)
    assert found.comparisons == ()


def test_an_alias_of_opposite_sign_says_so() -> None:
    assert by_name(findings(study_of(["C=-AB"])))["journal"].aliases == ("-sync x threads",)


def test_where_nothing_has_an_effect_one_is_claimed_no_more_often_than_the_confidence_says() -> None:
    study = study_of()
    false = sum(
        any(effect.verdict in ("higher", "lower") for effect in findings(study, seed=seed, noise=0.1).effects)
        for seed in range(150)
    )
    assert false <= 15  # 7.5 expected, and 2.7 their standard deviation; uncorrected, 40 would be


OTHERS = [f"{operation}.latency_{q}" for operation in ("read", "update", "scan") for q in ("p50", "p95", "p99")]


def of_many_responses(study: Study, seed: int, blocks: int = 4) -> Findings:
    """Nothing has an effect on any of ten responses, which are independent of each other."""
    rng = np.random.default_rng(seed)
    runs = [
        make_record(
            block * len(study.cells) + cell.index + 1,
            Slot(cell=cell.index, block=block),
        ).model_copy(
            update={"responses": {name: float(np.exp(0.1 * rng.standard_normal())) for name in ["throughput", *OTHERS]}}
        )
        for block in range(blocks)
        for cell in study.cells
    ]
    return analyse(study, runs, ended="enough")


def test_of_ten_responses_without_an_effect_one_is_claimed_no_more_often_than_the_confidence_says() -> None:
    study = study_of()
    false = sum(
        any(effect.verdict in ("higher", "lower") for effect in of_many_responses(study, seed).effects)
        for seed in range(100)
    )
    assert false <= 11  # 5 expected, and 2.2 their standard deviation; each response by itself, 35 would be


def test_other_responses_cost_the_deciding_one_half_of_the_error_however_many_they_are() -> None:
    study = study_of()

    def widths(found: Findings) -> dict[str, float]:
        return {
            effect.response: math.log(effect.ci[1] / effect.ci[0])
            for effect in found.effects
            if effect.ci and effect.factors == ("journal",)
        }

    many = of_many_responses(study, seed=3)
    runs = [
        make_record(8 * block + cell + 1, Slot(cell=cell, block=block), value=float(value))
        for block, row in enumerate(np.exp(0.1 * np.random.default_rng(3).standard_normal((4, 8, 10)))[:, :, 0])
        for cell, value in enumerate(row)
    ]
    alone = widths(analyse(study, runs, ended="enough"))["throughput"]
    # 6 effects at 5 %, of 32 runs less 4 blocks and 6 effects: 22 degrees of freedom. Student's t, by scipy's `t.ppf`:
    # 2.89854 at 1 - 0.05 / 12, 3.19646 at 1 - 0.025 / 12.
    assert widths(many)["throughput"] / alone == pytest.approx(3.19646 / 2.89854, rel=1e-3)
    assert all(widths(many)[name] > 0 for name in OTHERS)


def test_a_run_that_failed_is_in_no_effect() -> None:
    study = study_of()
    runs = [make_record(1 + place, Slot(cell=place % 8, block=place // 8), value=1000.0 + place) for place in range(24)]
    runs[3] = make_record(4, runs[3].slot, Outcome.FAILED)
    assert {effect.n for effect in analyse(study, runs, ended="enough").effects} == {23}


def test_no_effects_are_told_of_too_few_runs_or_of_another_design() -> None:
    study = study_of()
    half = [make_record(1 + cell, Slot(cell=cell, block=0), value=1000.0) for cell in range(4)]
    found = analyse(study, half, ended=None)
    assert found.effects == ()
    assert any("need an ok run in every cell" in note for note in found.notes)
    factorial = study.model_copy(update={"design": DesignSpec()})
    assert findings(factorial, journal=1.5).effects == ()


def test_one_block_gives_effects_without_intervals_and_no_claim() -> None:
    found = findings(study_of(), blocks=1, journal=1.5)
    # 8 runs, 6 effects and the mean: one degree of freedom is left to tell noise.
    assert {effect.verdict for effect in found.effects} <= {"no difference shown", "higher", "lower"}
    saturated = findings(study_of(["C=AB"]), blocks=1, journal=1.5)
    assert {(effect.ci, effect.verdict) for effect in saturated.effects} == {(None, "not enough runs")}


def test_the_sizes_of_effects_have_the_order_of_their_quantiles() -> None:
    effects = findings(study_of(), journal=1.5, sync=2.0).effects
    ordered = sorted(effects, key=lambda effect: effect.quantile)
    sizes = [abs(math.log(effect.ratio)) for effect in ordered]
    assert sizes == sorted(sizes)
    assert ordered[-1].factors == ("sync",)


def test_a_pilot_is_no_answer() -> None:
    study = study_of().model_copy(update={"pilot": True})
    found = findings(study, journal=1.5)
    assert found.pilot
    assert found.answer == "No answer: this is a pilot, a few blocks to plan the study by."


def test_a_rate_that_was_given_is_no_effect_nor_is_one_kind_of_loop_against_the_other() -> None:
    study = study_of()

    def runs(response: str, rates: bool) -> list[RunRecord]:
        return [
            make_record(
                8 * block + cell.index + 1,
                Slot(cell=cell.index, block=block),
                response=response,
                value=(1.0 + (cell.levels["threads"] == "8")) * (1 + 0.01 * ((3 * block + cell.index) % 5)),
                loop="open" if rates and cell.levels["threads"] == "8" else "closed",
            )
            for block in range(5)
            for cell in study.cells
        ]

    assert analyse(study, runs("throughput", rates=False), ended="enough").effects
    assert analyse(study, runs("latency_p99", rates=False), ended="enough").effects
    assert not analyse(study, runs("throughput", rates=True), ended="enough").effects
    assert not analyse(study, runs("latency_p99", rates=True), ended="enough").effects
    assert analyse(study, runs("cpu_per_op", rates=True), ended="enough").effects


def test_effects_of_a_study_that_was_looked_at_have_wider_intervals() -> None:
    looked = study_of()
    once = looked.model_copy(update={"replicates": looked.replicates.model_copy(update={"min": 30})})
    for wide, narrow in zip(findings(looked).effects, findings(once).effects, strict=True):
        assert wide.ci is not None
        assert narrow.ci is not None
        assert wide.ci[0] < narrow.ci[0] < narrow.ci[1] < wide.ci[1]
