"""What is done to a resource on purpose while a run is driven, and by how much: the doses.

A delay is time added to each call of a kind. A share is what is taken of a resource's capacity, or given besides:
always of what the machine has, never of what was used, since whatever is capped below its use becomes the bottleneck.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from dyno.model.base import Frozen, Scalar
from dyno.model.units import PositiveDuration, Share, format_percent

FACTOR = "intervention"
"""The factor that a study with interventions has besides its own."""
NONE = "none"
"""Its level without an intervention and without the instrument that makes one."""
FEWEST_DOSES = 3

Unit = Literal["s", "share"]


class Dose(Frozen):
    """What is done in a cell. Dose 0 is the control: the instrument is there and does nothing."""

    kind: str
    title: Annotated[str, Field(description="what is done, as a sentence begins")]
    unit: Annotated[Unit, Field(description="s: seconds added to each call; share: of a resource's capacity")]
    dose: Annotated[float, Field(ge=0, description="in that unit")]

    @property
    def level(self) -> str:
        """As it is written in tables and on axes."""
        return f"{self.kind} {told(self.dose, self.unit)}"


def told(dose: float, unit: Unit) -> str:
    """`250 us`, `1.5 ms`, `20%`; 0 needs no unit."""
    if dose == 0:
        return "0"
    if unit == "share":
        return format_percent(dose)
    return f"{dose * 1e6:.4g} us" if dose < 0.9995e-3 else f"{dose * 1e3:.4g} ms"


class DoseOptions(Frozen):
    """What every kind of intervention takes in a study file; dose 0 and a cell without the instrument come besides."""

    title: ClassVar[str]
    unit: ClassVar[Unit]
    doses: tuple[float, ...]

    where: Annotated[
        dict[str, Scalar], Field(description="factor to level: only in these cells; in all of them if left out")
    ] = {}

    @model_validator(mode="after")
    def _doses_rise(self) -> DoseOptions:
        if len(self.doses) < FEWEST_DOSES:
            raise ValueError(f"doses: {FEWEST_DOSES} at least beside dose 0, which is always there")
        if any(lower >= higher for lower, higher in zip(self.doses, self.doses[1:], strict=False)):
            raise ValueError("doses: each should be above the one before")
        return self

    def steps(self, kind: str) -> list[Dose]:
        """The control, then each dose."""
        return [Dose(kind=kind, title=self.title, unit=self.unit, dose=dose) for dose in (0.0, *self.doses)]


Delay = Annotated[PositiveDuration, Field(le=1.0)]
"""Beyond a second it is no probe: a program in a delayed call ends when the delay does, even if it is killed."""


class Delays(DoseOptions):
    """Of kinds that add time to calls."""

    unit = "s"
    doses: Annotated[
        tuple[Delay, ...], Field(description="added to each call, three or more, each above the one before")
    ]


class Shares(DoseOptions):
    """Of kinds that take of a capacity, or add to it."""

    unit = "share"
    doses: Annotated[
        tuple[Annotated[Share, Field(gt=0, le=0.9)], ...],
        Field(description="share of the machine's capacity, three or more, each above the one before"),
    ]
