"""Kinds are found by being there: a module in the room, or an entry point of another package."""

from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from dyno.lab import Rooms
from dyno.model import registry
from dyno.model.base import UserError
from dyno.observers.null import NullObserver
from dyno.systems.base import System
from dyno.systems.null import NullSystem


class Foreign(NullSystem):
    kind = "foreign"


class TakesAName(NullSystem):
    kind = "sqlite"


class WithoutKind(System[Any]):
    def prepare(self, limit: float) -> None: ...
    def start(self, run: int, limit: float) -> None: ...
    def ready(self, limit: float) -> Any: ...
    def stop(self, limit: float) -> None: ...


class Unfinished(System[Any]):
    kind = "unfinished"
    backend = "null"
    Options = NullSystem.Options


def broken() -> None:
    raise AssertionError("entry points are loaded, not called")


def with_entry_points(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> None:
    def installed(group: str) -> list[EntryPoint]:
        return [entry for entry in entries if entry.group == group]

    monkeypatch.setattr(registry, "entry_points", installed)


def entry(name: str, room: str = "dyno.systems", value: str | None = None) -> EntryPoint:
    return EntryPoint(name=name, value=value or f"{__name__}:{name}", group=room)


def test_every_room_has_a_null_kind_that_nobody_listed() -> None:
    rooms = Rooms.open()
    assert rooms.systems["null"] is NullSystem
    assert {"null"} <= rooms.workloads.keys()
    assert rooms.observers["null"] is NullObserver


def test_the_kind_of_another_package_is_found_through_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    with_entry_points(monkeypatch, entry("Foreign"))
    rooms = Rooms.open()
    assert rooms.systems["foreign"].__name__ == "Foreign"
    assert rooms.kinds().systems["foreign"] is Foreign.Options


class Node(NullSystem):
    """Part of another kind: it has its name from its base."""


def test_a_class_without_a_name_of_its_own_does_not_take_that_of_its_base(monkeypatch: pytest.MonkeyPatch) -> None:
    # A cluster's node is a server of a kind that stands in another module, and was taken for that kind.
    monkeypatch.setattr(Node, "__module__", NullSystem.__module__)
    monkeypatch.setattr(sys.modules[NullSystem.__module__], "Node", Node, raising=False)
    assert Rooms.open().systems["null"] is NullSystem


def test_an_entry_point_that_is_installed_twice_is_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    with_entry_points(monkeypatch, entry("Foreign"), entry("Foreign"))
    assert "foreign" in Rooms.open().systems


def test_an_entry_point_of_one_room_is_not_looked_at_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with_entry_points(monkeypatch, entry("Foreign"))
    assert "foreign" not in Rooms.open().workloads


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (entry("TakesAName"), "takes the name of .*sqlite"),
        (entry("Missing"), "cannot be loaded"),
        (entry("x", value="no_such_module_anywhere:Kind"), "cannot be loaded: No module named"),
        (entry("broken"), "is not a System"),
        (entry("x", value="dyno.observers.null:NullObserver"), "is not a System"),
        (entry("WithoutKind"), "lacks Options, backend, kind"),
        (entry("Unfinished"), "lacks prepare, ready, start, stop"),
    ],
)
def test_a_kind_that_cannot_be_used_is_an_error_that_names_its_entry_point(
    broken: EntryPoint, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_entry_points(monkeypatch, broken)
    with pytest.raises(UserError, match=message) as error:
        Rooms.open()
    assert broken.value in str(error.value)


def test_a_module_whose_import_raises_is_an_error_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    class Raising(EntryPoint):
        def load(self) -> Any:
            raise RuntimeError("wrong version of everything")

    with_entry_points(monkeypatch, Raising(name="x", value="a:b", group="dyno.systems"))
    with pytest.raises(UserError, match="wrong version of everything"):
        Rooms.open()
