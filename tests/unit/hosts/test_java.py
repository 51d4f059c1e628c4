"""Getting what comes by Maven: once, and the very file that is known."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from dyno.hosts import java
from dyno.hosts.java import Jar
from dyno.model.base import UserError

CONTENT = b"a jar\n"
JAR = Jar("thing", "org.example", "thing", "1.2", hashlib.sha256(CONTENT).hexdigest(), "for tests")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dyno" / "tools"


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Maven that writes down what it is asked; `fail` in its folder makes it fail, `nothing` leave no file."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "mvn").write_text(
        f'#!/bin/sh\necho "$@" >>{tmp_path}/asked\n'
        f"if [ -e {tmp_path}/fail ]; then echo '[INFO] x'; echo '[ERROR] no such artifact'; exit 1; fi\n"
        f"[ -e {tmp_path}/nothing ] && exit 0\n"
        'for word in "$@"; do case "$word" in -DoutputDirectory=*) out=${word#*=};; esac; done\n'
        'echo "a jar" >"$out/thing-1.2.jar"\n'
    )
    (folder / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return tmp_path


def test_it_is_fetched_once_in_the_version_that_is_named(maven: Path, cache: Path) -> None:
    assert JAR.installed() is None
    assert JAR.get() == cache / "thing-1.2.jar"
    assert JAR.installed() == "1.2"
    JAR.get()
    (asked,) = (maven / "asked").read_text().splitlines()
    assert "-Dartifact=org.example:thing:1.2:jar" in asked
    assert [path.name for path in cache.iterdir()] == ["thing-1.2.jar"]


def test_another_file_under_its_name_is_refused_and_not_kept(maven: Path, cache: Path) -> None:
    other = replace(JAR, sha256="0" * 64)
    with pytest.raises(UserError, match=f"cannot get thing: .* has the SHA-256 {JAR.sha256}, not 0000"):
        other.get()
    assert other.installed() is None
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("fail", r"mvn .*` ended with status 1: no such artifact"),
        ("nothing", "cannot get thing: Maven left no thing-1.2.jar"),
    ],
)
def test_what_maven_could_not_do_is_told(how: str, said: str, maven: Path, cache: Path) -> None:
    (maven / how).touch()
    with pytest.raises(UserError, match=said):
        JAR.get()
    assert list(cache.iterdir()) == []


def test_a_missing_maven_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    with pytest.raises(UserError, match="cannot get thing: Maven is missing"):
        JAR.get()


@pytest.mark.parametrize(
    ("said", "version"),
    [('openjdk version "17.0.15" 2025-04-15', 17), ('java version "1.8.0_1"', 8), ('openjdk version "25" x', 25)],
)
def test_a_java_is_found_by_its_version(
    said: str, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "home" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    assert java.version_of(program) == version
    assert java.find(version) == program
    assert java.find(version + 1) != program
