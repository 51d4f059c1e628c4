"""How a study has its tables laid out: `system.tables`, a closed set of keys, of which each kind of system takes some.

A kind says which by a class of its own, with a field for each; a key that it leaves out is refused where it is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from dyno.model.base import Frozen, KeyProblem
from dyno.model.devops import TAGS

PartitionBy = Annotated[
    Literal["none", "day", "month"], Field(description="rows of one partition are of one day or month, or it is one")
]
Shards = Annotated[int, Field(ge=1, le=1000, description="of each table, or of each partition where it has some")]
Replicas = Annotated[int, Field(ge=0, le=8, description="copies of each shard besides the first, on other nodes")]
Wal = Annotated[bool, Field(description="rows go through a write-ahead log, and are read once it was applied")]
Deduplicate = Annotated[
    bool,
    Field(description="a row of the same time and host as another replaces it or is refused; else both are kept"),
]
Hypertable = Annotated[
    bool, Field(description="TimescaleDB's create_hypertable, with chunks as `partition_by` says (day where none)")
]


def _listed(given: object) -> object:
    """One column may stand by itself, so that it can be a level of a factor: `hostname`, `hostname,region`."""
    return [part.strip() for part in given.split(",")] if isinstance(given, str) and given != "none" else given


def _of_tags(given: object) -> object:
    given = _listed(given)
    if isinstance(given, (list, tuple)):
        for column in given:
            if column not in TAGS:
                raise ValueError(f"{column!r} is no tag of the tables; there are {', '.join(TAGS)}, or write none")
        if not given:
            raise ValueError("write none where no column is to have an index")
        if len(set(given)) < len(given):
            raise ValueError("names a column twice")
        return tuple(given)
    return given


Index = Annotated[
    Literal["none"] | tuple[str, ...],
    BeforeValidator(_of_tags),
    Field(description="the tags that have an index, such as `[hostname]`; or `none`"),
]

KEYS = ("partition_by", "shards", "replicas", "index", "wal", "deduplicate", "hypertable")
"""All that some kind takes."""


class TableOptions(Frozen):
    """The tables of one kind of system. It takes those keys alone that have a field."""

    of: ClassVar[str]
    """The kind."""

    @model_validator(mode="before")
    @classmethod
    def _takes_its_own_keys_alone(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            for key in KEYS:
                if key in given and key not in cls.model_fields:
                    takes = ", ".join(each for each in KEYS if each in cls.model_fields)
                    raise KeyProblem(key, f"tables of {cls.of} take no {key}; they take {takes}")
        return given

    def design(self) -> dict[str, Any]:
        """As plain values, for an endpoint and for what shapes the data; an index is a list of columns."""
        made = self.model_dump(mode="json")
        if made.get("index") == "none":
            made["index"] = []
        return made
