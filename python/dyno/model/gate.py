"""What a gate found: whether something became slower."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dyno.model.base import Frozen

GateVerdict = Literal["slower", "not slower", "cannot tell"]


class GateCell(Frozen):
    """One cell, old against new."""

    levels: dict[str, str]
    slowdown: Annotated[
        float | None, Field(description="how many times slower the new side is; below 1 it is faster")
    ] = None
    ci: Annotated[tuple[float, float] | None, Field(description="of the slow-down, by itself")] = None
    ratio: Annotated[float | None, Field(description="new / base of the response, as a report has it")] = None
    ratio_ci: Annotated[tuple[float, float] | None, Field(description="of that ratio, by itself")] = None
    n: Annotated[int, Field(description="pairs; of folders, sessions of the base")]
    p_slower: Annotated[float | None, Field(description="of a slow-down up to the limit; Holm's over the cells")] = None
    p_not_slower: Annotated[float | None, Field(description="of a slow-down of the limit or more")] = None
    verdict: GateVerdict
    why: Annotated[str, Field(description="why it cannot be told; empty where it can")] = ""


class Gate(Frozen):
    """All cells together: slower where any is, not slower where none is."""

    format: int = 1
    response: str
    limit: Annotated[float, Field(description="the slow-down that is looked for: 0.03 is 1.03 times as slow")]
    confidence: float
    verdict: GateVerdict
    sentence: str
    interleaved: bool
    cells: tuple[GateCell, ...]
