"""Profiles of callgrind, written in every way that the format allows, are read as what was written."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from dyno.lab.callgrind import Function, self_costs
from dyno.model.base import RunError

FUNCTIONS = ("main", "btr_cur_search", "log_write", "(below main)", "_dl_open")
OBJECTS = ("/usr/sbin/server", "/lib/libc.so.6", "server-2")
FILES = ("???", "a.c", "/include/b.h")


@dataclass(frozen=True)
class Block:
    """Costs of a function: each its line, its cost, and whether it is that of a call."""

    function: str
    module: str
    costs: tuple[tuple[int, int, bool], ...]


blocks = st.builds(
    Block,
    st.sampled_from(FUNCTIONS),
    st.sampled_from(OBJECTS),
    st.lists(st.tuples(st.integers(0, 999), st.integers(0, 10**13), st.booleans()), max_size=6).map(tuple),
)


class Writer:
    """Writes a profile. What can be said in several ways is drawn."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw
        self.lines: list[str] = []
        self.instr = self.draw(st.booleans())
        self.before = [0, 0]
        self.events = self.draw(st.sampled_from((("Ir",), ("Dr", "Ir"), ("Ir", "Bc", "Bi"))))
        self._numbers: dict[tuple[str, str], int] = {}

    def name(self, spec: str, name: str, of: str) -> None:
        """As it is, or with a number, by which alone it may then be called."""
        known = self._numbers.get((of, name))
        way = self.draw(st.sampled_from(("plain", "numbered", "number")))
        if way == "plain":
            text = name
        elif way == "numbered" or known is None:
            # A number may be given anew.
            number = self.draw(st.integers(1, 9))
            self._numbers = {key: each for key, each in self._numbers.items() if key[0] != of or each != number}
            self._numbers[of, name] = number
            text = f"({number}) {name}"
        else:
            text = f"({known})"
        self.lines.append(f"{spec}={text}")

    def cost(self, line: int, cost: int | None) -> None:
        """Of a line; of None there is none at all, as after a jump."""
        at = [line * 16, line] if self.instr else [line]
        words = []
        for place, value in enumerate(at):
            step = value - self.before[place]
            ways = [str(value), hex(value), f"{step:+d}"] + ["*"] * (step == 0)
            words.append(self.draw(st.sampled_from(ways)))
        self.before[: len(at)] = at
        if cost is not None:
            counts = [str(cost) if event == "Ir" else "7" for event in self.events]
            if cost == 0 and self.events[-1] == "Ir" and self.draw(st.booleans()):
                counts.pop()
            words += counts
        self.lines.append(" ".join(words))

    def head(self) -> None:
        """Before the costs."""
        self.lines += ["# callgrind format", "version: 1", "pid: 7", "cmd:  server --x=y", "desc: Trigger: end"]
        self.lines += [f"positions: {'instr line' if self.instr else 'line'}", f"events: {' '.join(self.events)}", ""]

    def end(self, total: int) -> str:
        """The whole text."""
        counts = (str(total) if event == "Ir" else "7" for event in self.events)
        return "\n".join([*self.lines, f"totals: {' '.join(counts)}", ""])


def written(data: st.DataObject, of: list[Block]) -> tuple[str, Counter[Function]]:
    writer, expected = Writer(data), Counter[Function]()
    writer.head()
    for block in of:
        writer.name("ob", block.module, "object")
        writer.name("fl", data.draw(st.sampled_from(FILES)), "file")
        writer.name("fn", block.function, "function")
        function = Function(block.function, block.module.rpartition("/")[2])
        for line, cost, of_call in block.costs:
            match data.draw(st.sampled_from(("", "fi", "fe", "jump"))):
                case "jump":
                    writer.name("jfn", data.draw(st.sampled_from(FUNCTIONS)), "function")
                    writer.lines.append("jcnd=3/4 +1")
                    writer.cost(line, None)
                case "fi" | "fe" as spec:
                    writer.name(spec, data.draw(st.sampled_from(FILES)), "file")
            if of_call:
                writer.name("cob", data.draw(st.sampled_from(OBJECTS)), "object")
                writer.name("cfi", data.draw(st.sampled_from(FILES)), "file")
                writer.name("cfn", data.draw(st.sampled_from(FUNCTIONS)), "function")
                writer.lines.append("calls=2 +9")
            else:
                expected[function] += cost
            writer.cost(line, cost)
    return writer.end(expected.total()), expected


@given(st.data(), st.lists(blocks, max_size=6))
def test_the_costs_that_were_written_are_read(data: st.DataObject, of: list[Block]) -> None:
    text, expected = written(data, of)
    assert self_costs(text.splitlines(), "profile") == expected


@given(st.data(), st.lists(blocks, min_size=1, max_size=6))
def test_one_that_is_cut_short_is_refused_or_has_lost_nothing(data: st.DataObject, of: list[Block]) -> None:
    text, expected = written(data, of)
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    found = None
    with suppress(RunError):  # anything else is no answer
        found = self_costs(cut.splitlines(), "profile")
    assert found in (None, expected)
