"""What others have published: their figures of this study's cells, and what they found, as far as it can be checked.

A predicate is what a finding says of means and ratios. It asks of intervals, so that it is shown to hold, shown not to
hold, or neither.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from dyno.model import measures
from dyno.model.base import Frozen, level_name
from dyno.model.sampled import SAMPLED
from dyno.model.targets import Chosen, OneEach
from dyno.model.units import Share

Scope = Literal["every cell", "some cell"]
TOGETHER: Final = "all together"
RatioScope = Literal["every cell", "some cell", "all together"]
Here = Literal["yes", "counters", "hosts", "disk", "kvm"]

CANNOT_JUDGE: dict[str, str] = {
    "counters": "it needs hardware counters",
    "hosts": "it needs nodes with machines of their own",
    "disk": "it needs a disk that rotates, or whose caches can be made truly cold",
    "kvm": "it needs virtual machines",
}
"""Why a finding stays open on this kind of machine, whatever was measured on it."""

_OVER = "each run's figure is divided by that of this response, say cycles by instructions"
IN_DESCRIPTION = "whether it is said of every cell or of some cell"
RATIO_IN_DESCRIPTION = f"{IN_DESCRIPTION}; all together: of the geometric mean of all ratios, within blocks"


class Aliased(Frozen):
    """A value some of whose keys are words that Python keeps for itself."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)


class RatioOf(Frozen):
    """b / a of a response, all else equal."""

    of: Annotated[str, Field(description="which response, resource or share")]
    over: Annotated[str | None, Field(description=_OVER)] = None
    b: Annotated[OneEach, Field(description="the cells above the line: factor to level")]
    a: Annotated[OneEach, Field(description="the cells below the line, of the same factors")]
    where: Annotated[Chosen, Field(description="only these levels of the other factors")] = {}


class RatioIs(Aliased):
    """A ratio keeps to a bound."""

    ratio: RatioOf
    wanted: Annotated[str, Field(alias="is", description="a bound without unit: > 1, or 0.94 to 0.96")]
    cells: Annotated[RatioScope, Field(alias="in", description=RATIO_IN_DESCRIPTION)] = "every cell"


class WithinOf(RatioOf):
    """As a ratio, near to 1."""

    margin: Annotated[Share, Field(gt=0, description="2% asks for a ratio between 1 / 1.02 and 1.02")]


class WithinIs(Aliased):
    """Two things are as good as equal."""

    within: WithinOf
    cells: Annotated[RatioScope, Field(alias="in", description=RATIO_IN_DESCRIPTION)] = "every cell"


class MeanOf(Frozen):
    """The mean of a response."""

    of: Annotated[str, Field(description="which response, resource or share")]
    over: Annotated[str | None, Field(description=_OVER)] = None
    where: Annotated[Chosen, Field(description="only these levels")] = {}


class MeanIs(Aliased):
    """A mean keeps to a bound."""

    mean: MeanOf
    wanted: Annotated[str, Field(alias="is", description="a bound in the response's unit, such as < 5 ms")]
    cells: Annotated[Scope, Field(alias="in", description=IN_DESCRIPTION)] = "every cell"


class TrendOf(Frozen):
    """A response over the levels of a factor, in the order in which they were declared."""

    of: Annotated[str, Field(description="which response, resource or share")]
    over: Annotated[str, Field(description="the factor")]
    where: Annotated[Chosen, Field(description="only these levels of the factors")] = {}


def _level(given: Any) -> Any:
    return level_name(given) if isinstance(given, (str, int, float)) else given


class Peak(Aliased):
    """The level at which a response is above its value at every other level."""

    at: Annotated[
        str, BeforeValidator(_level), WithJsonSchema({"type": ["string", "number", "boolean"]}), Field(alias="peaks-at")
    ]


class TrendIs(Aliased):
    """A response rises or falls with each step from level to level, or has its peak at one of them."""

    trend: TrendOf
    wanted: Annotated[
        Literal["rises", "falls"] | Peak, Field(alias="is", description="rises, falls or {peaks-at: level}")
    ]
    cells: Annotated[Scope, Field(alias="in", description=IN_DESCRIPTION)] = "every cell"


LARGEST = "largest"
"""What a removal may be asked to be instead of keeping to a bound."""

Event = Literal["instructions", "cycles"]


def _several(given: Any) -> Any:
    return tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else (given,)


class RemovalOf(Frozen):
    """What removing a component of glass saves, as a share of what the transaction takes with all components."""

    transaction: Annotated[str, Field(description="which kind, as it is counted: new_order")]
    component: Annotated[
        tuple[str, ...],
        BeforeValidator(_several),
        WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
        Field(min_length=1, description="which component or components of the engine, such as [keys, log]"),
    ]
    of: Annotated[Event, Field(description="what it is a share of")] = "instructions"
    over: Annotated[Event | None, Field(description="that share is divided by the share of these")] = None


class RemovalIs(Aliased):
    """Each of these shares keeps to a bound, or is above that of every other component of the publication."""

    removal: RemovalOf
    wanted: Annotated[
        str, Field(alias="is", description="a bound, such as >= 10% (without unit where it has over), or largest")
    ]
    cells: Annotated[Scope, Field(alias="in", description=IN_DESCRIPTION)] = "every cell"


class CallsOf(Frozen):
    """How often calls of the engine are made in a transaction."""

    transaction: Annotated[str, Field(description="which kind, as it is counted: new_order")]
    made: Annotated[dict[str, int], Field(min_length=1, description="call to how often: {lookup: 3, create: 1}")]
    where: Annotated[Chosen, Field(description="only these levels")] = {}


class CallsAre(Aliased):
    """Each is made just so often."""

    calls: CallsOf
    cells: Annotated[Scope, Field(alias="in", description=IN_DESCRIPTION)] = "every cell"


class AllOf(Frozen):
    """Each of these holds."""

    all: tuple[Predicate, ...]


class AnyOf(Frozen):
    """At least one of these holds."""

    any: tuple[Predicate, ...]


Predicate = RatioIs | WithinIs | MeanIs | TrendIs | RemovalIs | CallsAre | AllOf | AnyOf


class ClaimSource(Frozen):
    """A finding in the words of a publication."""

    id: Annotated[str, Field(description="a name for it, used once")]
    says: Annotated[str, Field(description="the finding in a sentence")]
    here: Annotated[
        Here,
        Field(description="yes, or what a machine must have to judge it that this one has not: the finding stays open"),
    ] = "yes"
    needs: Annotated[str | None, Field(description="under which condition it is said")] = None
    note: Annotated[str | None, Field(description="what a reader should know of it")] = None


class Claim(ClaimSource):
    """A published finding with what can be checked of it."""

    predicate: Annotated[Predicate | None, Field(description="what it says of means and ratios")] = None


class PublishedFigure(Frozen):
    """A published figure, in the unit of the response."""

    levels: dict[str, str]
    value: float
    interval: tuple[float, float] | None = None


class PublishedTable(Frozen):
    """Published figures of one response."""

    file: Annotated[str, Field(description="its name in the folder `published` of the results")]
    response: str
    figures: tuple[PublishedFigure, ...]
    unlike: Annotated[
        dict[str, dict[str, str]],
        Field(description="factor -> level -> why what is measured here is not what the figures are of"),
    ] = {}
    same_within: Annotated[float, Field(description="how near two ratios have to be, as a share, to be called alike")]

    def why_unlike(self, levels: Mapping[str, str]) -> str:
        """Why the figure of these levels judges nothing here; empty where it may."""
        return "; ".join(why for factor, of in self.unlike.items() if (why := of.get(levels.get(factor, ""))))


class Quantity(Frozen):
    """What figures of a machine are of: one of `of`, `group`, `symbol` and `module` says what is measured here."""

    of: Annotated[
        str | None,
        Field(description="a response, what was used, or a metric of samples: its mean, such as disk.w_await"),
    ] = None
    over: Annotated[
        str | None, Field(description="what was used: `of` is divided by it, instructions by cycles say")
    ] = None
    per: Annotated[
        Literal["s"] | float | None,
        Field(description="s where a figure is of a second, or how many operations it is of; one if left out"),
    ] = None
    group: Annotated[str | None, Field(description="a group of hot spots: its share of the samples")] = None
    symbol: Annotated[str | None, Field(description="the function that was running: its share of the samples")] = None
    module: Annotated[
        str | None,
        Field(description="the program or library that was running; kernel, and jit for code made at run time"),
    ] = None

    @property
    def measured_in(self) -> str:
        """The unit of what is measured here. Raises KeyError for a name that there is not."""
        if self.of is None:
            return "%"
        if self.over is not None:
            return "1"
        if self.of in SAMPLED and not measures.is_one(self.of):
            return SAMPLED[self.of]
        unit = measures.lookup(self.of).unit
        return f"{unit}/s" if self.per == "s" else unit


class PublishedObservation(Frozen):
    """A figure of a machine; of an operation where it was of several."""

    column: str
    quantity: Quantity
    levels: dict[str, str]
    value: float
    unit: Annotated[str, Field(description="of the value: one of the same kind as that of the quantity")]


class ObservedTable(Frozen):
    """Published figures of machines."""

    file: Annotated[str, Field(description="its name in the folder `published` of the results")]
    where: Annotated[Chosen, Field(description="the cells that all of its figures are of")] = {}
    notes: Annotated[dict[str, str], Field(description="column -> what a reader should know of it")] = {}
    figures: tuple[PublishedObservation, ...]
    left_out: Annotated[tuple[str, ...], Field(description="columns of it that are set beside nothing")] = ()


class PublishedShare(Frozen):
    """Of the instructions of a kind of transaction with all components: what was published of one of these."""

    transaction: str
    component: Annotated[str, Field(description="a component of the engine, pages (larger ones), or left")]
    share: float
    note: str = ""


class PublishedRemoval(Frozen):
    """What removing components saved, and what was left."""

    file: Annotated[str, Field(description="its name in the folder `published` of the results")]
    shares: tuple[PublishedShare, ...] = ()


class PublishedFile(Frozen):
    """A file that was read: as the study file names it, and its checksum."""

    file: str
    sha256: str


class Published(Frozen):
    """All that a study is set beside."""

    tables: tuple[PublishedTable, ...] = ()
    observed: tuple[ObservedTable, ...] = ()
    removal: PublishedRemoval | None = None
    findings: tuple[Claim, ...] = ()
    files: tuple[PublishedFile, ...] = ()


AllOf.model_rebuild()
AnyOf.model_rebuild()
Claim.model_rebuild()
