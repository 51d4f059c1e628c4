"""`host` and `system.deployment`: what is taken, each mistake with its line and remedy, and what cannot be compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from study_example import KINDS, changed, written

import dyno.study
from dyno.model.study import HostSpec, Pin, Study
from dyno.study import StudyError

DEPLOYED = replace(KINDS, deployments=("native", "container-layered", "container-volume"))

WHOLE = """\
host:
  caches: cold
  require: {free_disk: 2 GiB, truly_cold: true}
  machine: {cpus: 1.5, memory: 2 GiB, disk: {read_bandwidth: 4 MiB/s, write_iops: 200}}
  file_system: {kind: xfs, size: 1 GiB, mkfs: [-m, crc=0], mount: [noatime, logbufs=8], direct_io: false}
  sysctl: {vm.dirty_expire_centisecs: 500, net.ipv4.tcp_rmem: 4096 131072 6291456}
  kernel: {governor: performance, turbo: false, transparent_hugepages: never, aslr: 0}
  pin: {system: 0, driver: "1-2,5"}
"""


def load(folder: Path, text: str, *overrides: str) -> Study:
    return dyno.study.load(written(folder, text), DEPLOYED, overrides=overrides)


def refusal(folder: Path, text: str, *overrides: str) -> str:
    with pytest.raises(StudyError) as caught:
        load(folder, text, *overrides)
    return str(caught.value).removeprefix(f"{folder}/study.yaml:")


def with_host(line: str) -> str:
    """Line 16 is what stands below `host`."""
    return changed({15: f"host:\n  {line}"})


def test_each_key_of_the_host_reaches_its_cells(tmp_path: Path) -> None:
    host = load(tmp_path, changed({15: WHOLE.rstrip()})).cells[0].host
    assert host.machine.memory == 2 * 1024**3
    assert host.machine.disk.limits == {"read_bytes": 4 * 1024**2, "writes": 200}
    assert host.file_system is not None
    assert (host.file_system.mkfs, host.file_system.mount) == (("-m", "crc=0"), ("noatime", "logbufs=8"))
    assert host.sysctl == {"vm.dirty_expire_centisecs": 500, "net.ipv4.tcp_rmem": "4096 131072 6291456"}
    assert (host.kernel.turbo, host.kernel.aslr, host.pin) == (False, 0, Pin(system="0", driver="1-2,5"))
    assert HostSpec.model_validate_json(host.model_dump_json()) == host


MISTAKES = {
    "sysctl: {vm.Swappiness: 1}": (
        "16: host.sysctl.vm.Swappiness: 'vm.Swappiness' is no kernel setting's name; write it as "
        "`sysctl -a` does, such "
        "as vm.swappiness"
    ),
    "sysctl: {../../etc/passwd: 1}": (
        "16: host.sysctl.../../etc/passwd: '../../etc/passwd' is no kernel setting's name; write it as "
        "`sysctl -a` does, "
        "such as vm.swappiness"
    ),
    "sysctl: {swappiness: 1}": (
        "16: host.sysctl.swappiness: 'swappiness' is no kernel setting's name; write it as `sysctl -a` does, such as "
        "vm.swappiness"
    ),
    'sysctl: {vm.swappiness: "1\\n2"}': (
        "16: host.sysctl.vm.swappiness: '1\\n2' is no kernel setting's value; write it as `sysctl -a` does"
    ),
    "sysctl: {vm.swappiness: true}": (
        "16: host.sysctl.vm.swappiness: should be a whole number, not true, or should be text, not "
        "true; quote it: 'true'"
    ),
    "sysctl: {vm.swappiness: }": (
        "16: host.sysctl.vm.swappiness: should be a whole number, not null, or should be text, not "
        "null; leave the key out"
    ),
    "pin: {system: -1}": "16: host.pin.system: '-1' is no list of CPUs; write their numbers, such as '0' or '0-1,3'",
    "pin: {system: [0, 1]}": "16: host.pin.system: should be text, not a list",
    "pin: {system: all}": "16: host.pin.system: 'all' is no list of CPUs; write their numbers, such as '0' or '0-1,3'",
    "pin: {driver: 3-1}": "16: host.pin.driver: '3-1' ends before it begins; write 1-3",
    "pin: {sistem: '0'}": "16: host.pin.sistem: unknown key; did you mean 'system'? (keys: system, driver)",
    "machine: {cpus: 0}": "16: host.machine.cpus: should be at least 0.01, not 0",
    "machine: {disk: {read_bandwidth: 4 MiB}}": (
        "16: host.machine.disk.read_bandwidth: '4 MiB' has an unknown unit 'MiB' "
        "(units: B/s, kB/s, KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s)"
    ),
    "machine: {disk: {read_bandwidth: 4}}": (
        "16: host.machine.disk.read_bandwidth: 4 has no unit: write it as 4 MiB/s "
        "(units: B/s, kB/s, KB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, TiB/s)"
    ),
    "machine: {disk: {write_bandwidth: 0 B/s}}": (
        "16: host.machine.disk.write_bandwidth: should be above 0, not '0 B/s'"
    ),
    "machine: {disk: {read_iops: 0}}": "16: host.machine.disk.read_iops: should be at least 1, not 0",
    "machine: {disk: {read_iops: 200/s}}": "16: host.machine.disk.read_iops: should be a whole number, not '200/s'",
    "machine: {disk: {reads: 200}}": (
        "16: host.machine.disk.reads: unknown key; did you mean 'read_iops'? (keys: read_bandwidth, write_bandwidth, "
        "read_iops, write_iops)"
    ),
    "machine: {memory: 2}": (
        "16: host.machine.memory: 2 has no unit: write it as 2 B or 2 MiB (units: B, kB, KB, MB, GB, "
        "TB, KiB, MiB, GiB, TiB)"
    ),
    "file_system: {kind: ext4}": "16: host.file_system.size: this required key is missing",
    "file_system: {kind: ext3, size: 1 GiB}": (
        "16: host.file_system.kind: should be one of ext4, xfs, btrfs; not 'ext3'; did you mean 'ext4'?"
    ),
    "file_system: {size: 1 GiB, mount: noatime}": "16: host.file_system.mount: should be a list, not 'noatime'",
    "file_system: {size: 1 GiB, mount: ['noatime,nodiratime']}": (
        "16: host.file_system.mount: 'noatime,nodiratime' is not one mount option; list each by itself, such as "
        "[noatime, commit=5]"
    ),
    "file_system: {size: 1 GiB, mount: [ro]}": (
        "16: host.file_system.mount: 'ro' is not for a file system that is made for data and written to; leave it out"
    ),
    "file_system: {size: 1 GiB, mkfs: [-m 0]}": (
        "16: host.file_system.mkfs: '-m 0' is not one word; list each by itself, such as [-m, '1']"
    ),
    "file_system: {size: 1 GiB, mkfs: [sda]}": (
        "16: host.file_system.mkfs: 'sda' is no option; begin with one, such as [-m, '1']"
    ),
    "file_system: {kind: btrfs, size: 1 GiB, mkfs: [-d, single, /dev/sda]}": (
        "16: host.file_system.mkfs: '/dev/sda' has a '/': what names a device or a file is not handed on; leave it out"
    ),
    "file_system: {kind: xfs, size: 1 GiB, mkfs: [-l, 'size=32m,logdev=sda']}": (
        "16: host.file_system.mkfs: 'size=32m,logdev=sda' names another device (logdev=), which would be written over; "
        "leave it out"
    ),
    "file_system: {kind: xfs, size: 1 GiB, mkfs: [-m, crc=1, -r, rtdev=sda]}": (
        "16: host.file_system.mkfs: 'rtdev=sda' names another device (rtdev=), which would be written over; leave it "
        "out"
    ),
    "file_system: {size: 1 GiB, mkfs: [-Jdevice=LABEL=journal]}": (
        "16: host.file_system.mkfs: '-Jdevice=LABEL=journal' names another device (device=), which would be written "
        "over; leave it out"
    ),
    "file_system: {kind: xfs, size: 1 GiB, mount: [noatime, logdev=/dev/sda]}": (
        "16: host.file_system.mount: 'logdev=/dev/sda' has a '/': what names a device or a file is not handed on; "
        "leave it out"
    ),
    "file_system: {size: 1 GiB, mount: [noatime, journal_dev=0x801]}": (
        "16: host.file_system.mount: 'journal_dev=0x801' names another device (journal_dev=), which would be written "
        "over; leave it out"
    ),
    "kernel: {aslr: 3}": "16: host.kernel.aslr: should be one of 0, 1, 2; not 3",
    "kernel: {governor: full speed}": (
        "16: host.kernel.governor: 'full speed' is no governor's name; write one such as performance"
    ),
    "kernel: {transparent_hugepages: always on}": (
        "16: host.kernel.transparent_hugepages: should be one of always, madvise, never; not 'always on'; did you mean "
        "'always'?"
    ),
    "{kernel: {aslr: 0}, sysctl: {kernel.randomize_va_space: 2}}": (
        "16: host: kernel.aslr and sysctl's kernel.randomize_va_space are one setting; keep one of them"
    ),
    "require: {truly_cold: true}": (
        "16: host: require.truly_cold is of cold caches alone; write caches: cold, or leave it out"
    ),
    "containers: lxc": "16: host.containers: should be one of docker, podman; not 'lxc'",
    "containers: docker": (
        "16: host.containers: no cell of this study is in a container (system.deployment: native); leave it out"
    ),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_what_the_host_cannot_be_is_told_with_line_key_and_remedy(line: str, tmp_path: Path) -> None:
    said = refusal(tmp_path, with_host(line))
    assert said.partition(" (and ")[0] == MISTAKES[line]


def test_a_kernel_setting_keeps_its_dots_wherever_it_is_set(tmp_path: Path) -> None:
    text = with_host("sysctl: {vm.swappiness: 60}")
    study = load(tmp_path, text, "host.sysctl.vm.swappiness=0", "host.sysctl.vm.dirty_ratio=5")
    assert study.cells[0].host.sysctl == {"vm.swappiness": 0, "vm.dirty_ratio": 5}
    varied = text.replace(
        "journal: [delete, wal]", "journal: [delete, wal]\n  swap: {no: {host.sysctl.vm.swappiness: 0}}"
    )
    assert {cell.host.sysctl["vm.swappiness"] for cell in load(tmp_path, varied).cells} == {0}


# Deployments


def deployments(levels: str, more: str = "") -> str:
    """The example with a compared factor of deployments."""
    return changed({4: f"  journal: [delete]\n  where: {levels}", 15: f"compare: where\n{more}".rstrip()})


NAMED = "[native, container-layered, container-volume]"


def test_a_deployment_may_be_any_that_there_is(tmp_path: Path) -> None:
    text = deployments(NAMED).replace("  kind: sqlite\n", "  kind: sqlite\n  deployment: ${where}\n")
    assert [cell.deployment for cell in load(tmp_path, text).cells][::2] == NAMED.strip("[]").split(", ")


def test_an_unknown_deployment_names_the_nearest_and_where_it_came_from(tmp_path: Path) -> None:
    text = deployments("[native, container-layred]").replace(
        "  kind: sqlite\n", "  kind: sqlite\n  deployment: ${where}\n"
    )
    assert refusal(tmp_path, text) == (
        "5: system.deployment: unknown deployment 'container-layred'; did you mean 'container-layered'? (deployments: "
        "native, container-layered, container-volume) (from '${where}')"
    )


def test_an_engine_may_be_named_where_one_cell_has_a_container(tmp_path: Path) -> None:
    text = deployments(NAMED, "host: {containers: podman}").replace(
        "  kind: sqlite\n", "  kind: sqlite\n  deployment: ${where}\n"
    )
    assert {cell.host.containers for cell in load(tmp_path, text).cells} == {"podman"}


# What is compared has one kind of machine


SIZES = """
    small: {%s, host.machine: {cpus: 1, memory: 1 GiB}}
    large: {%s, host.machine: {cpus: 1, memory: 4 GiB}}"""


@pytest.mark.parametrize(
    ("set_too", "what"),
    [
        (("system.deployment: native", "system.deployment: container-volume"), "deployment"),
        (("system.config.busy_timeout: 1 s", "system.config.busy_timeout: 2 s"), "system"),
        (("workload.records: 1", "workload.records: 2"), "workload"),
    ],
)
def test_systems_are_not_compared_on_unlike_machines(set_too: tuple[str, str], what: str, tmp_path: Path) -> None:
    assert refusal(tmp_path, deployments(SIZES % set_too)).partition(" (and ")[0] == (
        f"7: host.machine.memory: differs between where=small and where=large, which differ in their {what} too; write "
        "one for both, or vary it alone"
    )


@pytest.mark.parametrize(
    ("small", "large", "key"),
    [
        ("host.file_system.size: 1 GiB", "host.file_system.size: 2 GiB", "host.file_system.size"),
        ("host.file_system.size: 1 GiB", "system.config.exclusive: false", "host.file_system"),
        ("host.sysctl.vm.swappiness: 1", "host.sysctl.vm.swappiness: 0", "host.sysctl.vm.swappiness"),
        ("host.kernel.turbo: false", "host.kernel.turbo: true", "host.kernel.turbo"),
    ],
)
def test_nor_on_unlike_file_systems_or_kernels(small: str, large: str, key: str, tmp_path: Path) -> None:
    levels = f"\n    small: {{{small}}}\n    large: {{{large}, system.deployment: container-layered}}"
    assert f" {key}: differs between where=small and where=large" in refusal(tmp_path, deployments(levels))


def test_machines_may_be_what_is_compared(tmp_path: Path) -> None:
    study = load(tmp_path, deployments("{small: {host.machine.memory: 1 GiB}, large: {host.machine.memory: 4 GiB}}"))
    assert len({cell.host.machine.memory for cell in study.cells}) == 2


def test_disks_may_be_what_is_compared(tmp_path: Path) -> None:
    slow, fast = "host.machine.disk.read_iops: 200", "host.machine.disk: {read_bandwidth: 1 GB/s}"
    study = load(tmp_path, deployments(f"{{slow: {{{slow}}}, fast: {{{fast}}}}}"))
    assert {tuple(cell.host.machine.disk.limits.items()) for cell in study.cells} == {
        (("reads", 200),),
        (("read_bytes", 10**9),),
    }


def test_machines_may_vary_beside_what_is_compared(tmp_path: Path) -> None:
    text = changed({5: "  threads: [1, 4]\n  size: {small: {host.machine.cpus: 1}, large: {host.machine.cpus: 2}}"})
    assert len(load(tmp_path, text).cells) == 8
