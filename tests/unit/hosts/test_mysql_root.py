"""The folder with MySQL: made whole or not at all, an older one anew, and its programs run from wherever it lies."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dyno.hosts import LocalHost, debian, mysql_root
from dyno.hosts.mysql_root import PROGRAMS, MysqlRoot, missing_in
from dyno.model.base import RunError, UserError

TOOL = MysqlRoot()
LIMIT_S = 60
ANOTHER = (*PROGRAMS, *PROGRAMS.values(), "data/mysql.ibd", "version")
PLUGINS = ("usr/lib/mysql/plugin/group_replication.so", "usr/lib/mysql/plugin/mysql_clone.so")


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{folder.name}\n")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the folder is to be in this test; `made` is what is made, and `asked` counts how often."""
    monkeypatch.delenv("DYNO_MYSQL_ROOT", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "dyno" / "mysql-root"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders in which one was made, by nobody but this test."""
    made: list[Path] = []

    def make(_host: LocalHost, scratch: Path) -> Path:
        put(scratch / "root", *ANOTHER, *PLUGINS)
        made.append(scratch)
        return scratch / "root"

    monkeypatch.setattr(mysql_root, "_make", make)
    return made


def test_the_folder_is_made_once_and_nothing_is_left_beside_it(cache: Path, asked: list[Path]) -> None:
    assert TOOL.installed() is None
    assert TOOL.get() == cache
    assert TOOL.installed() == "root"
    assert TOOL.get() == cache
    assert len(asked) == 1
    assert list(cache.parent.iterdir()) == [cache]


def test_a_folder_without_router_is_made_anew(cache: Path, asked: list[Path]) -> None:
    put(cache, "mysqld", "usr/sbin/mysqld", "data/mysql.ibd", *PLUGINS)
    assert TOOL.installed() is None
    assert "mysqlrouter" in missing_in(cache)
    TOOL.get()
    assert TOOL.installed() == "root"
    assert list(cache.parent.iterdir()) == [cache], "the older one is gone"


def test_a_folder_that_is_given_is_the_one_that_is_made(
    cache: Path, asked: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DYNO_MYSQL_ROOT", str(tmp_path / "mine"))
    assert TOOL.get() == tmp_path / "mine"
    assert not cache.exists()


def test_a_folder_with_something_else_is_not_replaced(cache: Path, asked: list[Path]) -> None:
    put(cache, "letter")
    with pytest.raises(UserError, match=f"{cache} is not a folder with MySQL, and will not be replaced by one"):
        TOOL.get()
    assert (cache / "letter").exists()
    assert asked == []


def test_an_older_folder_stays_where_a_new_one_cannot_be_made(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(cache, "mysqld")

    def fail(_host: LocalHost, scratch: Path) -> Path:
        put(scratch, "half of it")
        raise RunError("no mirror answers")

    monkeypatch.setattr(mysql_root, "_make", fail)
    with pytest.raises(RunError, match="no mirror answers"):
        TOOL.get()
    assert [path.name for path in cache.iterdir()] == ["mysqld"]
    assert list(cache.parent.iterdir()) == [cache]


def test_a_machine_without_apt_is_told_what_is_missing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dyno.hosts.programs.find", lambda _name: None)
    with pytest.raises(UserError, match="apt-get and dpkg and dpkg-deb not found: packages come from Debian"):
        TOOL.get()
    assert list(cache.parent.iterdir()) == []


words = st.text("abcxyzDebian:/.-", min_size=1, max_size=12)


@given(st.lists(st.tuples(st.sampled_from(["Debian-Security", "other", "Debian "]), words), max_size=4), words)
def test_the_mirror_is_the_first_that_is_of_debian_itself(others: list[tuple[str, str]], mirror: str) -> None:
    named = [(label.strip(), where) for label, where in others]
    text = "".join(f"{label} {where}\n" for label, where in [*named, ("Debian", mirror), ("Debian", "later")])
    assert debian.mirror_of(text) == next((where for label, where in named if label == "Debian"), mirror)


@pytest.mark.parametrize("told", ["", "\n", "other http://x\n"])
def test_without_a_mirror_of_debian_there_is_none(told: str) -> None:
    assert debian.mirror_of(told) is None


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_program_of_the_folder_runs_with_its_own_libraries(name: str) -> None:
    folder = TOOL.path()
    assert missing_in(folder) == [], "`make mysql` makes it"
    answer = subprocess.run(
        [folder / name, "--version"],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={"PATH": os.environ["PATH"]},
    )
    version = (TOOL.installed() or "").partition("-")[0]
    assert answer.returncode == 0, answer.stderr
    # mysqlrouter_keyring does not say which it is.
    assert version in answer.stdout or name == "mysqlrouter_keyring"
