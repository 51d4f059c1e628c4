"""Files of named queries: what is asked of each kind of store, in its own dialect, and when two answers are the same.

`docs/queries.md` tells of the format. YAML's nodes carry their lines, so that what is wrong is told with the file's own
line and key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, get_args

import yaml
from pydantic import Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from dyno.model.answers import ABSOLUTE, RELATIVE, ColumnKind
from dyno.model.base import Frozen, KeyProblem
from dyno.workloads.query_parameters import Parameter

Dialect = Literal["questdb", "cratedb", "postgresql", "duckdb", "sqlite"]
DIALECTS: Final[tuple[str, ...]] = get_args(Dialect)
FormName = Literal["verbatim", "determinate"]
FORMS: Final[tuple[str, ...]] = get_args(FormName)

PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)(?:\.([a-z0-9_]+))?\}")
_ENDS = ("from", "to")
_NAME = r"^[a-z0-9][a-z0-9-]{0,63}$"
_WORD = r"^[a-z][a-z0-9_]{0,63}$"
_MOST_NODES, _DEEPEST = 20_000, 12

Name = Annotated[str, Field(pattern=_NAME)]
Word = Annotated[str, Field(pattern=_WORD)]
Text = Annotated[str, Field(min_length=1, max_length=20_000)]
Position = tuple[str | int, ...]


class Texts(Frozen):
    """One text for each dialect that has its own, and one for all others."""

    default: Annotated[Text | None, Field(description="for every dialect that has no text of its own here")] = None
    questdb: Text | None = None
    cratedb: Text | None = None
    postgresql: Text | None = None
    duckdb: Text | None = None
    sqlite: Text | None = None

    def of(self, dialect: str) -> str | None:
        """The text for a dialect; None where there is none."""
        own: str | None = getattr(self, dialect) if dialect in DIALECTS else None
        return own if own is not None else self.default

    def given(self) -> Iterator[tuple[str, str]]:
        """Each text that stands in the file, with its key."""
        for key in ("default", *DIALECTS):
            if (text := getattr(self, key)) is not None:
                yield key, text


class Form(Texts):
    """A query as it is asked on one level: `verbatim` as somebody else did, `determinate` the same of every store."""

    ordered: Annotated[bool, Field(description="whether the order of the rows is part of the answer")] = False
    order_by: Annotated[
        tuple[Word, ...],
        Field(description="of ordered: the columns that rows are ordered by; rows alike in these may change places"),
    ] = ()
    columns: Annotated[
        dict[Word, ColumnKind],
        Field(description="what each column of the answer holds, in order; as the store tells it where left out"),
    ] = {}
    comment: Annotated[str | None, Field(max_length=2000, description="what a reader must know of this text")] = None

    @model_validator(mode="after")
    def _can_be_asked(self) -> Form:
        if next(self.given(), None) is None:
            raise KeyProblem("default", f"there is no text: give default, or one for each of {', '.join(DIALECTS)}")
        if self.order_by and not self.ordered:
            raise KeyProblem("order_by", "is of rows in an order: write ordered: true, or leave it out")
        if unknown := [name for name in self.order_by if name not in self.columns]:
            known = ", ".join(self.columns) or "none: give columns"
            raise KeyProblem("order_by", f"{unknown[0]!r} is no column of it (columns: {known})")
        return self


class Tolerance(Frozen):
    """How far two figures may be from one another and still be the same."""

    relative: Annotated[float, Field(ge=0, lt=1, description="share of the larger of the two")] = RELATIVE
    absolute: Annotated[float, Field(ge=0, description="or this much, for figures next to 0")] = ABSOLUTE


class Query(Frozen):
    """One question."""

    title: Annotated[str, Field(min_length=1, max_length=200, description="what it asks, for people")]
    parameters: Annotated[dict[Word, Parameter], Field(description="what is drawn for this query alone")] = {}
    tolerance: Annotated[Tolerance, Field(description="of figures that are no whole numbers")] = Tolerance()
    verbatim: Annotated[Form | None, Field(description="as a publication or a tool has it, faults included")] = None
    determinate: Annotated[Form | None, Field(description="so that every store is asked for the same answer")] = None

    @model_validator(mode="after")
    def _has_a_form(self) -> Query:
        if self.verbatim is None and self.determinate is None:
            raise ValueError(f"has no text: give {' or '.join(FORMS)}")
        return self

    def form(self, name: str) -> Form | None:
        """The form of that name; None where the query has none."""
        found: Form | None = getattr(self, name)
        return found

    def forms(self) -> Iterator[tuple[str, Form]]:
        """Each form that it has, by name."""
        for name in FORMS:
            if (form := self.form(name)) is not None:
                yield name, form


class QueryFile(Frozen):
    """A whole file."""

    title: Annotated[str, Field(min_length=1, max_length=200, description="what the queries are, for people")]
    names: Annotated[
        dict[Word, Texts],
        Field(description="what is called otherwise in each dialect, such as a column; stands in a text as {name}"),
    ] = {}
    parameters: Annotated[dict[Word, Parameter], Field(description="what is drawn for each query that has it")] = {}
    queries: Annotated[dict[Name, Query], Field(min_length=1, description="each query by its name")]

    def parameters_of(self, query: Query) -> dict[str, Parameter]:
        """All that its texts may have, its own before those of the file."""
        return {**self.parameters, **query.parameters}

    def drawn_for(self, query: Query) -> dict[str, Parameter]:
        """Those that some text of it has, on whichever level: on both it is then asked of the same values."""
        texts = [text for _, form in query.forms() for _, text in form.given()]
        used = {word for text in texts for word, _ in PLACEHOLDER.findall(text)}
        return {name: each for name, each in self.parameters_of(query).items() if name in used}


class QueryFileError(ValueError):
    """What is wrong with a file: `FILE:LINE: KEY: what, and what would be right`."""


def parse(text: str, source: str) -> QueryFile:
    """The queries that stand in a file called `source`. Raises QueryFileError."""
    return _parsed(text, source)


def where(text: str, source: str, key: Position) -> str:
    """The `FILE:LINE` of a key of a file that was parsed."""
    lines: dict[Position, int] = {}
    _Reader(source, lines).read(text)
    return f"{source}:{lines[key]}"


@lru_cache(maxsize=32)
def _parsed(text: str, source: str) -> QueryFile:
    """Asked once for each file: a study has many cells of one."""
    lines: dict[Position, int] = {}
    tree = _Reader(source, lines).read(text)
    try:
        found = QueryFile.model_validate(tree)
    except ValidationError as error:
        raise _told(source, lines, *_first(error)) from None
    for key, wrong in _slips(found):
        raise _told(source, lines, key, wrong)
    return found


def _first(error: ValidationError) -> tuple[Position, str]:
    """The error that stands deepest in the file, and so tells most; its key and its words.

    A key that is not known is told before one that is missing: it may be that one, misspelt.
    """
    found = max(error.errors(include_url=False), key=lambda each: (len(each["loc"]), each["type"] == "extra_forbidden"))
    key, cause = tuple(found["loc"]), (found.get("ctx") or {}).get("error")
    if isinstance(cause, KeyProblem):
        return (*key, cause.key), str(cause)
    if found["type"] == "extra_forbidden":
        return key, "is no key here"
    if found["type"] == "missing":
        return key[:-1], f"has no {key[-1]}"
    if found["type"] == "union_tag_invalid":
        return (*key, "kind"), in_words(found)
    return key, in_words(found)


_SHOULD_BE = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "string_type": "text",
    "dict_type": "a mapping of keys",
    "model_type": "a mapping of keys",
    "tuple_type": "a list",
}


def in_words(found: ErrorDetails) -> str:
    """What is wrong, without what pydantic calls things."""
    kind, context = found["type"], found.get("ctx") or {}
    if kind in _SHOULD_BE:
        return f"should be {_SHOULD_BE[kind]}"
    if kind == "literal_error":
        return f"should be {_unquoted(context['expected'])}"
    if kind == "union_tag_invalid":
        return f"kind {context['tag']} is not known; there are {_unquoted(context['expected_tags'])}"
    if kind == "too_short":
        return f"should have at least {context['min_length']}"
    if kind == "union_tag_not_found":
        return "has no kind"
    said = found["msg"].removeprefix("Value error, ")
    return f"should{said.removeprefix('Input should')}" if said.startswith("Input should") else said


def _unquoted(names: str) -> str:
    return names.replace("'", "")


def _told(source: str, lines: Mapping[Position, int], key: Position, wrong: str) -> QueryFileError:
    # The kind of a parameter stands in pydantic's places, and not in the file.
    shown = [each for place, each in enumerate(key) if key[: place + 1] in lines or place == len(key) - 1]
    at = tuple(shown)
    while at and at not in lines:
        at = at[:-1]
    name = ".".join(map(str, shown))
    return QueryFileError(f"{source}:{lines.get(at, 1)}: {f'{name}: ' if name else ''}{' '.join(wrong.split())}")


def _slips(file: QueryFile) -> Iterator[tuple[Position, str]]:
    """What is wrong between the parts of a file."""
    for name in file.names.keys() & file.parameters.keys():
        yield ("parameters", name), "is one of names too: call one of them otherwise"
    for name, query in file.queries.items():
        used: set[str] = set()
        known = file.parameters_of(query)
        for clash in query.parameters.keys() & file.names.keys():
            yield ("queries", name, "parameters", clash), "is one of names too: call one of them otherwise"
        for form_name, form in query.forms():
            for key, text in form.given():
                for word, part in PLACEHOLDER.findall(text):
                    used.add(word)
                    if wrong := _misplaced(word, part, known, file.names, key):
                        yield ("queries", name, form_name, key), wrong
        for unused in query.parameters.keys() - used:
            yield ("queries", name, "parameters", unused), "stands in no text of this query"


def _misplaced(
    word: str, part: str, known: Mapping[str, Parameter], names: Mapping[str, Texts], dialect: str
) -> str | None:
    if word in names:
        if part:
            return f"{{{word}.{part}}}: {word} is a name and has no parts"
        asked = DIALECTS if dialect == "default" else (dialect,)
        missing = [each for each in asked if names[word].of(each) is None]
        return f"{{{word}}} has no text for {', '.join(missing)}" if missing and dialect != "default" else None
    if word not in known:
        there = ", ".join((*names, *known)) or "none"
        return f"{{{word}}} is neither a parameter nor a name (there are {there})"
    has_ends = known[word].has_ends
    if has_ends and not part:
        return f"{{{word}}} has two ends: write {{{word}.from}} and {{{word}.to}}"
    if has_ends and part not in _ENDS:
        return f"{{{word}.{part}}}: {word} has no {part}; a window has {' and '.join(_ENDS)}"
    if part and not has_ends:
        return f"{{{word}.{part}}}: {word} has no ends: write {{{word}}}"
    return None


class _Reader:
    """YAML -> mappings, lists and scalars of YAML 1.2's core schema, with the line of each key."""

    def __init__(self, source: str, lines: dict[Position, int]) -> None:
        self._source = source
        self._lines = lines
        self._nodes = 0

    def read(self, text: str) -> Any:
        try:
            node = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark else 1
            raise QueryFileError(f"{self._source}:{line}: {error.problem or 'is not YAML'}") from None
        except (yaml.YAMLError, RecursionError) as error:
            raise QueryFileError(f"{self._source}:1: is not YAML: {' '.join(str(error).split())[:200]}") from None
        if not isinstance(node, yaml.MappingNode):
            raise QueryFileError(f"{self._source}:1: has no keys: title and queries are needed")
        return self._value(node, ())

    def _value(self, node: yaml.Node, at: Position) -> Any:
        self._nodes += 1
        line = node.start_mark.line + 1
        self._lines.setdefault(at, line)
        if self._nodes > _MOST_NODES or len(at) > _DEEPEST:
            raise QueryFileError(f"{self._source}:{line}: is larger or deeper than any file of queries")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, at)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(each, (*at, number)) for number, each in enumerate(node.value)]
        return _scalar(node)

    def _mapping(self, node: yaml.MappingNode, at: Position) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise QueryFileError(f"{self._source}:{line}: a key is a word, and not a list or a mapping")
            key = str(key_node.value)
            if key in found:
                first = self._lines[(*at, key)]
                raise QueryFileError(
                    f"{self._source}:{line}: {'.'.join(map(str, (*at, key)))}: is given twice, first in line {first}"
                )
            self._lines[(*at, key)] = line
            found[key] = self._value(value_node, (*at, key))
        return found


_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,3})?")
_CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}


def _scalar(node: yaml.Node) -> Any:
    text = str(node.value)
    if not isinstance(node, yaml.ScalarNode) or node.style in ("'", '"', "|", ">"):
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text
