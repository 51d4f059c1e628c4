"""What the coverage simulation says of the stopping rule holds for studies that the lab really runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dyno.design import block_order
from dyno.design.rule import Rule
from dyno.model.run import Slot
from dyno.model.study import Study
from dyno.systems.simulated import SimulatedOptions, throughput
from tests.making import make_study
from tests.unit.lab.laboratory import Laboratory

NOISES: list[dict[str, Any]] = [
    {"cov": "3%"},
    {"cov": "8%"},
    {"noise": "lognormal", "cov": "10%"},
    {"cov": "6%", "rho": 0.7},
    {"cov": "5%", "outliers": "5%"},
]


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("precision_of", ["mean", "ratio"])
def test_twenty_studies_in_the_lab_are_decided_run_for_run_as_in_memory(
    tmp_path: Path, seed: int, noise: dict[str, Any], precision_of: str
) -> None:
    study = make_study(
        {"mean": (1000, 1100, 1200)},
        options={**noise, "seed": seed},
        compare="mean",
        precision_of=precision_of,
        min=4,
        max=20,
        precision="5%",
        seed=seed,
    )
    records = Laboratory(tmp_path).records(study)
    slots, values = in_memory(study)
    assert [record.slot for record in records] == slots
    assert [record.responses["throughput"] for record in records] == values


def in_memory(study: Study) -> tuple[list[Slot], list[float]]:
    """The slots and values of a study that is only computed, by blocks, as `benchmarks/coverage.py` does it."""
    rule, most = Rule.of(study), study.replicates.max
    order = [block_order(study, block) for block in range(most)]
    slots = [Slot(cell=cell, block=block) for block in range(most) for cell in order[block]]
    options = [SimulatedOptions.model_validate(cell.system.options) for cell in study.cells]
    values = [throughput(options[slot.cell], run) for run, slot in enumerate(slots, start=1)]
    matrix, times = np.empty((2, most, len(study.cells)))
    for run, (slot, value) in enumerate(zip(slots, values, strict=True), start=1):
        matrix[slot.block, slot.cell], times[slot.block, slot.cell] = value, run
    tried = np.ones(len(study.cells), dtype=np.bool_)
    for blocks in range(rule.looks.first, most):
        if rule.reached(matrix[:blocks], times[:blocks], tried) <= study.replicates.precision:
            break
    else:
        blocks = most
    return slots[: blocks * len(study.cells)], values[: blocks * len(study.cells)]
