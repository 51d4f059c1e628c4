"""The one error of this room, and how its message stays one readable line whatever the file holds."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dyno.model.base import UserError

_WORD = re.compile("[^ ._-]+")
_PROBLEM_LENGTH = 300
_SOURCE_LENGTH = 120
_LIST_LENGTH = 160


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was written: a file and a line (from 1), or a `--set`, which has no line."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        source = shorten(printable(self.source), _SOURCE_LENGTH)
        return source if self.line is None else f"{source}:{self.line}"

    @property
    def rank(self) -> tuple[int, int]:
        """Sorts what was just typed on the command line before the lines of the file."""
        return (0, 0) if self.line is None else (1, self.line)


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where, at which key (dotted; empty for the whole file), and the remedy within `text`."""

    place: Place
    key: str
    text: str

    def __str__(self) -> str:
        already_said = not self.key or self.place.source.startswith(f"--set {self.key}=")
        said = self.text if already_said else f"{shorten(self.key, _SOURCE_LENGTH)}: {self.text}"
        return f"{self.place}: {_shorten_between_words(printable(said), _PROBLEM_LENGTH)}"


class StudyError(UserError):
    """A study that cannot be: one line, `FILE:LINE: KEY: what is wrong; remedy`."""

    def __init__(self, problem: Problem, more: int = 0) -> None:
        super().__init__(f"{problem} (and {more} more)" if more else str(problem))
        self.problem = problem
        self.more = more


def raise_first(problems: Iterable[Problem]) -> None:
    """Raise the first problem in the order of the file, with the number of others. Returns if there is none.

    Of several at one key the one found first is told: the others are mostly its consequences.
    """
    found: dict[tuple[Place, str], Problem] = {}
    for problem in problems:
        found.setdefault((problem.place, problem.key), problem)
    distinct = sorted(found.values(), key=lambda problem: problem.place.rank)
    if distinct:
        raise StudyError(distinct[0], more=len(distinct) - 1)


def printable(text: str) -> str:
    r"""The text with everything that a terminal would act on written as an escape (`\n`, `\x1b`, `\u202e`)."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def shorten(text: str, length: int) -> str:
    """The text, or its beginning and its end with `...` between."""
    if len(text) <= length:
        return text
    tail = length // 4
    return f"{text[: length - tail - 3]}...{text[-tail:]}"


def _shorten_between_words(text: str, length: int) -> str:
    """As `shorten`, but a name of a list is there as a whole or not at all, as far as there are spaces."""
    if len(text) <= length:
        return text
    tail = length // 4
    begin, end = text[: length - tail - 5], text[-tail:]
    return f"{begin.rpartition(' ')[0] or begin} ... {end.partition(' ')[2] or end}"


def shown(value: object) -> str:
    """A value as it stands in a message: as YAML would have it, short, on one line."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{printable(shorten(value, 60))}'"
    if isinstance(value, dict):
        return "a mapping of keys"
    if isinstance(value, (list, tuple)):
        return "a list"
    return shorten(str(value), 60)


def listed(names: Iterable[str]) -> str:
    """Names with commas between, cut where the line would get too long to read."""
    all_names = list(names)
    kept: list[str] = []
    length = 0
    for name in all_names:
        length += len(name) + 2
        if kept and length > _LIST_LENGTH:
            return f"{', '.join(kept)} and {len(all_names) - len(kept)} more"
        kept.append(shorten(printable(name), 60))
    return ", ".join(kept) or "none"


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """`; did you mean 'records'?` if a known name is near, else nothing."""
    match = nearest(name, known)
    return "" if match is None else f"; did you mean {shown(match)}?"


def nearest(name: str, known: Sequence[str]) -> str | None:
    """The known name that this one is probably meant to be, if any."""
    lowered = {candidate.lower(): candidate for candidate in known}
    near = difflib.get_close_matches(name.lower()[:200], lowered, n=1)
    if near:
        return lowered[near[0]]
    words = sorted(_WORD.findall(name.lower()))
    # The same words in another order, as lost_rows for rows_lost.
    return next((known for lower, known in lowered.items() if words and sorted(_WORD.findall(lower)) == words), None)


def not_found(what: str, name: str, known: Iterable[str], plural: str) -> str:
    """`unknown kind 'sqllite'; did you mean 'sqlite'? (kinds: null, sqlite)`."""
    names = list(known)
    return f"unknown {what} {shown(name)}{did_you_mean(name, names)} ({plural}: {listed(names)})"
