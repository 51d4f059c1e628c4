"""What the pages of the engine name is there: tests that would catch a breach, files, modules and other pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "docs/glass"
PAGES = sorted(FOLDER.glob("*.md"))
# Of what a page has in backticks, names of so many words are those of tests.
NAMED = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+){3,})`")
# Among invariants names of three words are too.
CATCHING = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+){2,})`")
TESTS = re.compile(r"\bfn ([a-z0-9_]+)\(")
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")
FILE = re.compile(r"`([\w./-]+\.(?:rs|py|md|yaml))`")
# Paths on a page are the repository's or, within the engine, its sources'.
PLACES = (ROOT, ROOT / "crates/glass/src")
# No test would see these, and the pages say so.
UNSEEN = "no test"


def named_functions() -> set[str]:
    sources = (ROOT / "crates").glob("*/*/**/*.rs")
    return {name for source in sources for name in TESTS.findall(source.read_text())}


FUNCTIONS = named_functions()
ON_A_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def invariants(page: Path) -> list[str]:
    _, _, rest = page.read_text().partition("\n## Invariants\n")
    section = rest.partition("\n## ")[0]
    return [" ".join(each.split()) for each in re.split(r"^\d+\. ", section, flags=re.MULTILINE)[1:]]


@ON_A_PAGE
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = NAMED.findall(page.read_text()) + [name for each in invariants(page) for name in CATCHING.findall(each)]
    assert [name for name in named if name not in FUNCTIONS] == []


@ON_A_PAGE
def test_every_invariant_says_what_would_catch_its_breach(page: Path) -> None:
    found = invariants(page)
    assert found or page.stem == "README", "the page has lost its invariants"
    silent = [each for each in found if not (CATCHING.search(each) or "`verify`" in each or UNSEEN in each.lower())]
    assert silent == []


@ON_A_PAGE
def test_every_page_and_file_that_is_named_exists(page: Path) -> None:
    text = page.read_text()
    links = [link for link in LINK.findall(text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).is_file()] == []
    assert [name for name in FILE.findall(text) if not any((place / name).is_file() for place in PLACES)] == []


def test_the_index_has_every_page_and_every_module_of_the_engine() -> None:
    index = (FOLDER / "README.md").read_text()
    pages = {link for link in LINK.findall(index) if "/" not in link}
    assert pages == {page.name for page in PAGES if page.stem != "README"}
    modules = re.findall(r"^(?:pub )?mod (\w+);", (ROOT / "crates/glass/src/lib.rs").read_text(), re.MULTILINE)
    assert "btree" in modules
    # Not components: what calls are counted by, and what all of them are made of.
    others = ("calls", "chain", "engine", "error", "ids")
    assert [name for name in modules if f"`{name}" not in index and name not in others] == []
