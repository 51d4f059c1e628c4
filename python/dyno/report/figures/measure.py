"""How wide text is, as the renderer measures it; to break it where room ends, and to hold it to its width elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import unescape
from typing import Any

import vl_convert

# Bundled with the renderer, so text is measured alike on every machine; the others have the same widths.
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

Text = tuple[str, float, str]  # what it says, its size in px, its weight

# What no document may hold, escaped or not (W3C, XML 1.0, section 2.2).
_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

_known: dict[Text, float] = {}  # most texts of a page, such as those of axes, are in several of its figures


def drawable(value: Any) -> Any:
    """The same with a mark in place of each character that no drawing may hold: the renderer ends the process for one.

    A study file is refused for them, but names may also come from a results folder that something else wrote.
    """
    if isinstance(value, str):
        return _NOT_IN_XML.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {drawable(key): drawable(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [drawable(each) for each in value]
    return value


def widths(texts: Sequence[Text]) -> list[float]:
    """The width of each in px."""
    asked = [text for text in dict.fromkeys(texts) if text not in _known]
    if asked:
        drawn = {
            "text": {"field": "0"}, "fontSize": {"field": "1"}, "fontWeight": {"field": "2"}, "font": {"value": FONT},
        }  # fmt: skip
        said = {"text": {"signal": "'w' + (datum.bounds.x2 - datum.bounds.x1)"}}
        spec = {
            "data": [{"name": "asked", "values": drawable(asked)}],
            "marks": [
                {"type": "text", "name": "drawn", "from": {"data": "asked"}, "encode": {"enter": drawn}},
                {"type": "text", "from": {"data": "drawn"}, "encode": {"enter": said}},
            ],
        }
        found = re.findall(r">w([0-9.e-]+)</text>", vl_convert.vega_to_svg(spec))
        _known.update(zip(asked, map(float, found[-len(asked) :]), strict=True))
    return [_known[text] for text in texts]


_PIECE = re.compile(r"[^ \-_/=:,.]*[ \-_/=:,.]|[^ \-_/=:,.]+")


def wrapped(texts: Sequence[str], room: float, size: float) -> list[list[str]]:
    """The lines of each, of at most `room` px: broken after a space or a mark, within a word that alone is wider."""
    # All texts at a time: measuring one takes as long as measuring ten.
    pieces = [_PIECE.findall(text) for text in texts]
    wide = {piece for piece, width in _of_pieces(pieces, size).items() if width > room}
    parts = [[part for piece in each for part in (piece if piece in wide else [piece])] for each in pieces]
    of_part = _of_pieces(parts, size)
    return [_lines(each, of_part, room) for each in parts]


def _of_pieces(pieces: Sequence[Sequence[str]], size: float) -> dict[str, float]:
    every = list(dict.fromkeys(piece for each in pieces for piece in each))
    # Between two strokes, since a space at an end is not measured.
    *within, strokes = widths([(f"|{piece}|", size, "normal") for piece in [*every, ""]])
    return {piece: width - strokes for piece, width in zip(every, within, strict=True)}


def _lines(parts: Sequence[str], of_part: Mapping[str, float], room: float) -> list[str]:
    lines, used = [""], 0.0
    for part in parts:
        if lines[-1] and used + of_part[part] > room:
            lines.append("")
            used = 0.0
        lines[-1] += part
        used += of_part[part]
    return [line.strip() for line in lines]


_TEXT = re.compile(r"<text([^>]*)>([^<]*)</text>")
_SEVERAL = re.compile(r"<text([^>]*)>((?:<tspan[^>]*>[^<]*</tspan>)+)</text>")
_LINE = re.compile(r'<tspan(?: x="0" dy="([\d.]+)")?>([^<]*)</tspan>')
_TYPE = re.compile(r'font-size="([\d.]+)px"(?: font-weight="(\w+)")?')


def held(svg: str) -> str:
    """The drawing with every line of text held to the width for which room was made.

    Where a reader's machine has none of the fonts, another takes their place: a wider one would run over what stands
    beside it, and be cut at the edges.
    """
    svg = _SEVERAL.sub(_apart, svg)
    texts = [(unescape(content), *_type(attributes)) for attributes, content in _TEXT.findall(svg)]
    width = iter(widths(texts))
    return _TEXT.sub(lambda found: _held(found[1], found[2], next(width)), svg)


def _apart(text: re.Match[str]) -> str:
    """A text of several lines as so many texts, since not every program takes a width for a part of one."""
    drawn, down = "", 0.0
    for shift, content in _LINE.findall(text[2]):
        down += float(shift or 0)
        drawn += f'<text{text[1]} y="{down:g}">{content}</text>'
    return drawn


def _type(attributes: str) -> tuple[float, str]:
    found = _TYPE.search(attributes)
    assert found is not None, "the renderer gives each text its size"
    return float(found[1]), found[2] or "normal"


def _held(attributes: str, content: str, width: float) -> str:
    return f'<text{attributes} textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs">{content}</text>'
