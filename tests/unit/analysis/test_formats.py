"""Numbers as a person reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dyno.model.answers import BatchCell, BatchFinding, QueryAnswer, QueryFinding
from dyno.model.findings import (
    Candidate,
    CellLaws,
    CellSummary,
    Change,
    Choice,
    ClaimResult,
    Comparison,
    Confounder,
    CounterFigure,
    Crossing,
    Curve,
    DatabaseCell,
    Demand,
    DemandChange,
    DoseEffect,
    Drift,
    Evidence,
    FactorEffect,
    Failure,
    Findings,
    FolderAgreement,
    Forecast,
    ForecastError,
    Forecasting,
    ForecastWay,
    LawCheck,
    LawFault,
    Laws,
    ObservedCell,
    ObservedFigure,
    ObservedResult,
    Outlier,
    OverallRatio,
    Probed,
    PublishedCell,
    PublishedRatio,
    PublishedResult,
    Ranks,
    ResourceFigure,
    ResourceRatio,
    ScalabilityLaw,
    Shape,
    ShapePoint,
    StepTiming,
    TargetCell,
    TargetResult,
    Timing,
    Variation,
    VariationSource,
    WaitFigure,
    format_estimate,
    format_quantity,
    format_ratio,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (12345.6, "12,346"),
        (999.96, "1000.0"),
        (123.456, "123.5"),
        (1.23456, "1.235"),
        (0.0123456, "0.01235"),
        (-42.0, "-42.00"),
        (1.5e20, "1.500e+20"),
        (1.5e-9, "1.500e-09"),
    ],
)
def test_quantities_have_four_significant_digits(value, text) -> None:
    assert format_quantity(value) == text


def test_an_estimate_stands_with_its_interval_where_there_is_one() -> None:
    assert format_estimate(1234.5, (1200.0, 1300.0)) == "1,234 [1,200, 1,300]"
    assert format_estimate(1234.5, None) == "1,234"


@pytest.mark.parametrize(
    ("ratio", "interval", "text"),
    [
        (3.21, (2.9, 3.55), "3.21x [2.90, 3.55]"),
        (1.012, (1.0012, 1.023), "1.012x [1.001, 1.023]"),
        (0.999, (0.9981, 0.99996), "0.99900x [0.99810, 0.99996]"),
        (1.0, (1.0, 1.0), "1.00x [1.00, 1.00]"),
        (25.0, (12.34, 150.7), "25.0x [12.3, 151]"),
        (0.0544, (0.04, 0.0739), "0.0544x [0.0400, 0.0739]"),
        (0.0123, (0.00012, 0.5), "0.0123x [0.00012, 0.50]"),
        (2.0, (0.0, 1.7e308), "2.00x [0, 1.7e+308]"),
    ],
)
def test_ratios_show_on_which_side_of_one_each_end_lies(ratio, interval, text) -> None:
    assert format_ratio(ratio, interval) == text


def test_every_key_of_the_findings_is_in_their_reference() -> None:
    text = (Path(__file__).parents[3] / "docs" / "reference" / "findings.md").read_text()
    models = (Findings, CellSummary, Comparison, Failure, TargetResult, TargetCell, PublishedResult, PublishedCell)
    causes = (Variation, VariationSource, Shape, Curve, ShapePoint, ScalabilityLaw, Crossing, Drift, Change, Outlier)
    beside = (
        OverallRatio,
        Confounder,
        FolderAgreement,
        StepTiming,
        Timing,
        PublishedRatio,
        Ranks,
        ClaimResult,
        Evidence,
        FactorEffect,
        Choice,
        Candidate,
        ResourceFigure,
        ResourceRatio,
        Probed,
        DoseEffect,
        ObservedResult,
        ObservedFigure,
        ObservedCell,
    )
    of_laws = (
        Laws,
        CellLaws,
        Demand,
        DemandChange,
        LawCheck,
        LawFault,
        Forecasting,
        ForecastWay,
        ForecastError,
        Forecast,
    )
    stores = (DatabaseCell, CounterFigure, WaitFigure)
    asked = (QueryFinding, QueryAnswer, BatchFinding, BatchCell)
    for model in (*models, *beside, *causes, *of_laws, *stores, *asked):
        missing = [name for name in model.model_fields if f"`{name}`" not in text]
        assert missing == [], model.__name__
