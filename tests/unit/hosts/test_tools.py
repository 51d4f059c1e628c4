"""Getting tools of others: built once, named by version, and what is said where that fails."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from dyno.hosts import tools
from dyno.hosts.tools import GoSuite
from dyno.model.base import UserError

TOOL = GoSuite("some-tool", "example.invalid/some/cmd/some-tool", "v1.2.3", "for tests")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dyno" / "tools"


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Go that writes down what it is asked, and builds a file; `fail` in its folder makes it fail."""
    folder = tmp_path / "bin"
    folder.mkdir()
    script = (
        f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\n'
        f'if [ -e {tmp_path}/fail ]; then echo one >&2; echo "no such module" >&2; exit 1; fi\n'
        'test "$1" = build || exit 0; test -f go.mod || exit 1; into=$3; shift 3\n'
        'case $into in */) mkdir "$into"; for each in "$@"; do echo "$each" >"$into${each##*/}"; done;;\n'
        '*) echo built >"$into";; esac; chmod -R 755 "$into"\n'
    )
    (folder / "go").write_text(script)
    (folder / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path


def asked(folder: Path) -> list[str]:
    return (folder / "asked").read_text().splitlines()


def test_a_tool_is_built_once_in_the_version_that_is_named(go: Path, cache: Path) -> None:
    assert tools.installed("some-tool") is None
    assert TOOL.get() == cache / "some-tool"
    assert tools.installed("some-tool") == "v1.2.3"
    assert asked(go)[0] == "get example.invalid/some/cmd/some-tool@v1.2.3"
    assert len(asked(go)) == 2
    TOOL.get()
    assert len(asked(go)) == 2, "it was built again"


def test_another_version_is_built_anew(go: Path, cache: Path) -> None:
    TOOL.get()
    GoSuite(TOOL.name, TOOL.package, "v1.2.4", TOOL.what).get()
    assert tools.installed("some-tool") == "v1.2.4"


def test_a_build_that_fails_is_told_with_its_command_and_words_and_leaves_nothing(go: Path, cache: Path) -> None:
    (go / "fail").touch()
    with pytest.raises(UserError, match=r"go get example.*` ended with status 1: one / no such module"):
        TOOL.get()
    assert tools.installed("some-tool") is None
    assert not cache.exists()


def test_a_missing_go_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(UserError, match="cannot build some-tool: Go is missing"):
        TOOL.get()


def test_a_tool_without_its_program_is_not_there(go: Path, cache: Path) -> None:
    TOOL.get()
    (cache / "some-tool").unlink()
    assert tools.installed("some-tool") is None


SUITE = GoSuite("suite", "example.invalid/cmd", "v0.1.0", "for tests", ("one", "two"))


def test_a_suite_is_a_folder_of_programs_with_their_checksums(go: Path, cache: Path) -> None:
    assert SUITE.installed() is None
    assert SUITE.get() == cache / "suite"
    assert SUITE.installed() == "v0.1.0"
    assert asked(go)[0] == "get example.invalid/cmd/one@v0.1.0 example.invalid/cmd/two@v0.1.0"
    assert SUITE.program("two").read_text() == "example.invalid/cmd/two\n"
    text = b"example.invalid/cmd/one\n"
    assert SUITE.checksums()["one"] == hashlib.sha256(text).hexdigest()
    SUITE.get()
    assert len(asked(go)) == 2, "it was built again"


def test_a_suite_that_lacks_a_program_is_not_there_and_is_built_anew(go: Path, cache: Path) -> None:
    SUITE.get()
    SUITE.program("one").unlink()
    assert SUITE.installed() is None
    SUITE.get()
    assert SUITE.installed() == "v0.1.0"


def test_a_program_that_a_suite_lacks_is_told_with_those_that_it_has() -> None:
    with pytest.raises(KeyError, match="has no program three; there are one, two"):
        SUITE.program("three")
