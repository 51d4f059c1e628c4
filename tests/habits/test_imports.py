"""Which room may import which, and why. A new arrow is a decision: it gets its line and its reason here."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "python" / "dyno"

# room -> the rooms that it may import, each with the reason why it must know it.
ARROWS: dict[str, dict[str, str]] = {
    "model": {},
    "stats": {},
    "study": {"model": "gives a validated Study"},
    "design": {
        "model": "takes a Study and runs, gives slots",
        "stats": "the rule that stops is the rule that reports",
    },
    "hosts": {"model": "raises its errors", "__init__": "dyno's own version is part of the environment"},
    "sql": {"model": "asks through an Endpoint, and its error fails a run"},
    "ddl": {"model": "tables as a study has them laid out"},
    "deployments": {"model": "errors", "hosts": "starts processes and containers, and looks at them"},
    "systems": {
        "model": "endpoints, units, errors",
        "deployments": "a server's processes start where it is deployed",
        "hosts": "a system's processes and files live on a host",
        "sql": "asks a server whether it is up and what it runs with",
        "ddl": "attests tables by the design that their statements are made of",
    },
    "workloads": {
        "ddl": "has the tables that it fills made as the study lays them out",
        "model": "endpoints, units, errors",
        "hosts": "a driver's files live on a host",
        "sql": "asks a server whether what a foreign driver says it stored is there",
    },
    "observers": {"model": "errors and options", "hosts": "a sampler is a process on a host"},
    "store": {"model": "what it keeps are runs and studies"},
    "lab": {
        "model": "carries out a Study",
        "design": "asks it which run is next",
        "hosts": "operates them",
        "deployments": "operates them",
        "systems": "operates them",
        "workloads": "operates them",
        "observers": "operates them",
        "store": "commits runs to it",
    },
    "analysis": {"model": "gives Findings", "stats": "computes with it"},
    "report": {
        "model": "shows Findings and computes no statistic",
        "__init__": "a page says which dyno wrote it",
    },
    "selfcheck": {
        "model": "gives a Selfcheck",
        "stats": "counts and ratios by the functions of real studies",
        "design": "stops its small studies by the rule of real ones",
        "hosts": "keeps what it found in the state folder",
        "lab": "runs its studies as real ones are run",
        "store": "reads their runs",
    },
    "probing": {
        "model": "makes a Study of a Study",
        "study": "puts the doses in",
        "lab": "asks which interventions can be made",
    },
    "progress": {"model": "shows runs", "design": "shows the state of a study", "lab": "listens to it"},
    "planning": {"model": "shows a Study", "design": "shows orders, the rule and what a pilot foretells"},
    "__main__": {"cli": "starts it"},
    "cli": {
        "model": "errors and outcomes",
        "study": "reads the study file",
        "design": "asks it how long, and what a pilot says",
        "hosts": "opens the host and the undo journal",
        "lab": "runs the study",
        "store": "opens results",
        "analysis": "analyses them",
        "report": "shows and writes findings",
        "progress": "chooses who listens",
        "planning": "shows plans",
        "probing": "makes the study of one cell",
        "selfcheck": "has the instrument look at itself",
        "__init__": "dyno's own version",
    },
}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_name(path: Path) -> str:
    parts = ("dyno", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(part for part in parts if part != "__init__")


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything of ours that a module imports: at its top, in functions, for types alone."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.split(".")[0] == "dyno")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: a relative import hides which room it comes from"
            if node.module and node.module.split(".")[0] == "dyno":
                yield from ((node.lineno, f"{node.module}.{alias.name}") for alias in node.names)


def room_named(name: str) -> str:
    room = name.split(".")[1]
    return room if (PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").exists() else "__init__"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_room_imports_only_the_rooms_that_it_may_know(path: Path) -> None:
    room = room_of(path)
    if room == "__init__":
        assert not list(imported(path)), "`import dyno` must cost nothing and know nothing"
        return
    allowed = {room, *ARROWS[room]}
    wrong = [f"{path}:{line} imports {name}" for line, name in imported(path) if room_named(name) not in allowed]
    assert not wrong, f"{room} may import {', '.join(sorted(allowed))} only"


def test_there_is_no_arrow_that_nobody_uses() -> None:
    used = {(room_of(path), room_named(name)) for path in modules() for _, name in imported(path)}
    # Kinds to come may use what those of today do not.
    spare = {("workloads", "hosts")}
    unused = {(room, to) for room, arrows in ARROWS.items() for to in arrows} - used - spare
    assert not unused


def test_every_room_has_its_line() -> None:
    assert {room_of(path) for path in modules()} - {"__init__"} == set(ARROWS)


def test_the_arrows_go_one_way_only() -> None:
    def reaches(room: str, seen: frozenset[str] = frozenset()) -> set[str]:
        nearer = set(ARROWS.get(room, {})) - seen
        return nearer.union(*(reaches(other, seen | nearer) for other in nearer)) if nearer else set()

    assert [room for room in ARROWS if room in reaches(room)] == []


# Found by the registry, as interventions are, and imported by nobody: one module a kind. The entry point is the user's.
FOUND = {"systems", "workloads", "observers", "deployments"}
ENTRY_POINTS = {
    "dyno.__main__",
    "dyno.study.reference",  # writes the tables of the reference page, which a test holds against the program
}


def is_a_kinds(path: Path) -> bool:
    return room_of(path) in FOUND or path.parent == PACKAGE / "hosts" / "interventions"


def test_there_is_no_module_that_nothing_imports() -> None:
    names = {name for path in modules() for _, name in imported(path)}
    names |= {name.rpartition(".")[0] for name in names}
    dead = [
        name
        for path in modules()
        if path.name != "__init__.py"
        and (name := module_name(path)) not in names | ENTRY_POINTS
        and not (is_a_kinds(path) and "kind = " in path.read_text())
    ]
    assert not dead


def test_no_command_loads_what_only_a_page_needs() -> None:
    # The plotting library takes longer to load than most commands take to run.
    loaded = "import sys, dyno.cli; print([name for name in ('altair', 'vl_convert', 'scipy') if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
