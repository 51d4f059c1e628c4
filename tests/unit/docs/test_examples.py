"""Every example in the documentation works."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from dyno.cli import check_file
from dyno.observers.base import Observer
from dyno.systems.base import System
from dyno.workloads.base import Workload

ROOT = Path(__file__).parents[3]
YAML = re.compile(r"```yaml\n((?:#[^\n]*\n)*study: .*?)```", re.DOTALL)
EXAMPLE = re.compile(r"<!-- example: (\w+)/(\w+)\.py -->\n```python\n(.*?)```", re.DOTALL)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_whole_study_on_a_page_is_good(page: Path, tmp_path: Path) -> None:
    studies = YAML.findall(page.read_text())
    if page in (ROOT / "README.md", ROOT / "docs/reference/study-file.md"):
        assert studies, "the page has lost its example"
    for text in studies:
        path = tmp_path / "example.yaml"
        path.write_text(text)
        check_file(path)


STUDIES = sorted(
    path for path in (ROOT / "studies").rglob("*.yaml") if path.parent.name not in ("published", "queries")
)


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.stem)
def test_every_study_that_we_ship_is_good_at_every_scale(study: Path) -> None:
    check_file(study)


@pytest.mark.parametrize(("room", "name", "source"), EXAMPLE.findall((ROOT / "CONTRIBUTING.md").read_text()))
def test_every_kind_shown_to_contributors_is_a_whole_kind(room: str, name: str, source: str) -> None:
    module = types.ModuleType(f"example_{name}")
    sys.modules[module.__name__] = module
    try:
        exec(compile(source, f"{room}/{name}.py", "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]
    base = {"systems": System, "workloads": Workload, "observers": Observer}[room]
    kinds = [
        each for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, base) and each.__module__ == module.__name__
    ]  # fmt: skip
    assert [kind.kind for kind in kinds] == [name]
    assert not kinds[0].__abstractmethods__
    assert kinds[0].Options.model_json_schema()


def test_there_is_an_example_for_each_room() -> None:
    rooms = {room for room, _, _ in EXAMPLE.findall((ROOT / "CONTRIBUTING.md").read_text())}
    assert rooms == {"systems", "workloads", "observers"}
