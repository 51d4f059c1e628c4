"""What a study file may say: its keys with their types, defaults and descriptions, each written here once.

The loader, the JSON Schema and the reference page are made from these. Parts that differ from cell to cell (`host`,
`system`, `workload`) or have a shape of their own (`factors`, `observe`, `intervene`, `faults`, `targets`, `published`,
`scales`) are `Any` here and read in `build`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from dyno.model.base import Frozen, Scalar
from dyno.model.study import Limits, Replicates, Stages

SLUG = r"^[a-z0-9][a-z0-9-]{0,63}$"
FRACTION = r"^1/(2|4|8|16|32|64|128|256|512|1024|2048|4096|8192)$"
FACTOR_NAME = r"^[A-Za-z_][A-Za-z0-9_-]{0,63}$"
SCALE_NAME = SLUG
DEFAULT_SEED = 1
DEFAULT_SCALE = "default"
VARIED_SECTIONS = ("host", "system", "workload")


def _slug(name: str) -> str:
    if re.fullmatch(SLUG, name) is None:
        raise ValueError("should be 1 to 64 lower-case letters, digits and hyphens, such as sqlite-journal")
    return name


def _paragraph(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; ask in a sentence what the study is to answer")
    if re.search(r"\n\s*\n", text.strip()):
        raise ValueError("should be one paragraph; remove the empty line")
    if len(text) > 2000:
        raise ValueError("is longer than 2000 characters; put the background into the study's README")
    return " ".join(text.split())


class Document(Frozen):
    """The top level of a study file."""

    study: Annotated[
        str,
        AfterValidator(_slug),
        Field(description="name of the study and of its results folder", json_schema_extra={"pattern": SLUG}),
    ]
    question: Annotated[str, AfterValidator(_paragraph), Field(description="what is to be answered, one paragraph")]
    factors: Annotated[
        Any, Field(description="what is varied: name to a list of levels, or name to named groups of settings")
    ] = None
    design: Annotated[Any, Field(description="which combinations of levels are measured: all of them if left out")] = (
        None
    )
    compare: Annotated[
        str | None,
        Field(description="the factor whose levels are compared; null for none; the first factor if left out"),
    ] = None
    stages: Annotated[
        Stages | None, Field(description="pick the best level of a factor first, then compare what was picked")
    ] = None
    host: Annotated[Any, Field(description="the state of the machine in which a cell is measured")] = None
    system: Annotated[Any, Field(description="the system under test")]
    workload: Annotated[Any, Field(description="what is asked of the system: its kind, and its options beside it")]
    replicates: Annotated[Replicates, Field(description="when a cell has been repeated often enough")] = Replicates()
    observe: Annotated[Any, Field(description="observers, by kind or as {kind: {options}}; [machine] if left out")] = (
        None
    )
    intervene: Annotated[
        Any,
        Field(
            description="what is done to a resource on purpose, at rising doses, to see what throughput hangs on: "
            "{kind: {options}}, see below"
        ),
    ] = None
    faults: Annotated[
        Any,
        Field(
            description="what is struck in a cluster while it is driven, to see what a failover costs: {kind: "
            "{options}}, see below"
        ),
    ] = None
    limits: Annotated[Limits, Field(description="the longest that each step of a run may take")] = Limits()
    order: Annotated[Literal["randomised", "fixed"], Field(description="the order of the cells within a block")] = (
        "randomised"
    )
    prepare: Annotated[
        Literal["once", "per-block"],
        Field(description="when data are loaded: once a study, or once a block where loading itself varies"),
    ] = "once"
    restore: Annotated[
        Literal["copy", "reflink"], Field(description="how a run gets its data back from the snapshot")
    ] = "copy"
    seed: Annotated[int, Field(ge=0, le=2**64 - 1, description="what all randomness of the study comes from")] = (
        DEFAULT_SEED
    )
    targets: Annotated[
        Any, Field(description="what is to be reached: response to bound, or a list of {response, bound, where}")
    ] = None
    published: Annotated[
        Any, Field(description="figures and findings of others that the results are set beside, see below")
    ] = None
    scales: Annotated[
        Any, Field(description="other sizes of the study: name to {dotted study key: value}, chosen with --scale")
    ] = None


def _fraction(text: str) -> str:
    if re.fullmatch(FRACTION, text) is None:
        raise ValueError("should be 1/2, 1/4, 1/8 ...; leave it out for all combinations")
    return text


class LowHigh(Frozen):
    """The two levels that stand for a factor."""

    low: Scalar
    high: Scalar


class DesignSection(Frozen):
    """`design`."""

    kind: Annotated[
        Literal["factorial", "screening", "cells"],
        Field(
            description="factorial: all combinations; screening: of two levels a factor, all or a fraction of them; "
            "cells: those that are named"
        ),
    ] = "factorial"
    without: Annotated[
        tuple[dict[str, Scalar], ...],
        Field(description="of factorial: combinations to leave out, each as {factor: level} with some of the factors"),
    ] = ()
    runs: Annotated[
        int | None, Field(ge=4, description="of screening: runs in a block, that is cells; a power of two")
    ] = None
    fraction: Annotated[
        str | None,
        AfterValidator(_fraction),
        Field(
            description="of screening: the same as a share of all combinations: 1/2, 1/4, 1/8 ...",
            json_schema_extra={"pattern": FRACTION},
        ),
    ] = None
    generators: Annotated[
        tuple[str, ...],
        Field(description="of screening: how the fraction is chosen, such as [E=ABCD]; known for up to 11 factors"),
    ] = ()
    levels: Annotated[
        dict[str, LowHigh],
        Field(description="of screening: factor to {low: level, high: level}, for one of more than two levels"),
    ] = {}
    cells: Annotated[
        tuple[dict[str, Scalar], ...], Field(description="of cells: each cell as {factor: level}, with every factor")
    ] = ()


class SystemSection(Frozen):
    """`system` but for its options, which are those of the kind."""

    kind: Annotated[str, Field(description="which system")]
    deployment: Annotated[str, Field(description="where its processes and data live, see below")] = "native"
    config: Annotated[dict[str, Any], Field(default_factory=dict, description="options of that kind of system")]
    tables: Annotated[
        dict[str, Any],
        Field(default_factory=dict, description="how tables are laid out, of kinds that have such options, see below"),
    ]


class WorkloadSection(Frozen):
    """`workload` but for the options that stand beside its kind."""

    kind: Annotated[str, Field(description="which workload")]
