"""A control group for a system and its driver together, so that what limits one limits both.

A limit on the system alone would leave the driver all the more, and show what the system does with less of a resource
while its clients have more of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dyno.hosts.cgroups import Hierarchy, controller
from dyno.hosts.confinement import Confinement
from dyno.hosts.undo import Change, UndoJournal
from dyno.model.base import RunError


@dataclass(frozen=True)
class Joint:
    """The group: where its controllers' files are, and by which version's names."""

    name: str
    hierarchies: dict[str, Hierarchy]

    @property
    def procs(self) -> tuple[Path, ...]:
        """What a process joins it by."""
        tops = dict.fromkeys(hierarchy.top for hierarchy in self.hierarchies.values())
        return tuple(top / self.name / "cgroup.procs" for top in tops)

    @property
    def confinement(self) -> Confinement:
        """What holds a process to it."""
        return Confinement(self.procs)

    def version(self, controller: str) -> int:
        """Of the files of a controller."""
        return self.hierarchies[controller].version

    def folder(self, controller: str) -> Path:
        """Where those are."""
        return self.hierarchies[controller].top / self.name

    def write(self, controller: str, file: str, value: str) -> None:
        """Set a limit. Raises RunError."""
        try:
            (self.folder(controller) / file).write_text(value)
        except OSError as error:
            raise RunError(f"cannot set {file} of the joint control group to {value}: {error.strerror}") from error


def make(undo: UndoJournal, controllers: Iterable[str]) -> Joint:
    """Make the group; it goes with the journal, and so do its limits and what is left in it. Raises RunError."""
    if os.geteuid() != 0:
        raise RunError("a control group of system and driver together needs root")
    found: dict[str, Hierarchy] = {}
    for name in dict.fromkeys(controllers):
        hierarchy = controller(name)
        if hierarchy is None:
            raise RunError(f"this kernel offers no control groups for {name}")
        found[name] = hierarchy
    joint = Joint(f"dyno-{undo.token}-joint", found)
    for name, hierarchy in found.items():
        if hierarchy.version == 2:
            _enable(undo, hierarchy.top, name)
    change = undo.will(Change("cgroup", {"name": joint.name}))
    try:
        for procs in joint.procs:
            procs.parent.mkdir()
    except OSError as error:
        undo.undo(change)
        raise RunError(f"cannot make the control group {error.filename}: {error.strerror}") from error
    return joint


def _enable(undo: UndoJournal, top: Path, name: str) -> None:
    if name in (top / "cgroup.subtree_control").read_text().split():
        return
    change = undo.will(Change("cgroup-controllers", {"folder": str(top), "names": [name]}))
    try:
        (top / "cgroup.subtree_control").write_text(f"+{name}")
    except OSError as error:
        undo.undo(change)
        raise RunError(f"cannot enable the controller {name} in {top}: {error.strerror}") from error
