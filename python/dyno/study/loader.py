"""YAML text -> located tree, with the scalars of YAML 1.2's core schema and limits that no study comes near.

Only the parser's events are taken from PyYAML; its constructors follow YAML 1.1, where `off` is false, `1:30` is 90 and
a later key silently replaces an earlier one.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from dyno.model.base import Scalar
from dyno.study.errors import Place, Problem, StudyError, did_you_mean, shown
from dyno.study.tree import MAX_DEPTH, Branch, Entry, Items, Leaf, Node, height

MAX_BYTES = 1024 * 1024
MAX_NODES = 100_000
_MAX_INTEGER = 2**64 - 1
_MIN_INTEGER = -(2**63)

# libyaml's parser is ten times as fast; a PyYAML built without it still works.
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULL = {"", "~", "null", "Null", "NULL"}
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+")
_INTEGERS = {10: re.compile(r"[-+]?[0-9]+"), 8: re.compile(r"0o[0-7]+"), 16: re.compile(r"0x[0-9a-fA-F]+")}
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_A_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def read(path: Path) -> bytes:
    """The bytes of a study file. Raises StudyError for what is no readable, regular file of a sensible size."""
    place = Place(str(path))
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer that may never come.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISDIR(mode):
                raise StudyError(Problem(place, "", "is a directory; name the study file within it"))
            if not stat.S_ISREG(mode):
                raise StudyError(Problem(place, "", "is not a regular file; a study is read from a file"))
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                data = file.read(MAX_BYTES + 1)
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise StudyError(Problem(place, "", f"no such file{_did_you_mean_file(path)}")) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise StudyError(Problem(place, "", f"cannot be read: {reason}")) from None
    if len(data) > MAX_BYTES:
        raise StudyError(Problem(place, "", "is larger than 1 MiB; no study is, so this is probably another file"))
    return data


def parse_file(data: bytes, source: str) -> Branch:
    """The tree of a study file's bytes. Raises StudyError."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        problem = f"byte {error.start + 1} of the file is not UTF-8; save the file as UTF-8"
        raise StudyError(Problem(Place(source, line), "", problem)) from None
    node = _Composer(text.removeprefix("\ufeff"), source, has_lines=True).document()
    if node is None:
        raise StudyError(Problem(Place(source, 1), "", "is empty; a study has study, question, system and workload"))
    if not isinstance(node, Branch):
        text = f"should be a mapping of keys, not {_what(node)}; begin with 'study: name'"
        raise StudyError(Problem(node.place, "", text))
    return node


def parse_value(text: str, source: str) -> Node:
    """The tree of a `--set`'s value, by the same rules. Raises StudyError."""
    node = _Composer(text, source, has_lines=False).document()
    return Leaf(None, Place(source)) if node is None else node


class _Composer:
    """Builds the tree from the parser's events, counting as it goes."""

    def __init__(self, text: str, source: str, *, has_lines: bool) -> None:
        self._source = source
        self._has_lines = has_lines
        self._anchors: dict[str, tuple[Node, int, int]] = {}  # the node, how many values it stands for, its depth
        self._open: set[str] = set()
        self._count = 0
        bad = _NOT_TEXT.search(text)
        if bad is not None:
            place = Place(source, text.count("\n", 0, bad.start()) + 1) if has_lines else Place(source)
            problem = f"character U+{ord(bad.group()):04X} is not allowed in YAML; remove it"
            raise StudyError(Problem(place, "", problem))
        self._events = self._parse(text)

    def document(self) -> Node | None:
        """The one document, or None where there is none."""
        next(self._events)  # the start of the stream
        event = next(self._events)
        if isinstance(event, yaml.StreamEndEvent):
            return None
        node = self._node(next(self._events), depth=1)
        next(self._events)  # the end of the document
        event = next(self._events)
        if not isinstance(event, yaml.StreamEndEvent):
            raise self._error(event, "a second YAML document begins here; write one study a file")
        if isinstance(node, Leaf) and node.value is None:
            return None
        return node

    def _parse(self, text: str) -> Iterator[Any]:
        try:
            yield from yaml.parse(text, Loader=_LOADER)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            said = ": ".join(part for part in (error.context, error.problem) if part)
            line = text.splitlines()[mark.line] if mark is not None and mark.line < len(text.splitlines()) else ""
            raise StudyError(Problem(self._place(mark), "", f"not valid YAML: {said}{_remedy(said, line)}")) from None
        except (yaml.YAMLError, ValueError, OverflowError) as error:
            raise StudyError(Problem(self._place(None), "", f"not valid YAML: {error}")) from None

    def _place(self, mark: Any) -> Place:
        if not self._has_lines:
            return Place(self._source)
        return Place(self._source, 1 if mark is None else mark.line + 1)

    def _error(self, event: Any, text: str) -> StudyError:
        return StudyError(Problem(self._place(event.start_mark), "", text))

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, depth)
        self._grow(event, 1)
        if event.tag is not None:
            tag = event.tag.replace("tag:yaml.org,2002:", "!!")
            raise self._error(event, f"the tag {shown(tag)} is not taken; write the value without it")
        if depth > MAX_DEPTH:
            raise self._error(event, f"nested more than {MAX_DEPTH} deep; no study is, so look for a bracket too many")
        if event.anchor is None:
            return self._content(event, depth)
        before = self._count
        self._open.add(event.anchor)
        node = self._content(event, depth)
        self._open.discard(event.anchor)
        self._anchors[event.anchor] = (node, self._count - before + 1, height(node))
        return node

    def _content(self, event: Any, depth: int) -> Node:
        place = self._place(event.start_mark)
        if isinstance(event, yaml.ScalarEvent):
            return Leaf(self._plain(event) if event.implicit[0] else self._quoted(event), place)
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
                items.append(self._node(event, depth + 1))
            return Items(tuple(items), place)
        entries: dict[str, Entry] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._key(event, depth)
            key_place = self._place(event.start_mark)
            if key in entries:
                first = entries[key].key_place.line
                also = f", also on line {first}" if first else ""
                raise StudyError(Problem(key_place, key, f"this key is written twice{also}; keep one of them"))
            value = next(self._events)
            node = self._node(value, depth + 1)
            if key.rpartition(".")[2] == "kind" and isinstance(value, yaml.ScalarEvent) and value.value == "null":
                node = Leaf("null", node.place)  # `kind: null` asks for the null kind, and means nothing else
            entries[key] = Entry(key_place, node)
        return Branch(entries, place)

    def _key(self, event: Any, depth: int) -> str:
        node = self._node(event, depth + 1)
        if not isinstance(node, Leaf):
            raise self._error(event, f"a key should be a word, not {_what(node)}")
        if not isinstance(node.value, str):
            raise self._error(event, f"the key {shown(node.value)} is not text; quote it")
        if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and node.value == "<<":
            raise self._error(event, "the merge key '<<' is not part of YAML 1.2; write the keys out")
        return node.value

    def _alias(self, event: Any, depth: int) -> Node:
        if event.anchor in self._open:
            raise self._error(event, f"the alias *{event.anchor} stands within what it refers to; write the value out")
        if event.anchor not in self._anchors:
            known = sorted(self._anchors)
            raise self._error(event, f"no anchor &{event.anchor} stands above{did_you_mean(event.anchor, known)}")
        node, count, levels = self._anchors[event.anchor]
        self._grow(event, count)
        if depth + levels > MAX_DEPTH:
            raise self._error(event, f"nested more than {MAX_DEPTH} deep once the alias is filled in")
        # Wrong use of an alias is put right where it is used; what stands within it, where it was written.
        return replace(node, place=self._place(event.start_mark))

    def _grow(self, event: Any, by: int) -> None:
        self._count += by
        if self._count > MAX_NODES:
            raise self._error(event, f"more than {MAX_NODES:,} values once aliases are filled in; no study has as many")

    def _quoted(self, event: Any) -> str:
        text = str(event.value)
        bad = _NOT_TEXT.search(text)
        if bad is not None:
            raise self._error(event, f"{shown(text)} holds the character U+{ord(bad.group()):04X}; remove it")
        return text

    def _plain(self, event: Any) -> Scalar | None:
        text = str(event.value)
        if text in _NULL:
            return None
        if text in _BOOL:
            return _BOOL[text]
        if _NOT_A_NUMBER.fullmatch(text):
            raise self._error(event, f"{text} is not a quantity; write a finite number")
        if _LEADING_ZERO.fullmatch(text):
            raise self._error(event, f"{shown(text)} begins with 0, which some read as octal; drop the 0, or quote it")
        base = next((base for base, pattern in _INTEGERS.items() if pattern.fullmatch(text)), None)
        if base is not None:
            # Python refuses to convert thousands of digits, so their number is looked at first.
            value = int(text, base) if len(text) <= 80 else _MAX_INTEGER + 1
            if not _MIN_INTEGER <= value <= _MAX_INTEGER:
                raise self._error(event, f"{shown(text)} is too large a number; quote it if it is text")
            return value
        if _FLOAT.fullmatch(text):
            number = float(text)
            if not math.isfinite(number):
                raise self._error(event, f"{shown(text)} is too large a number; quote it if it is text")
            return number
        return text


def _remedy(said: str, line: str) -> str:
    """What most often is behind the parser's words, from the line at which it gave up."""
    if "\\t" in said or " tab " in said or ("\t" in line and "start any token" in said):
        return "; indent with spaces, not tabs"
    if "flow mapping" in said and "${" in line:
        return '; within braces, quote "${...}"'
    if re.search(r"[:{,\[-]\s*>", line) and ("block scalar" in said or "start any token" in said):
        return "; quote a text that begins with '>'"
    if "mapping values are not allowed" in said:
        return "; quote a text that has ': ' in it"
    return ""


def _what(node: Node) -> str:
    return {Leaf: "a single value", Items: "a list", Branch: "a mapping"}[type(node)]


def _did_you_mean_file(path: Path) -> str:
    try:
        kinds = (".yaml", ".yml") if path.suffix in (".yaml", ".yml") else (path.suffix,)
        siblings = [file.name for file in path.parent.iterdir() if file.suffix in kinds]
    except (OSError, ValueError):
        return ""
    return did_you_mean(path.name, siblings)
