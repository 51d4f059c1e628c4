"""A study and a run are the same after a way through JSON: `plan.json` and `run.json` are all that is kept of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from dyno.model.pairs import pairs
from dyno.model.run import Outcome, RunRecord, Slot, Step, StepTime
from dyno.model.study import Study
from tests.making import make_record, make_study, share

TEXT = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=20)
SCALARS = st.one_of(TEXT, st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))


@st.composite
def studies(draw: st.DrawFn) -> Study:
    names = draw(st.lists(TEXT, unique=True, max_size=3))
    factors = {name: tuple(draw(st.lists(SCALARS, min_size=1, max_size=3, unique_by=str))) for name in names}
    least = draw(st.integers(2, 50))
    return make_study(
        factors,
        system=draw(TEXT),
        workload=draw(TEXT),
        options=draw(st.dictionaries(TEXT, SCALARS, max_size=3)),
        compare=draw(st.sampled_from([None, *names])),
        caches=draw(st.sampled_from(["warm", "cold"])),
        limits={"drive": f"{draw(st.integers(1, 10**9))} us"},
        order=draw(st.sampled_from(["randomised", "fixed"])),
        seed=draw(st.integers(0, 2**63 - 1)),
        free_disk=draw(st.integers(0, 2**53)),
        min=least,
        max=draw(st.integers(least, 100)),
        precision=share(draw(st.integers(1, 10**6)) / 10**6),
        budget=draw(st.one_of(st.none(), st.integers(1, 10**6).map(lambda minutes: f"{minutes} min"))),
    )


@given(studies())
def test_a_study_that_was_written_to_json_is_read_as_the_same(study: Study) -> None:
    assert Study.model_validate_json(study.model_dump_json()) == study


@given(studies())
def test_writing_a_study_twice_gives_the_same_bytes(study: Study) -> None:
    written = study.model_dump_json(indent=1)
    assert Study.model_validate_json(written).model_dump_json(indent=1) == written


def test_a_run_that_was_written_to_json_is_read_as_the_same() -> None:
    record = make_record(
        3,
        Slot(cell=1, block=2, attempt=1),
        Outcome.INVALID,
        1234.5,
        steps=(StepTime(step=Step.DRIVE, seconds=0.25),),
        errors={"read": {"busy": 3}},
        settings={"journal_mode": "wal", "cache_size_bytes": 2048},
        commands=(("dyno-core", "drive"),),
        driver={"workload": {"kind": "null"}},
        loop="closed",
    )
    assert RunRecord.model_validate_json(record.model_dump_json()) == record


@pytest.mark.parametrize("extra", [{"colour": "red"}, {"study": 1.5}, {"cells": [{}]}])
def test_a_plan_with_a_key_that_does_not_exist_or_a_wrong_value_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Study.model_validate({**make_study().model_dump(mode="json"), **extra})


def test_a_value_cannot_be_changed_once_made() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        make_study().seed = 2  # type: ignore[misc]


def test_min_above_max_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"min \(5\) is above max \(4\)"):
        make_study(min=5, max=4)


def test_pairs_are_every_two_levels_of_the_compared_factor_with_the_first_declared_as_one() -> None:
    study = make_study({"mode": ("wal", "delete", "off"), "threads": (1, 2)}, compare="mode")
    told = [(pair.level_b, pair.level_a, pair.within) for pair in pairs(study)]
    expected = [
        (b, a, {"threads": threads})
        for threads in ("1", "2")
        for b, a in (("delete", "wal"), ("off", "wal"), ("off", "delete"))
    ]
    assert sorted(told, key=str) == sorted(expected, key=str)


def test_there_are_no_pairs_where_nothing_is_compared() -> None:
    assert pairs(make_study()) == []


STAGED = make_study(
    {"store": ("a", "b"), "tuning": (1, 2), "threads": (1, 4)},
    compare="store",
    stages={"best": "tuning", "levels": {"b": [2]}, "max": 5, "share": "30%"},
    precision_of="ratio",
)


def test_pairs_of_a_staged_study_are_all_that_may_come_to_be_compared() -> None:
    told = [(pair.a.levels["tuning"], pair.b.levels["tuning"], pair.within["threads"]) for pair in pairs(STAGED)]
    assert sorted(told) == [("1", "2", "1"), ("1", "2", "4"), ("2", "2", "1"), ("2", "2", "4")]
    assert all((pair.level_a, pair.level_b) == ("a", "b") for pair in pairs(STAGED))


def test_a_staged_study_and_its_runs_are_the_same_after_a_way_through_json() -> None:
    assert Study.model_validate_json(STAGED.model_dump_json()) == STAGED
    record = make_record(1, Slot(cell=0, block=0, stage=1), value=1.0)
    assert RunRecord.model_validate_json(record.model_dump_json()) == record


def test_a_plan_or_a_run_of_before_there_were_stages_has_none() -> None:
    plan = make_study().model_dump(mode="json", exclude={"stages"})
    assert Study.model_validate(plan).stages is None
    old = make_record(1, Slot(cell=0, block=0), value=1.0).model_dump(mode="json")
    del old["slot"]["stage"]
    assert RunRecord.model_validate(old).slot.stage is None
