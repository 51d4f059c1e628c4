"""What callgrind's profile of a process says: the instructions that each function took itself, and who called it.

The format is that of valgrind's manual, "Callgrind Format Specification". `callgrind_annotate` reads it too, but it
warns of a line that it does not know and goes on, takes a file that is cut short for a whole one, and sorts by the
source file of a line, of which a function that others are inlined into has several.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from dyno.model.base import RunError

EVENT: Final = "Ir"
"""Instructions that were read, which is what callgrind calls those that were executed."""

_HEADER: Final = re.compile(r"([a-z]+):\s*(.*)")
_NAME: Final = re.compile(r"\((\d+)\)(?:\s+(.*))?")
_POSITION: Final = re.compile(r"(c?fn|jfn|c?ob|fl|f[ie]|cf[il]|jfi)=\s*(.*)")
_COST_BEGINS: Final = frozenset("0123456789+-*")

_LEVEL_OF_RECURSION: Final = re.compile(r"'\d+$")
_NO_NAME: Final = re.compile(r"0x[0-9a-fA-F]+|\?\?\?")
_CLONE: Final = re.compile(r"(?: \[clone [^]]*\])+$")
_QUALIFIERS: Final = re.compile(r"(?: const| volatile| noexcept| ?&&?)+$")
_OPENS, _CLOSES = "(<{[", ")>}]"


class Function(NamedTuple):
    """As perf names it, so that one set of rules does for both; `symbol` is None where it has no name."""

    symbol: str | None
    module: str


def self_costs(lines: Iterable[str], name: str) -> Counter[Function]:
    """Instructions of each function without those of what it called. `name` is that of the file, for messages.

    Raises RunError where it is cut short or is not what callgrind writes: the sum has to be the total that it tells.
    """
    reading = _Reading()
    _read_whole(reading, lines, name)
    return reading.costs


def _read_whole(reading: _Reading, lines: Iterable[str], name: str) -> None:
    number = 0
    for number, line in enumerate(lines, 1):
        try:
            reading.read(line.strip())
        except (ValueError, IndexError) as error:
            raise RunError(f"{name}:{number}: not a profile of callgrind's: {error}") from error
    if not number:
        raise RunError(f"{name} is empty: valgrind was ended before it wrote what it had counted")
    if reading.total is None:
        raise RunError(f"{name} is cut short: it has no totals")
    if reading.total != reading.costs.total():
        raise RunError(
            f"{name} is not whole: its functions took {reading.costs.total()} instructions, its totals are "
            f"{reading.total}"
        )


Chain = tuple[str, ...]
"""Names of functions as valgrind has them: one, who called it, who called that, as far out as callgrind was told to."""

COMPRESSED: Final = "--compress-mangled=yes"
"""With this word callgrind writes the functions of a chain by their numbers; names alone have quotes in them too."""

_CHAIN: Final = re.compile(r"\(\d+\)(?:'\d+)?(?:'\(\d+\)(?:'\d+)?)*")
_ASKED_FOR: Final = "Trigger: Client Request: "


@dataclass(frozen=True)
class Chains:
    """What was counted by callgrind with `--separate-callers` and `COMPRESSED`, until it was asked for it.

    `word` is what the program said when it asked, None at its end. `costs` are instructions of the innermost function
    of each chain itself, `calls` how often it was called.
    """

    word: str | None
    costs: Counter[Chain]
    calls: Counter[Chain]


def chains(lines: Iterable[str], name: str) -> Chains:
    """As `self_costs`, by who called a function from where. Raises RunError likewise."""
    reading = _ChainReading()
    _read_whole(reading, lines, name)
    return Chains(reading.word, reading.chains, reading.calls)


class _Reading:
    """What was read so far, and what the next cost would be of."""

    def __init__(self) -> None:
        self.costs: Counter[Function] = Counter()
        self.total: int | None = None
        self._functions: dict[str, str] = {}
        self._objects: dict[str, str] = {}
        self._symbol: str | None = None
        self._module = ""
        self._function: Function | None = None
        self._subpositions = 1
        self._event: int | None = None
        self._of_call_or_jump = False

    def read(self, line: str) -> None:
        """Raises ValueError or IndexError where it is not of the format."""
        if not line or line[0] == "#":
            return
        if line[0] in _COST_BEGINS:
            # Of a call it is that of all that was called in turn, which those functions' own lines tell too.
            if not self._of_call_or_jump:
                self._cost(line.split())
            self._of_call_or_jump = False
        elif position := _POSITION.fullmatch(line):
            self._position(*position.groups())
        elif line.startswith(("calls=", "jump=", "jcnd=")):
            self._of_call_or_jump = True
        elif header := _HEADER.fullmatch(line):
            self._header(*header.groups())
        else:
            raise ValueError(f"{line[:80]!r} is no line of its format")

    def _position(self, spec: str, text: str) -> None:
        # What is called, and jumped to, is read for the names that its numbers get there.
        if spec in ("fn", "cfn", "jfn"):
            name = _named(text, self._functions)
            if spec == "fn":
                self._symbol, self._function = name, None
        elif spec in ("ob", "cob"):
            name = _named(text, self._objects)
            if spec == "ob":
                self._module, self._function = _base_name(name), None

    def _header(self, key: str, text: str) -> None:
        if key == "positions":
            self._subpositions = len(text.split())
        elif key == "events":
            self._event = text.split().index(EVENT)
        elif key == "totals":
            self.total = (self.total or 0) + self._of_event(text.split())

    def _cost(self, words: list[str]) -> None:
        if self._symbol is None:
            raise ValueError("a cost of no function")
        if self._function is None:
            self._function = Function(as_perf_names_it(self._symbol), self._module)
        self.costs[self._function] += self._of_event(words[self._subpositions :])

    def _of_event(self, costs: list[str]) -> int:
        if self._event is None:
            raise ValueError("it does not say what was counted")
        return _number(costs[self._event]) if len(costs) > self._event else 0  # zeros at the end are left out


class _ChainReading(_Reading):
    """The same, where functions are told apart by who called them."""

    def __init__(self) -> None:
        super().__init__()
        self.word: str | None = None
        self.chains: Counter[Chain] = Counter()
        self.calls: Counter[Chain] = Counter()
        self._chain: Chain = ()
        self._called: Chain = ()

    def read(self, line: str) -> None:
        if line.startswith("calls="):
            self.calls[self._called] += int(line.removeprefix("calls=").split()[0])
        super().read(line)

    def _position(self, spec: str, text: str) -> None:
        super()._position(spec, text)
        if spec in ("fn", "cfn"):
            chain = self._resolved(_named(text, self._functions))
            if spec == "fn":
                self._chain = chain
            else:
                self._called = chain

    def _header(self, key: str, text: str) -> None:
        super()._header(key, text)
        if key == "desc" and text.startswith(_ASKED_FOR):
            self.word = text.removeprefix(_ASKED_FOR)

    def _cost(self, words: list[str]) -> None:
        super()._cost(words)
        self.chains[self._chain] += self._of_event(words[self._subpositions :])

    def _resolved(self, name: str) -> Chain:
        if _CHAIN.fullmatch(name) is None:
            return (name,)
        return tuple(self._functions[number] for number in re.findall(r"\((\d+)\)", name))


def as_perf_names_it(name: str) -> str | None:
    """Without parameters, result and level of recursion, of which callgrind tells and perf does not."""
    name = _LEVEL_OF_RECURSION.sub("", name)
    if _NO_NAME.fullmatch(name):
        return None
    name = name.partition("@")[0] or name
    bare = _QUALIFIERS.sub("", _CLONE.sub("", name))
    head = bare[: _opening(bare)] if bare.endswith(")") else ""
    if not head:  # of C, or `(below main)`
        return name
    # Only functions made of templates have their result in front.
    return head[_after_result(head) :] if head.endswith(">") else head


def _opening(text: str) -> int:
    """Where the bracket opens that the last letter closes; 0 where none does."""
    depth = 0
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if not depth:
            return place
    return 0


def _after_result(text: str) -> int:
    depth = after = 0
    operator = re.search(r"\boperator\b", text)
    for place, letter in enumerate(text[: operator.start()] if operator else text):
        depth += (letter in _OPENS) - (letter in _CLOSES)
        if letter == " " and not depth:
            after = place + 1
    return after


def _named(text: str, known: dict[str, str]) -> str:
    """The name that a position has, or had when its number was first given. Raises ValueError."""
    compressed = _NAME.fullmatch(text)
    if compressed is None:
        return text
    number, name = compressed.groups()
    if name is not None:
        known[number] = name
    if number not in known:
        raise ValueError(f"({number}) was given no name")
    return known[number]


def _base_name(path: str) -> str:
    return "" if path == "???" else path.rpartition("/")[2]


def _number(text: str) -> int:
    return int(text, 16) if text.startswith("0x") else int(text)
