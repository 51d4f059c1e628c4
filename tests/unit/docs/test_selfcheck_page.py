"""Every key of a self-check is on its page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from dyno.model.selfcheck import Selfcheck

PAGE = (Path(__file__).parents[3] / "docs/reference/selfcheck.md").read_text()


def keys(model: type[BaseModel]) -> Iterator[str]:
    for name, field in model.model_fields.items():
        yield name
        for kind in (field.annotation, *get_args(field.annotation)):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield from keys(kind)


def test_every_key_is_on_the_page() -> None:
    known = set(keys(Selfcheck))
    assert {"slowdown", "truth", "kernel"} <= known
    assert [key for key in sorted(known) if f"`{key}`" not in PAGE] == []
