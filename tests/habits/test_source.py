"""Habits of the source that a reader can count on, each with its reason."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "dyno"
GENERATED = {".git", ".venv", "target", "results", "dist", "node_modules", "__pycache__"}

# Starting and ending processes is for hosts alone: everything that it starts is in the undo journal.
PROCESS_MODULES = {"subprocess", "multiprocessing", "pty", "concurrent.futures"}
PROCESS_CALLS = re.compile(
    r"kill|killpg|fork|forkpty|exec[lv]\w*|spawn\w+|posix_spawnp?|system|popen|setsid|wait\w*|pidfd_open"
)

# Waiting is by asking, with a limit. A sleep is here with the reason why there is nothing to ask.
SLEEPS = {"hosts/leftovers.py": "between two looks at what was killed or is still busy: neither can be waited for"}


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def every_text() -> Iterator[tuple[Path, str]]:
    """Every file of the repository that is text and was written by hand or locked by a tool."""
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if GENERATED.intersection(parts) or any(
            part.startswith(".") and part not in (".ci", ".github") for part in parts[:-1]
        ):
            continue
        if path.is_file() and path.stat().st_size < 2 * 2**20:
            data = path.read_bytes()
            if b"\0" not in data:
                yield path, data.decode(errors="replace")


@pytest.fixture(params=sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def source(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_only_hosts_starts_or_ends_processes(source: Path) -> None:
    if source.is_relative_to(PACKAGE / "hosts"):
        return
    wrong = []
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            wrong += [alias.name for alias in node.names if alias.name in PROCESS_MODULES]
        elif isinstance(node, ast.ImportFrom):
            wrong += [node.module for _ in [0] if node.module in PROCESS_MODULES]
            wrong += [alias.name for alias in node.names if node.module == "os" and PROCESS_CALLS.fullmatch(alias.name)]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
            wrong += [f"os.{node.attr}"] if PROCESS_CALLS.fullmatch(node.attr) else []
    assert not wrong


def test_nobody_waits_by_sleeping(source: Path) -> None:
    sleeps = [
        node
        for node in ast.walk(ast.parse(source.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr == "sleep")
        or (isinstance(node, ast.alias) and node.name == "sleep")
    ]
    assert bool(sleeps) == (str(source.relative_to(PACKAGE)) in SLEEPS)


def test_an_error_of_any_kind_is_caught_only_with_a_reason(source: Path) -> None:
    text = source.read_text()
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ExceptHandler):
            names = (
                {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)} if node.type else {"everything"}
            )
            if names & {"Exception", "BaseException", "everything"} and not _raises(node):
                line = lines[node.lineno - 1]
                assert re.search(r"# noqa: BLE001 - \w+ \w+", line), f"{source}:{node.lineno}: {line.strip()}"


def _raises(handler: ast.ExceptHandler) -> bool:
    return any(isinstance(node, ast.Raise) for node in handler.body)


def test_every_public_name_says_what_it_is(source: Path) -> None:
    tree = ast.parse(source.read_text())
    silent = [] if ast.get_docstring(tree) else [f"{source}:1"]

    def look(body: list[ast.stmt], inside: str) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not node.name.startswith(
                "_"
            ):
                if not ast.get_docstring(node):
                    silent.append(f"{source}:{node.lineno} {inside}{node.name}")
                if isinstance(node, ast.ClassDef):
                    look(node.body, f"{node.name}.")

    look(tree.body, "")
    assert not silent


def test_nothing_is_left_to_be_done_some_day() -> None:
    # Written in two parts, so that this file passes too.
    marks = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path, text in every_text()
        if path.name != "LICENSE"
        for number, line in enumerate(text.splitlines(), 1)
        if marks.search(line)
    ]
    assert not found


# A path of somebody's home works on one machine; an index or a mirror works in one network.
PRIVATE = {
    "a home folder": re.compile(r"(?<![\w.])/(?:home|Users)/[A-Za-z_]|(?<![\w.])/ro" + r"ot/"),
    "an index of packages": re.compile(r"--(?:extra-)?index-url|index-url\s*=|\breplace-with\s*=|^\s*\[source\.", re.M),
    "credentials": re.compile(r"https?://[^/\s:@]+:[^/\s@]+@"),
}


@pytest.mark.parametrize("what", sorted(PRIVATE))
def test_no_file_names_what_is_of_one_machine_or_network_only(what: str) -> None:
    here = Path(__file__)
    found = [str(path.relative_to(ROOT)) for path, text in every_text() if path != here and PRIVATE[what].search(text)]
    assert not found
