"""What dyno writes down of a machine, and what it finds out for `dyno doctor`."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from pathlib import Path

import pytest

from dyno.hosts import doctor, environment, kernel, leftovers
from dyno.hosts.local import core_binary
from dyno.model.base import UserError


@pytest.fixture
def core(tmp_path: Path) -> str:
    """A program that answers as dyno-core does."""
    return program(tmp_path / "core", """echo '{"dyno-core": "9", "sqlite": "3"}'""")


def program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_environment_can_be_written_as_json_and_says_what_was_measured_with(core: str, tmp_path: Path) -> None:
    captured = environment.capture(core, {"results": tmp_path})
    assert json.loads(json.dumps(captured)) == captured
    assert captured["cpu"]["usable"] == len(os.sched_getaffinity(0))
    assert captured["memory"]["total_bytes"] > 2**20
    assert captured["versions"]["dyno-core"] == "9"
    assert captured["checksums"]["dyno-core"] == hashlib.sha256(Path(core).read_bytes()).hexdigest()


def test_the_file_system_is_that_of_the_longest_mount_point(core: str) -> None:
    captured = environment.capture(core, {"proc": Path("/proc"), "self": Path("/proc/self")})
    assert captured["file_systems"]["proc"]["type"] == "proc"
    assert captured["file_systems"]["self"]["type"] == "proc"


def test_a_mount_point_with_blanks_and_umlauts_is_found(
    core: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "my dätä"
    place.mkdir()
    mounts = "/dev/root / ext4 rw 0 0\n/dev/sdx " + str(place).replace(" ", "\\040") + " xfs rw 0 0\n"
    monkeypatch.setattr(environment, "_read", lambda path: mounts if path == "/proc/self/mounts" else None)
    assert environment.capture(core, {"results": place})["file_systems"]["results"]["type"] == "xfs"


def test_what_cannot_be_read_is_absent_and_never_guessed(
    core: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "_read", lambda _path: None)
    monkeypatch.setattr(kernel, "GOVERNOR", kernel.governor(tmp_path))
    monkeypatch.setattr(kernel, "TURBO", kernel.turbo(tmp_path))
    monkeypatch.setattr(leftovers, "CGROUPS", tmp_path)
    captured = environment.capture(core, {"results": tmp_path})
    assert captured["memory"] == {}
    assert captured["settings"] == {}
    assert captured["cpu"]["governor"] == "not visible"
    assert captured["cpu"]["turbo"] == "not visible"
    assert captured["control_groups"] == {}


def test_what_may_be_set_for_a_study_is_written_down_as_it_is_now(
    core: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # This machine's CPUs may have no frequency of their own, and its control groups are of either version.
    files = {"cpufreq/policy0/scaling_governor": "powersave\n", "intel_pstate/no_turbo": "1\n"}
    for name, text in files.items():
        file = tmp_path / "sys/devices/system/cpu" / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
    (tmp_path / "cgroup.controllers").write_text("cpu memory\n")
    monkeypatch.setattr(kernel, "GOVERNOR", kernel.governor(tmp_path))
    monkeypatch.setattr(kernel, "TURBO", kernel.turbo(tmp_path))
    monkeypatch.setattr(leftovers, "CGROUPS", tmp_path)
    captured = environment.capture(core, {})
    assert (captured["cpu"]["governor"], captured["cpu"]["turbo"]) == ("powersave", "off")
    assert captured["control_groups"] == {"cpu": "v2", "memory": "v2"}
    assert captured["settings"]["kernel.randomize_va_space"] == kernel.ASLR.show()
    assert f"[{kernel.TRANSPARENT_HUGEPAGES.show()}]" in captured["settings"]["transparent_hugepage.enabled"]


@pytest.mark.parametrize("script", ["echo no json", "exit 3", "echo 12", "kill -9 $$"])
def test_a_core_that_does_not_answer_is_an_error_for_the_user(script: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="install dyno again"):
        environment.capture(program(tmp_path / "core", script), {})


def test_a_core_of_another_architecture_is_an_error_for_the_user(tmp_path: Path) -> None:
    (tmp_path / "core").write_bytes(b"\x7fELF")
    (tmp_path / "core").chmod(0o755)
    with pytest.raises(UserError, match="install dyno again"):
        environment.capture(str(tmp_path / "core"), {})


def test_a_machine_that_stayed_the_same_has_no_differences(core: str, tmp_path: Path) -> None:
    now = environment.capture(core, {"results": tmp_path})
    assert environment.differences(now, json.loads(json.dumps(now))) == []


@pytest.mark.parametrize(
    ("keys", "value"),
    [
        (("cpu", "model"), "another"),
        (("cpu", "usable"), 96),
        (("kernel", "release"), "7.0"),
        (("versions", "sqlite"), "4"),
        (("checksums", "dyno-core"), "0"),
    ],
)
def test_what_makes_runs_those_of_another_machine_is_a_difference(
    keys: tuple[str, str], value: object, core: str, tmp_path: Path
) -> None:
    before = environment.capture(core, {"results": tmp_path})
    now = copy.deepcopy(before)
    now[keys[0]][keys[1]] = value
    (told,) = environment.differences(before, now)
    assert keys[0] in told
    assert str(value) in told


def test_free_disk_and_the_like_may_differ(core: str, tmp_path: Path) -> None:
    before = environment.capture(core, {"results": tmp_path})
    now = copy.deepcopy(before)
    now["file_systems"]["results"]["free_bytes"] = 1
    assert environment.differences(before, now) == []


def test_an_environment_that_lacks_a_part_differs_and_is_no_traceback(core: str, tmp_path: Path) -> None:
    assert environment.differences({}, environment.capture(core, {"results": tmp_path}))


def tree(*folders: Path) -> set[Path]:
    return {path for folder in folders for path in folder.rglob("*") if path.is_file()}


def test_the_examination_leaves_nothing_behind(tmp_path: Path, state: Path) -> None:
    (tmp_path / "mine").write_text("stays")
    before = tree(tmp_path, state)
    checks = doctor.examine(tmp_path)
    assert tree(tmp_path, state) == before
    assert not list(tmp_path.glob("dyno-doctor-*"))
    assert {check.name for check in checks if check.needed} == {"Python", "dyno-core", "undo journal", "results folder"}


def test_a_results_folder_that_does_not_exist_is_examined_and_not_made(tmp_path: Path) -> None:
    doctor.examine(tmp_path / "never" / "made")
    assert not (tmp_path / "never").exists()


def check_named(name: str, folder: Path) -> doctor.Check:
    return next(check for check in doctor.examine(folder) if check.name == name)


@pytest.mark.parametrize("content", [b"\x7fELF", b"#!/bin/sh\nexit 1\n"])
def test_a_core_that_cannot_be_run_is_needed_and_missing(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # One of another architecture was once told as a possibility that is merely closed, with exit status 0.
    core = tmp_path / "core"
    core.write_bytes(content)
    core.chmod(0o755)
    monkeypatch.setattr(doctor, "core_binary", lambda: str(core))
    check = check_named("dyno-core", tmp_path)
    assert check.needed
    assert not check.holds
    assert "cargo" in check.remedy


def test_a_missing_core_is_an_error_that_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda _name: str(tmp_path))
    with pytest.raises(UserError, match="is missing: install dyno again"):
        core_binary()
    assert not check_named("dyno-core", tmp_path).holds


def test_a_state_folder_that_cannot_be_written_is_needed_and_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DYNO_STATE", str(tmp_path / "file"))
    check = check_named("undo journal", tmp_path)
    assert check.needed
    assert not check.holds
