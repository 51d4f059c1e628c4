"""A YAML file, and those that it names -> a validated `Study`.

Every message about configuration comes from here; nothing here runs anything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

from dyno.model.study import Kinds, Study
from dyno.study.build import at_scale, build, scale_names
from dyno.study.document import DEFAULT_SCALE
from dyno.study.errors import Place, Problem, StudyError, shown
from dyno.study.interleave import interleave
from dyno.study.interventions import intervene
from dyno.study.loader import parse_file, parse_value, read
from dyno.study.published import attached
from dyno.study.schema import json_schema
from dyno.study.tree import Branch, Entry, put, split_key

__all__ = ["StudyError", "attached", "check", "interleave", "intervene", "json_schema", "load"]


def load(path: Path, kinds: Kinds, *, scale: str = DEFAULT_SCALE, overrides: Sequence[str] = ()) -> Study:
    """The study of a file at one scale, with `key=value` overrides on top. Raises StudyError."""
    data = read(path)
    return _study(parse_file(data, str(path)), data, path, kinds, scale, overrides)


def check(path: Path, kinds: Kinds, *, scale: str | None = None, overrides: Sequence[str] = ()) -> Study:
    """As `load`, but every scale that the file declares must hold where none is given. Raises StudyError."""
    data = read(path)
    root = parse_file(data, str(path))
    study = _study(root, data, path, kinds, scale or DEFAULT_SCALE, overrides)
    others = scale_names(root, []) if scale is None else []
    for name in others:
        if name != DEFAULT_SCALE:
            try:
                _study(root, data, path, kinds, name, overrides)
            except StudyError as error:
                # The rest of the file is sound at the default scale, so the scale is part of what is wrong.
                found = error.problem
                text = f"{found.text} (at scale {shown(name)})"
                raise StudyError(Problem(found.place, found.key, text), error.more) from None
    return study


def _study(root: Branch, data: bytes, path: Path, kinds: Kinds, scale: str, overrides: Sequence[str]) -> Study:
    tree = at_scale(root, scale)
    for override in overrides:
        tree = _with_override(tree, override)
    checksum = hashlib.sha256(data).hexdigest()
    study = build(tree, kinds, scale=scale, source_sha256=checksum, folder=path.parent, declared=root)
    return study.model_copy(update={"overrides": tuple(overrides)})


def _with_override(root: Branch, override: str) -> Branch:
    source = f"--set {override}"
    place = Place(source)
    key, equals, value = override.partition("=")
    if not equals:
        raise StudyError(Problem(place, "", "has no value; write --set key=value"))
    steps = split_key(key, place)
    if steps[0] == "scales":
        raise StudyError(Problem(place, key, "scales cannot be set; choose one with --scale, and set other keys"))
    return put(root, steps, Entry(place, parse_value(value, source)))
