"""Where systems live: real file systems, kernel settings and CPUs, with a system that only pretends to serve."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from dyno.deployments.base import Deployment
from dyno.hosts import LocalHost
from dyno.hosts.devices import Device, mount_of
from dyno.hosts.leftovers import loop_devices, mounts_below
from dyno.lab import Rooms
from dyno.model.base import UserError
from dyno.model.run import Outcome, Step
from dyno.model.study import Study
from dyno.workloads.simulated import SimulatedWorkload
from tests.making import make_study
from tests.unit.hosts.rights import alone_on_the_machine
from tests.unit.lab.laboratory import FakeHost, Fault, Laboratory, giving, measured

MIB = 2**20
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts and kernel settings need root")
SETTING = Path("/proc/sys/vm/dirty_writeback_centisecs")


@pytest.fixture
def lab(tmp_path: Path) -> Laboratory:
    return Laboratory(tmp_path)


def tried(factors: dict[str, tuple[Any, ...]] | None = None, **rest: Any) -> Study:
    """A study on the kinds that can be told to go wrong; `deployment` is no option of theirs."""
    given = {"retries": 0, **rest}
    deployments = given.pop("deployments", ("native",))
    study = make_study(factors or {"mean": (1000,)}, system="tried", options={"noise": "none"}, **given)
    cells = [
        cell.model_copy(update={"index": number, "deployment": kind, "levels": {**cell.levels, "deployment": kind}})
        for number, (cell, kind) in enumerate((cell, kind) for cell in study.cells for kind in deployments)
    ]
    return study.model_copy(update={"cells": tuple(cells)})


def file_system(size: int = 16) -> dict[str, Any]:
    return {"file_system": {"size": f"{size} MiB"}}


def live(lab: Laboratory) -> list[Path]:
    return sorted(lab.root.glob("**/live"))


def images(lab: Laboratory) -> list[Path]:
    return sorted(lab.root.glob("**/image"))


def write(size: int, *, live: Path) -> list[str]:
    program = "import os, sys; f = open(sys.argv[1], 'wb'); f.write(b'x' * int(sys.argv[2])); os.fsync(f)"
    return [sys.executable, "-c", program, str(live / "grown"), str(size)]


# ---- file systems of their own


@needs_root
def test_each_deployment_has_a_file_system_of_its_own_and_they_share_one_loaded_data_set(lab: Laboratory) -> None:
    seen: dict[str, Any] = {}

    def look(*_args: Any) -> None:
        for folder in live(lab):
            seen[str(folder)] = mount_of(folder).source, mount_of(folder).kind
        seen["devices"] = [device for image in images(lab) for device in loop_devices(str(image))]

    lab.faults["workload.drive"] = Fault(look)
    ending, results = lab.run(tried(deployments=("native", "elsewhere"), host=file_system()))
    assert ending.completed
    assert {run.outcome for run in results.runs} == {Outcome.OK}
    devices = seen.pop("devices")
    assert sorted(seen.values()) == sorted((str(device), "ext4") for device in devices)
    assert len(devices) == 2
    assert lab.calls.count("workload.load") == 1
    assert {run.deployed["device"] for run in results.runs} == {"its own"}
    assert {run.deployed["file_system.type"] for run in results.runs} == {"ext4"}


@needs_root
def test_nothing_of_a_file_system_stays_after_the_end(lab: Laboratory, state: Path) -> None:
    known: list[Path] = []
    lab.faults["workload.drive"] = Fault(lambda *_args: known.extend(images(lab)))
    lab.run(tried(host=file_system()))
    assert known
    assert not [device for image in known for device in loop_devices(str(image))]
    assert mounts_below(str(lab.root)) == []
    assert list((state / "undo").iterdir()) == []
    assert images(lab) == []


@needs_root
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_nothing_of_a_file_system_stays_after_what_ends_dyno_itself(
    error: BaseException, lab: Laboratory, state: Path
) -> None:
    def end(*_args: Any) -> None:
        raise error

    lab.faults["workload.drive"] = Fault(end)
    with pytest.raises(type(error)):
        lab.run(tried(host=file_system()))
    assert mounts_below(str(lab.root)) == []
    assert list((state / "undo").iterdir()) == []


@needs_root
def test_a_study_that_was_cut_off_goes_on_with_its_file_systems_made_anew(lab: Laboratory) -> None:
    def ctrl_c(*_args: Any) -> Any:
        lab.interrupt.requested = True
        return measured(complete=False)

    study = tried(deployments=("native", "elsewhere"), host=file_system())
    lab.faults["workload.drive"] = Fault(ctrl_c, after=1, times=1)
    ending, results = lab.run(study)
    assert ending.interrupted
    lab.interrupt.requested = False
    ending, results = lab.run(study, resume=results)
    assert ending.completed
    assert [run.outcome.value for run in results.runs] == ["ok", "partial", "ok", "ok", "ok"]


@needs_root
def test_a_file_system_that_is_too_small_fails_its_runs_and_the_study_goes_on(lab: Laboratory) -> None:
    study = tried({"mean": (1, 2)}, host=file_system())
    roomy = make_study(host=file_system(64)).cells[0].host
    study = study.model_copy(update={"cells": (study.cells[0], study.cells[1].model_copy(update={"host": roomy}))})
    lab.faults["workload.drive"] = Fault(lambda runner, _seed: measured(1.0 + runner.execute(fill(lab))))
    lab.host = type("Disk", (FakeHost,), {"free_disk": LocalHost.free_disk})
    ending, results = lab.run(study)
    assert ending.completed, ending.reason
    by_cell = {run.slot.cell: run for run in results.runs}
    assert by_cell[1].outcome is Outcome.OK
    assert (by_cell[0].outcome, by_cell[0].step) == (Outcome.FAILED, Step.DRIVE)
    assert "the file system made for the data is nearly full" in str(by_cell[0].cause)
    assert "raise host.file_system.size" in str(by_cell[0].cause)


def fill(lab: Laboratory) -> list[str]:
    """Write 30 MiB to the data that were restored last, and stay until one is ended where they do not fit."""
    newest = max(live(lab), key=lambda folder: folder.stat().st_ctime_ns)
    program = (
        "import os, sys, time\n"
        "f = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY)\n"
        "try:\n"
        "    for _ in range(30): os.write(f, b'x' * 2**20)\n"
        "except OSError: time.sleep(1000)"
    )
    return [sys.executable, "-c", program, str(newest / "grown")]


def test_file_systems_that_do_not_fit_together_are_refused_before_anything_is_made(lab: Laboratory) -> None:
    lab.host = type("Small", (FakeHost,), {"free": staticmethod(lambda: 30 * MIB)})
    study = tried(deployments=("native", "elsewhere"), host={**file_system(), "require": {"free_disk": "8 MiB"}})
    with pytest.raises(UserError, match=r"2 file systems for the data take 32 MiB together.* has 30 MiB.*--work"):
        lab.run(study)
    assert lab.calls == []


def test_a_file_system_without_root_is_refused_before_anything_is_run(
    lab: Laboratory, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match=r"deployment native .*a file system of its own .* needs root"):
        lab.run(tried(host=file_system()))
    assert "system.prepare" not in lab.calls
    assert list((state / "undo").iterdir()) == []


# ---- the state of the host


@needs_root
def test_kernel_settings_are_in_force_in_each_run_and_put_back_after_the_study(lab: Laboratory) -> None:
    seen: list[str] = []
    lab.faults["workload.drive"] = Fault(lambda *_args: seen.append(SETTING.read_text().strip()))
    with alone_on_the_machine():
        before = SETTING.read_text()
        wanted = "137" if before.strip() != "137" else "138"
        ending, _ = lab.run(tried(host={"sysctl": {"vm.dirty_writeback_centisecs": wanted}}))
        assert SETTING.read_text() == before
    assert ending.completed
    assert seen == [wanted, wanted]


@needs_root
def test_a_setting_that_the_kernel_does_not_have_is_refused_before_anything_is_run(lab: Laboratory) -> None:
    with pytest.raises(UserError, match=r"the host cannot be as the study asks .*vm\.no_such_thing"):
        lab.run(tried(host={"sysctl": {"vm.no_such_thing": 1}}))
    assert lab.calls == []


def test_the_driver_uses_only_the_cpus_that_it_is_given(lab: Laboratory, tmp_path: Path) -> None:
    cpu = min(os.sched_getaffinity(0))
    program = "import json, os, sys; json.dump(sorted(os.sched_getaffinity(0)), open(sys.argv[1], 'w'))"

    def drive(runner: Any, _seed: int) -> Any:
        return measured(1.0 + runner.execute([sys.executable, "-c", program, str(tmp_path / "cpus")]))

    lab.faults["workload.drive"] = Fault(drive)
    record = lab.records(tried(host={"pin": {"driver": str(cpu)}}))[0]
    assert record.outcome is Outcome.OK
    assert json.loads((tmp_path / "cpus").read_text()) == [cpu]
    assert record.commands[0][:3] == ("taskset", "--cpu-list", str(cpu))


@pytest.mark.parametrize("who", ["driver", "system"])
def test_a_cpu_that_is_not_there_is_refused_before_anything_is_run(who: str, lab: Laboratory) -> None:
    with pytest.raises(UserError, match="there is no CPU 4000"):
        lab.run(tried(host={"pin": {who: "4000"}}))
    assert lab.calls == []


@needs_root
def test_a_machine_holds_the_driver_where_the_system_works_inside_it(lab: Laboratory, tmp_path: Path) -> None:
    program = "import sys; open(sys.argv[1], 'w').write(open('/proc/self/cgroup').read())"

    def drive(runner: Any, _seed: int) -> Any:
        return measured(1.0 + runner.execute([sys.executable, "-c", program, str(tmp_path / "groups")]))

    lab.faults["workload.drive"] = Fault(drive)
    record = lab.records(tried(host={"machine": {"memory": "64 MiB"}}))[0]
    assert record.outcome is Outcome.OK, record.cause
    assert "/dyno-" in (tmp_path / "groups").read_text()


# ---- what the device did


@needs_root
def test_what_a_run_wrote_to_the_device_of_its_own_is_among_its_responses(lab: Laboratory) -> None:
    lab.faults["workload.drive"] = Fault(
        lambda runner, _seed: measured(1.0 + runner.execute(write(5 * MIB, live=live(lab)[0])))
    )
    record = lab.records(tried(host=file_system()))[0]
    assert record.outcome is Outcome.OK, record.cause
    assert 5 <= record.responses["device_written"] < 16
    assert "device_written_per_op" not in record.responses, "nobody counted the operations"


@needs_root
@pytest.mark.parametrize("goes_on", [False, True])
def test_what_is_written_once_the_driver_has_ended_counts_where_the_workload_goes_on(
    goes_on: bool, lab: Laboratory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drive(runner: Any, _seed: int) -> Any:
        status = runner.execute(["true"])
        with (live(lab)[0] / "late").open("wb") as file:
            file.write(os.urandom(5 * MIB))
            os.fsync(file.fileno())
        return measured(1.0 + status)

    monkeypatch.setattr(SimulatedWorkload, "goes_on", goes_on)
    lab.faults["workload.drive"] = Fault(drive)
    record = lab.records(tried(host=file_system()))[0]
    assert record.outcome is Outcome.OK, record.cause
    assert (record.responses["device_written"] >= 5) == goes_on


def test_a_device_of_unknown_kind_is_refused_where_truly_cold_is_asked(
    lab: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dyno.lab.sites.device_of", lambda _path: Device("vda", "virtual", tmp_path))
    host = {"caches": "cold", "require": {"truly_cold": True, "free_disk": "0 B"}}
    with pytest.raises(UserError, match=r"host.require.truly_cold cannot be shown here: the data are on vda"):
        lab.run(tried(host=host))
    assert "system.prepare" not in lab.calls


@pytest.mark.parametrize(("gigabytes", "outcome"), [(1000, Outcome.INVALID), (0, Outcome.OK)])
def test_a_device_that_was_faster_than_its_kind_can_be_makes_a_truly_cold_run_invalid(
    gigabytes: int, outcome: Outcome, lab: Laboratory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(sectors: int) -> None:
        (tmp_path / "stat").write_text(" ".join(map(str, [1, 0, sectors, *[0] * 14])))

    def drive(runner: Any, _seed: int) -> Any:
        told(gigabytes * 10**9 // 512)
        return measured(1.0 + runner.execute(["true"]))

    monkeypatch.setattr("dyno.lab.sites.device_of", lambda _path: Device("sda", "hdd", tmp_path))
    told(0)
    lab.host = type("Cold", (FakeHost,), {"resident": staticmethod(lambda: 0)})
    lab.faults["workload.drive"] = Fault(drive)
    record = lab.records(tried(host={"caches": "cold", "require": {"truly_cold": True, "free_disk": "0 B"}}))[0]
    assert record.outcome is outcome
    if outcome is Outcome.INVALID:
        assert record.step is Step.CHECK
        assert "not known to be truly cold (host.require.truly_cold): sda read" in str(record.cause)


def test_what_a_system_says_of_its_caches_and_of_itself_is_kept(lab: Laboratory) -> None:
    lab.faults["system.cached"] = giving({"pool_pages": 12})
    lab.faults["system.facts"] = giving({"io_engine": "io_uring"})
    record = lab.records(tried())[0]
    assert record.caches["pool_pages"] == 12
    assert record.deployed == {"device": "shared", "io_engine": "io_uring"}


# ---- what cannot go together


def test_a_system_without_a_recipe_is_refused_in_a_container() -> None:
    class Boxed(Deployment):
        kind = "boxed"
        in_container = True

    rooms = Rooms.open()
    rooms = Rooms(rooms.systems, rooms.workloads, rooms.observers, {**rooms.deployments, "boxed": Boxed})
    study = make_study({}, system="null", workload="null")
    boxed = study.model_copy(update={"cells": (study.cells[0].model_copy(update={"deployment": "boxed"}),)})
    rooms.refuse_mismatches(study)
    with pytest.raises(UserError, match=r"system.deployment: null cannot live in boxed: .* mariadb.* do"):
        rooms.refuse_mismatches(boxed)


def test_native_is_the_deployment_of_a_study_that_names_none() -> None:
    assert Rooms.open().kinds().deployments[0] == "native"
