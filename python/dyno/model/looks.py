"""When a study is looked at, and at what: the same for the rule that stops it and for the intervals that it reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from dyno.model.pairs import pairs
from dyno.model.study import FIRST_LOOK, Study

GIVE_UP_AFTER = 2
"""Blocks in a row in which every attempt at a cell went wrong, after which the cell is not tried any more."""


@dataclass(frozen=True)
class Looks:
    """After which blocks a study may stop. `at` is what has to be precise by then."""

    at: Literal["mean", "ratio"]
    first: int
    last: int
    comparisons: int


def looks(study: Study) -> Looks:
    """As the study asks, but not so early that an interval cannot hold what it says."""
    rule = study.replicates
    comparisons = len(pairs(study))
    # Where nothing is compared there is no ratio to be precise.
    at: Literal["mean", "ratio"] = rule.precision_of if comparisons else "mean"
    return Looks(at, min(max(rule.min, FIRST_LOOK[at]), rule.max), rule.max, comparisons)
