"""Settings of the kernel: in force when they are asked for, put back when they are not, and told of where neither goes.

What is set here for real does no harm to what else runs on the machine.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from dyno.hosts import LocalHost, UndoJournal, leftovers
from dyno.hosts.kernel import (
    ASLR,
    GOVERNOR,
    TRANSPARENT_HUGEPAGES,
    TURBO,
    Setting,
    governor,
    settings_of,
    sysctl,
    transparent_hugepages,
    turbo,
)
from dyno.model.base import RunError, UserError
from dyno.model.study import Kernel
from tests.unit.hosts.rights import alone_on_the_machine, needs_root, without_root

PROBES, TIME = sysctl("net.ipv4.tcp_keepalive_probes"), sysctl("net.ipv4.tcp_keepalive_time")
PORTS = sysctl("net.ipv4.ip_local_port_range")  # two values with a tab between
BYTES, RATIO = sysctl("vm.dirty_background_bytes"), sysctl("vm.dirty_background_ratio")


@pytest.fixture
def alone() -> Iterator[None]:
    """A test that fails leaves the machine as it found it."""
    settings = [PROBES, TIME, PORTS, BYTES, RATIO, TRANSPARENT_HUGEPAGES, ASLR]
    with alone_on_the_machine():
        found = [entry for setting in settings for entry in setting.as_found()]
        yield
        for path, text in found:
            leftovers.write_back(str(path), text)


def entries(state: Path) -> list[dict[str, str]]:
    (journal,) = (state / "undo").glob("*.jsonl")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    return [line["what"] for line in lines if line["kind"] == "kernel-setting"]


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def one_less(setting: Setting) -> str:
    *others, last = setting.show().split()
    return " ".join([*others, str(int(last) - 1)])


OTHERS = {
    "one value": (PROBES, one_less),
    "two values": (PORTS, one_less),
    "huge pages": (TRANSPARENT_HUGEPAGES, lambda setting: "never" if setting.show() != "never" else "madvise"),
    "addresses": (ASLR, lambda setting: "1" if setting.show() != "1" else "2"),
}


@needs_root
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("which", OTHERS)
def test_a_setting_is_in_force_until_the_session_ends(state: Path, which: str) -> None:
    setting, other = OTHERS[which]
    if (why := setting.available()) is not None:
        pytest.skip(why)
    before, wanted = setting.show(), other(setting)
    raw = [path.read_text() for path in setting.files()]
    with UndoJournal() as journal:
        LocalHost(journal).set_kernel({setting: wanted})
        assert setting.show() == wanted != before
        assert [entry["path"] for entry in entries(state)] == [str(path) for path in setting.files()]
    assert [path.read_text() for path in setting.files()] == raw


@needs_root
@pytest.mark.usefixtures("alone")
def test_a_setting_is_in_the_journal_before_it_is_written(
    host: LocalHost, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, seen = PROBES.show(), []
    really = Setting.write

    def watched(setting: Setting, value: str) -> None:
        seen.append((setting.show(), entries(state)))
        really(setting, value)

    monkeypatch.setattr(Setting, "write", watched)
    host.set_kernel({PROBES: one_less(PROBES)})
    assert seen == [(before, [{"path": str(PROBES.files()[0]), "value": before}])]


@needs_root
def test_a_setting_that_is_so_already_is_neither_written_nor_in_the_journal(
    host: LocalHost, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_setting: Setting, value: str) -> None:
        raise AssertionError(value)

    monkeypatch.setattr(Setting, "write", never)
    host.set_kernel({PROBES: PROBES.show(), TRANSPARENT_HUGEPAGES: TRANSPARENT_HUGEPAGES.show()})
    assert entries(state) == []


@needs_root
@pytest.mark.usefixtures("alone")
def test_what_an_earlier_call_set_goes_back_when_it_is_no_longer_wanted(state: Path) -> None:
    probes, time = PROBES.show(), TIME.show()
    with UndoJournal() as journal:
        host = LocalHost(journal)
        host.set_kernel({PROBES: one_less(PROBES), TIME: one_less(TIME)})
        twice_less = one_less(TIME)
        host.set_kernel({TIME: twice_less})
        assert (PROBES.show(), TIME.show()) == (probes, twice_less)
        host.set_kernel({TIME: time})
        assert TIME.show() == time
        host.set_kernel({TIME: twice_less})
        found = [entry["value"] for entry in entries(state) if entry["path"] == str(TIME.files()[0])]
        assert found == [time], "what was found first is what counts, however often it is set"
    assert TIME.show() == time


@needs_root
@pytest.mark.usefixtures("alone")
def test_a_setting_that_somebody_else_changed_meanwhile_is_set_again(host: LocalHost) -> None:
    before, wanted = PROBES.show(), one_less(PROBES)
    host.set_kernel({PROBES: wanted})
    PROBES.write(before)
    host.set_kernel({PROBES: wanted})
    assert PROBES.show() == wanted


@needs_root
@pytest.mark.usefixtures("alone")
def test_a_value_that_the_kernel_refuses_is_an_error_with_its_reason(host: LocalHost) -> None:
    setting = sysctl("vm.overcommit_memory")
    before = setting.show()
    with pytest.raises(RunError, match=r"cannot set vm\.overcommit_memory to 7: Invalid argument"):
        host.set_kernel({setting: "7"})
    assert setting.show() == before


@needs_root
@pytest.mark.usefixtures("alone")
def test_a_refused_choice_is_told_with_those_there_are(host: LocalHost) -> None:
    with pytest.raises(
        RunError, match=r"transparent_hugepages to sometimes: Invalid .*; there are always, madvise, ne"
    ):
        host.set_kernel({TRANSPARENT_HUGEPAGES: "sometimes"})


def fill(setting: Setting) -> str:
    """Such a share of the memory that nothing begins to be written earlier than it was."""
    return "2000000000" if setting == BYTES else "10"


@needs_root
@pytest.mark.usefixtures("alone")
def test_of_two_settings_of_which_one_counts_that_one_goes_back(host: LocalHost) -> None:
    # The other reads 0, and 0 may not be written to it.
    counts, other = (BYTES, RATIO) if RATIO.show() == "0" else (RATIO, BYTES)
    before = counts.show()
    host.set_kernel({other: fill(other)})
    assert counts.show() == "0"
    host.set_kernel({})
    assert (counts.show(), other.show()) == (before, "0")


@needs_root
@pytest.mark.usefixtures("alone")
def test_settings_of_which_only_one_can_hold_are_refused_and_put_back() -> None:
    before = BYTES.show(), RATIO.show()
    with UndoJournal() as journal:
        both = {BYTES: fill(BYTES), RATIO: "11"}
        with pytest.raises(RunError, match=r"cannot set vm\.dirty_background_bytes to 2000000000: it is 0 after"):
            LocalHost(journal).set_kernel(both)
    assert (BYTES.show(), RATIO.show()) == before


def test_without_root_the_setting_is_named_and_nothing_is_in_the_journal(host: LocalHost, state: Path) -> None:
    with without_root(), pytest.raises(RunError, match=r"set net\.ipv4\.tcp_keepalive_probes to 1: needs root"):
        host.set_kernel({PROBES: "1"})
    assert entries(state) == []


def test_dropping_the_caches_needs_root(host: LocalHost) -> None:
    with without_root(), pytest.raises(RunError, match="dropping the caches of the machine needs root"):
        host.drop_caches()


@needs_root
def test_dropped_caches_keep_nothing_of_a_file_that_was_just_written(host: LocalHost, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 2**20)
    assert host.resident_bytes([file]) == 2**20
    host.drop_caches()
    assert host.resident_bytes([file]) == 0


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("vm.no_such_setting", "this kernel has no setting of that name"),
        ("vm.compact_memory", "it could not be put back"),
        ("vm", "it could not be put back"),
    ],
)
def test_a_setting_that_could_not_be_put_back_is_refused(host: LocalHost, state: Path, name: str, why: str) -> None:
    if name == "vm.compact_memory" and not sysctl(name).files():
        pytest.skip(f"this kernel has no {name}")
    with pytest.raises(RunError, match=f"cannot set {name} to 1: {why}"):
        host.set_kernel({sysctl(name): "1"})
    assert entries(state) == []


def test_a_setting_without_a_way_back_is_refused(host: LocalHost, state: Path, tmp_path: Path) -> None:
    # In a folder: on a kernel that has it, this very test would see how well it is refused.
    setting = sysctl("kernel.modules_disabled", lay_out(tmp_path, {"proc/sys/kernel/modules_disabled": "0\n"}))
    with pytest.raises(RunError, match="it could not be put back without starting the machine anew"):
        host.set_kernel({setting: "1"})
    assert entries(state) == []
    assert setting.show() == "0"


def test_cpus_without_a_frequency_of_their_own_say_so(tmp_path: Path) -> None:
    for setting in (governor(tmp_path), turbo(tmp_path)):
        assert setting.available() == "the frequency of the CPUs is not in the hands of this machine"
        with pytest.raises(RunError, match="is not in the hands"):
            setting.show()


@pytest.mark.parametrize("setting", [GOVERNOR, TURBO, TRANSPARENT_HUGEPAGES, ASLR], ids=lambda setting: setting.name)
def test_each_setting_here_has_a_value_or_a_reason(setting: Setting) -> None:
    assert setting.available() or setting.show()


# This machine's CPUs have no frequency of their own: what follows is on files laid out as the kernel's.

CPUFREQ = "sys/devices/system/cpu/cpufreq"


def test_a_governor_is_set_on_each_cpu_and_each_gets_its_own_back(tmp_path: Path) -> None:
    ways = {f"policy{cpu}/scaling_governor": way for cpu, way in ((0, "powersave\n"), (1, "schedutil\n"))}
    root = lay_out(tmp_path / "root", {f"{CPUFREQ}/{name}": way for name, way in ways.items()})
    setting = governor(root)
    assert setting.show() == "powersave, schedutil"
    with UndoJournal() as journal:
        LocalHost(journal).set_kernel({setting: "performance"})
        assert setting.show() == "performance"
    assert [(root / CPUFREQ / name).read_text().strip() for name in ways] == ["powersave", "schedutil"]


def test_a_governor_that_is_not_there_is_told_with_those_that_are(tmp_path: Path) -> None:
    files = {"scaling_governor": "powersave\n", "scaling_available_governors": "performance powersave \n"}
    root = lay_out(
        tmp_path,
        {f"sys/devices/system/cpu/cpu{cpu}/cpufreq/{name}": text for cpu in (0, 1) for name, text in files.items()},
    )
    assert governor(root).choices() == ["performance", "powersave"]


@pytest.mark.parametrize(
    ("file", "on", "off"),
    [("intel_pstate/no_turbo", "0", "1"), ("cpufreq/boost", "1", "0"), ("cpufreq/policy0/boost", "1", "0")],
)
def test_turbo_is_set_by_whichever_file_the_driver_has(tmp_path: Path, file: str, on: str, off: str) -> None:
    root = lay_out(tmp_path / "root", {f"sys/devices/system/cpu/{file}": f"{on}\n"})
    path, setting = root / "sys/devices/system/cpu" / file, turbo(root)
    assert setting.show() == "on"
    with UndoJournal() as journal:
        LocalHost(journal).set_kernel({setting: "off"})
        assert (path.read_text(), setting.show()) == (off, "off")
    assert path.read_text() == on


def test_the_choice_that_holds_is_the_one_in_brackets(tmp_path: Path) -> None:
    root = lay_out(tmp_path, {"sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n"})
    assert transparent_hugepages(root).show() == "madvise"
    assert transparent_hugepages(root).choices() == ["always", "madvise", "never"]


def test_what_a_study_asks_for_is_by_setting() -> None:
    kernel = Kernel(governor="performance", turbo=False, transparent_hugepages="never", aslr=0)
    wanted = settings_of({"vm.swappiness": 1, "net.ipv4.ip_local_port_range": "1024\t  2048"}, kernel)
    assert wanted == {
        sysctl("vm.swappiness"): "1",
        PORTS: "1024 2048",
        GOVERNOR: "performance",
        TURBO: "off",
        TRANSPARENT_HUGEPAGES: "never",
        ASLR: "0",
    }
    assert settings_of({}, Kernel()) == {}
    assert settings_of({}, Kernel(turbo=True)) == {TURBO: "on"}


def test_a_setting_that_is_asked_for_under_two_names_must_be_asked_the_same() -> None:
    assert settings_of({"kernel.randomize_va_space": 0}, Kernel(aslr=0)) == {ASLR: "0"}
    with pytest.raises(UserError, match=r"randomize_va_space is asked to be 2 by host\.sysctl, 0 by host\.kernel"):
        settings_of({"kernel.randomize_va_space": 2}, Kernel(aslr=0))
