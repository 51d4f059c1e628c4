"""What programs need to run elsewhere, and images made of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from dyno.hosts import programs
from dyno.hosts.images import Contents
from dyno.hosts.programs import closure, resolved
from dyno.model.base import RunError

SH, SLEEP = Path("/bin/sh"), Path("/bin/sleep")


def test_programs_run_with_their_closure_and_nothing_else(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("a root of its own needs root")
    for path in closure([SH, SLEEP]):
        target = tmp_path / path.relative_to("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)
    chroot = shutil.which("chroot", path="/usr/sbin:/usr/bin")
    assert chroot is not None
    said = subprocess.run(
        [chroot, str(tmp_path), str(SH), "-c", "sleep 0 && echo well"], capture_output=True, check=True
    )
    assert said.stdout == b"well\n"


def test_of_a_script_the_interpreter_is_followed(tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text("#! /bin/sh -e\necho\n")
    assert closure([script]) == {script, *closure([SH])}


def test_a_program_without_a_loader_needs_nothing_else() -> None:
    static = Path("/sbin/ldconfig")
    said = subprocess.run(["ldd", str(static)], capture_output=True).stdout if static.exists() else b""
    if b"statically linked" not in said:
        pytest.skip("no program of this machine is known to be linked statically")
    assert closure([static]) == resolved(static)


def test_links_are_kept_with_what_they_lead_to(tmp_path: Path) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    (tmp_path / "real" / "deep" / "file").write_text("")
    (tmp_path / "far").symlink_to(tmp_path / "real")
    (tmp_path / "near").symlink_to("far/deep/../deep")
    assert resolved(tmp_path / "near" / "file") == {
        tmp_path / "near",
        tmp_path / "far",
        tmp_path / "real" / "deep" / "file",
    }


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "nowhere").symlink_to("gone")
    with pytest.raises(RunError, match="circle of symbolic links"):
        closure([tmp_path / "a"])
    with pytest.raises(RunError, match="nowhere does not exist"):
        closure([tmp_path / "nowhere"])


def test_a_library_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # As ldd says it; a program that lacks one is not on every machine.
    monkeypatch.setattr(programs, "_ask", lambda _argv: "\tlibaio.so.1 => not found\n")
    with pytest.raises(RunError, match=r"sh needs libaio\.so\.1, which is not found"):
        closure([SH])


def test_an_image_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "share"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "words").write_text("english")
    (folder / "link").symlink_to("inner/words")
    first, second = Contents([SLEEP], [folder], None), Contents([SLEEP], [folder], None)
    assert first.checksum == second.checksum
    (folder / "inner" / "words").write_text("german!")
    assert Contents([SLEEP], [folder], None).checksum != first.checksum
    first.write(tmp_path / "image.tar")
    with tarfile.open(tmp_path / "image.tar") as tar:
        names = tar.getnames()
        assert len(names) == len(set(names))
        for path in (folder, folder / "inner" / "words", folder / "link", *closure([SLEEP]), Path("/etc/passwd")):
            assert str(path).lstrip("/") in names
        assert tar.getmember("tmp").mode == 0o1777
        passwd = tar.extractfile("etc/passwd")
        assert passwd is not None
        assert [line.split(b":")[0] for line in passwd] == [b"root"]


def test_an_image_has_the_lines_of_the_account_alone() -> None:
    contents = Contents([], [], "daemon")
    assert [line.split(":")[0] for line in contents._made["/etc/passwd"].decode().splitlines()] == ["root", "daemon"]
    with pytest.raises(RunError, match="there is no user nobody-at-all"):
        Contents([], [], "nobody-at-all")
