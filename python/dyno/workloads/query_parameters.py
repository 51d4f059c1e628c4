"""What the parameters of queries are drawn from, and how a value is written in each dialect.

A value hangs on the seed, the query, how many were drawn before and its own name alone: every store is asked for the
same, and a query that is added to a file changes nothing of the others.
"""

from __future__ import annotations

import calendar
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from dyno.model.base import Frozen, KeyProblem, Scalar
from dyno.model.units import PositiveDuration, format_duration

NS = 10**9


@dataclass(frozen=True)
class Span:
    """What the data hold: hosts by name, and rows from `start_ns` up to and without `end_ns`, every `step_ns`."""

    hosts: Sequence[str]
    start_ns: int
    end_ns: int
    step_ns: int


@dataclass(frozen=True)
class Moment:
    """A time, in ns since the epoch."""

    ns: int


Value = Scalar | Moment | tuple[str, ...] | tuple[Moment, Moment]


class CannotDraw(ValueError):
    """The data have nothing that such a parameter could be."""


class Host(Frozen):
    """Names of hosts that the data have."""

    kind: Literal["host"]
    count: Annotated[int, Field(ge=1, le=1000, description="how many; more than one stand in a list")] = 1

    @property
    def has_ends(self) -> bool:
        """It is one value."""
        return False

    def draw(self, chance: random.Random, span: Span) -> Value:
        """Different ones, in the order of the data. Raises CannotDraw."""
        if self.count > len(span.hosts):
            raise CannotDraw(f"asks for {self.count} hosts, and the data have {len(span.hosts)}")
        chosen = sorted(chance.sample(range(len(span.hosts)), self.count))
        return span.hosts[chosen[0]] if self.count == 1 else tuple(span.hosts[each] for each in chosen)


class Window(Frozen):
    """A part of the time that the data are of, with two ends: {name.from} and, not in it any more, {name.to}."""

    kind: Literal["window"]
    length: Annotated[PositiveDuration | None, Field(description="how long; it begins at any whole second")] = None
    month: Annotated[
        Literal["within", "across"] | None,
        Field(
            description="a month of the calendar; or as long a time from the middle of one month to that of the next"
        ),
    ] = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Window:
        if (self.length is None) == (self.month is None):
            raise KeyProblem("length", "give length (12 h), or month (within or across)")
        return self

    @property
    def has_ends(self) -> bool:
        """It has two."""
        return True

    def draw(self, chance: random.Random, span: Span) -> Value:
        """Wholly within the data. Raises CannotDraw."""
        if self.length is not None:
            length = round(self.length * NS)
            # One step less than the data at the least: a window of all of them asks for nothing in particular.
            room = (span.end_ns - span.start_ns - length) // NS
            if room < 0:
                data = format_duration((span.end_ns - span.start_ns) / NS)
                raise CannotDraw(f"asks for {format_duration(self.length)}, and the data are of {data}")
            start = span.start_ns + chance.randint(0, room) * NS
            return Moment(start), Moment(start + length)
        found = list(_months(span, across=self.month == "across"))
        if not found:
            raise CannotDraw(f"asks for a month {self.month} the months of the data, which have none that is whole")
        return found[chance.randrange(len(found))]


class Time(Frozen):
    """A time at which the data have rows."""

    kind: Literal["moment"]

    @property
    def has_ends(self) -> bool:
        """It is one value."""
        return False

    def draw(self, chance: random.Random, span: Span) -> Value:
        """Any of them."""
        return Moment(span.start_ns + chance.randrange((span.end_ns - span.start_ns) // span.step_ns) * span.step_ns)


class Number(Frozen):
    """A number between two others."""

    kind: Literal["number", "integer"]
    least: float
    most: float

    @model_validator(mode="after")
    def _has_room(self) -> Number:
        if self.most < self.least:
            raise KeyProblem("most", f"{self.most:g} is less than least, {self.least:g}")
        if self.kind == "integer" and not (self.least.is_integer() and self.most.is_integer()):
            raise KeyProblem("least", "of integers both ends are whole numbers")
        return self

    @property
    def has_ends(self) -> bool:
        """It is one value."""
        return False

    def draw(self, chance: random.Random, span: Span) -> Value:
        """Both ends may come."""
        if self.kind == "integer":
            return chance.randint(int(self.least), int(self.most))
        return round(chance.uniform(self.least, self.most), 6)


class Choice(Frozen):
    """One of some values."""

    kind: Literal["choice"]
    of: Annotated[tuple[Scalar, ...], Field(min_length=1)]

    @property
    def has_ends(self) -> bool:
        """It is one value."""
        return False

    def draw(self, chance: random.Random, span: Span) -> Value:
        """Any of them."""
        return self.of[chance.randrange(len(self.of))]


Parameter = Annotated[Host | Window | Time | Number | Choice, Field(discriminator="kind")]


def draw(parameters: Mapping[str, Any], span: Span, *, seed: int, query: str, number: int) -> dict[str, Value]:
    """A value for each parameter of a query, the same for every store. Raises CannotDraw, with the parameter's name."""
    found: dict[str, Value] = {}
    for name, parameter in parameters.items():
        chance = random.Random(f"{seed}/{query}/{number}/{name}")
        try:
            found[name] = parameter.draw(chance, span)
        except CannotDraw as error:
            raise CannotDraw(f"{name} {error}") from None
    return found


def written(value: Value, part: str, dialect: str) -> str:
    """A value as a literal of a dialect; `part` is from or to where it has ends."""
    if isinstance(value, tuple):
        if isinstance(value[0], Moment):
            return _time(value[0 if part == "from" else 1], dialect)
        return ", ".join(_quoted(str(each)) for each in value)
    if isinstance(value, Moment):
        return _time(value, dialect)
    if isinstance(value, bool):
        return "1" if dialect == "sqlite" and value else "0" if dialect == "sqlite" else str(value).lower()
    return _quoted(value) if isinstance(value, str) else repr(value)


def plain(values: Mapping[str, Value]) -> dict[str, Any]:
    """Values as they are kept beside an answer."""
    return {name: _plain(value) for name, value in values.items()}


def iso(ns: int) -> str:
    """`2016-01-01T00:00:00.000000Z`; whole microseconds, which every store takes."""
    return datetime.fromtimestamp(ns // NS, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{ns % NS // 1000:06d}Z"


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return iso(value.ns) if isinstance(value, Moment) else value


def _time(moment: Moment, dialect: str) -> str:
    # SQLite has no type for times: they are whole nanoseconds there. Elsewhere a text takes the type of its column.
    return str(moment.ns) if dialect == "sqlite" else f"'{iso(moment.ns)}'"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _months(span: Span, *, across: bool) -> Iterator[tuple[Moment, Moment]]:
    """Each whole month of the data; with `across`, each time from the middle of one to that of the next."""
    first = datetime.fromtimestamp(span.start_ns // NS, UTC)
    year, month = first.year, first.month
    while (start := calendar.timegm((year, month, 1, 0, 0, 0))) * NS < span.end_ns:
        following = (year + month // 12, month % 12 + 1)
        end = calendar.timegm((*following, 1, 0, 0, 0))
        if across:
            start, end = start + 15 * 86400, end + 15 * 86400
        if start * NS >= span.start_ns and end * NS <= span.end_ns:
            yield Moment(start * NS), Moment(end * NS)
        year, month = following
