"""What DRBD and Pacemaker are told, and how what DRBD says is read."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from dyno.hosts import LocalHost, UndoJournal
from dyno.hosts.vms import Acceleration
from dyno.model.base import RunError
from dyno.systems import drbd_resource
from dyno.systems.base import Place
from dyno.systems.drbd import DrbdOptions, DrbdSystem

ADDRESSES = {"n1": "10.213.0.11", "n2": "10.213.0.12"}

# As DRBD 8.4.11 of Linux 6.1 says it, on a primary that is connected, in a resync, and alone.
CONNECTED = """version: 8.4.11 (api:1/proto:86-101)
srcversion: 211FB288A383ED945B83420
 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----
    ns:5632 nr:16 dw:5648 dr:1021 al:9 bm:2 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:0
"""
SYNCING = """version: 8.4.11 (api:1/proto:86-101)
 0: cs:SyncTarget ro:Secondary/Primary ds:Inconsistent/UpToDate A r-----
    ns:0 nr:131072 dw:131072 dr:0 al:0 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:d oos:131020
\t[=========>..........] sync'ed: 50.2% (131020/262092)K
"""
ALONE = " 0: cs:StandAlone ro:Primary/Unknown ds:UpToDate/DUnknown   r-----\n    ns:0 nr:0 oos:8192"
UNCONFIGURED = "version: 8.4.11 (api:1/proto:86-101)\n 0: cs:Unconfigured\n"


def test_a_connected_node_tells_roles_disks_protocol_counters_and_how_writes_are_ordered() -> None:
    now = drbd_resource.replication(CONNECTED)
    assert (now.role, now.peer, now.protocol, now.ordering) == ("Primary", "Secondary", "C", "flush")
    assert now.in_step
    assert {name: now.counters[name] for name in ("ns", "dw", "oos")} == {"ns": 5632, "dw": 5648, "oos": 0}
    assert drbd_resource.module_version(CONNECTED) == "8.4.11"


@pytest.mark.parametrize("said", [SYNCING, ALONE, UNCONFIGURED])
def test_a_node_that_has_not_all_is_not_in_step(said: str) -> None:
    assert not drbd_resource.replication(said).in_step


def test_a_node_that_is_alone_tells_no_protocol_and_what_the_other_has_not() -> None:
    now = drbd_resource.replication(ALONE)
    assert (now.connection, now.peer, now.peer_disk, now.protocol) == ("StandAlone", "Unknown", "DUnknown", "")
    assert now.counters["oos"] == 8192


def test_a_module_without_a_device_is_an_error_that_says_so() -> None:
    with pytest.raises(RunError, match="DRBD has no device yet: version: 8"):
        drbd_resource.replication("version: 8.4.11 (api:1/proto:86-101)\n")


# As `drbdsetup show r0 --show-defaults` of drbd-utils 9.22 with DRBD 8.4 has it, shortened.
SHOWN = """
resource r0 {
    options {
        cpu-mask        \t"";
        on-no-data-accessible\tio-error;
    }
    net {
        transport       \t"";
        protocol        \tC;
        timeout         \t20; # 1/10 seconds
        max-epoch-size  \t2048;
        max-buffers     \t8000;
        unplug-watermark\t16;
        sndbuf-size     \t0; # bytes
        tcp-cork        \tyes;
    }
    _remote_host {
        address\t\t\tipv4 10.213.0.12:7789;
    }
    _this_host {
        volume 0 {
            device\t\t\tminor 0;
            disk\t\t\t"/dev/vdb";
            meta-disk\t\t\tinternal;
            disk {
                al-extents      \t3389;
                disk-barrier    \tno;
                disk-flushes    \tno;
                resync-rate     \t204800k; # bytes/second
            }
        }
    }
}
"""


def test_effective_settings_are_read_in_their_base_unit() -> None:
    found = drbd_resource.effective(SHOWN)
    wanted = {
        "protocol": "C", "max-buffers": 8000, "max-epoch-size": 2048, "unplug-watermark": 16, "sndbuf-size": 0,
        "al-extents": 3389, "disk-barrier": False, "disk-flushes": False, "resync-rate": 204800 * 1024,
    }  # fmt: skip
    assert {name: found[name] for name in wanted} == wanted


def test_a_resource_has_what_was_asked_for_in_its_own_section_and_nothing_else() -> None:
    told = drbd_resource.resource(ADDRESSES, {"protocol": "A", "max-buffers": 8000, "disk-flushes": False}, 3.0)
    net, disk = (next(line for line in told.splitlines() if f" {part} {{" in line) for part in ("net", "disk"))
    assert "protocol A;" in net
    assert "max-buffers 8000;" in net
    assert "disk-flushes no;" in disk
    assert "al-extents" not in told
    assert "timeout 30; ping-timeout 30; ping-int 4; connect-int 4;" in net
    assert "on n2 { address 10.213.0.12:7789; }" in told


def test_room_for_drbds_own_data_is_what_its_manual_says_and_in_whole_pages() -> None:
    for size in (192 << 20, 512 << 20, 100 << 30):
        taken = drbd_resource.metadata_bytes(size)
        assert taken % 4096 == 0
        assert taken >= 36 * 1024 + size // 32768


def test_pacemaker_is_told_to_keep_server_and_address_on_the_primary_of_the_disk() -> None:
    root = ElementTree.fromstring(drbd_resource.cluster("n1", "10.213.0.101"))
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert len(ids) == len(set(ids))
    assert [each.get("id") for each in root.findall(".//group/primitive")] == ["files", "server", "address"]
    (together,) = root.findall(".//rsc_colocation")
    assert (together.get("with-rsc"), together.get("with-rsc-role")) == ("disks", "Promoted")
    (address,) = root.findall(".//primitive[@id='address']//nvpair[@name='ip']")
    assert address.get("value") == "10.213.0.101"


def test_corosync_is_told_of_both_nodes_and_how_long_one_may_be_silent() -> None:
    told = drbd_resource.corosync(ADDRESSES, 2.5)
    assert "token: 2500" in told
    assert "two_node: 1" in told
    assert told.count("ring0_addr") == 2


def options(**given: Any) -> DrbdOptions:
    return DrbdOptions.model_validate(given)


@pytest.fixture
def system(journal: UndoJournal, tmp_path: Path) -> Any:
    def made(**given: Any) -> DrbdSystem:
        place = Place(host=LocalHost(journal), data=tmp_path / "live", logs=tmp_path / "logs", core="")
        found = DrbdSystem(options(**given), place)
        found._accelerated = Acceleration("tcg", "it hangs")
        return found

    return made


def test_options_of_drbd_are_asked_for_by_drbds_own_names_and_others_are_the_servers() -> None:
    asked = options(protocol="A", max_buffers=8000, sndbuf_size=0, disk_flushes=False, innodb_buffer_pool_size="64M")
    assert asked.of_drbd == {"protocol": "A", "max-buffers": 8000, "sndbuf-size": 0, "disk-flushes": False}
    assert asked.settings == {"innodb_buffer_pool_size": "64M"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"protocol": "D"},
        {"max_buffers": 8},
        {"nodes": 3},
        {"al_extents": 7},
        {"node_disk": "10 MiB"},
        {"datadir": "/x"},
    ],
)
def test_what_drbd_cannot_have_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        options(**wrong)


def test_notes_say_which_settings_can_change_nothing(system: Any) -> None:
    told = " ".join(system(unplug_watermark=16, disk_barrier=False, sndbuf_size=0).notes())
    assert "unplug_watermark of DRBD can change nothing here, so that its levels are one" in told
    assert "disk_barrier of DRBD can change nothing here" in told
    assert "sndbuf_size: 0 is what DRBD has by default" in told
    assert "unplug_watermark" not in " ".join(system().notes())


def test_notes_say_what_durability_is_given_up_and_that_cpus_are_emulated(system: Any) -> None:
    told = " ".join(system(disk_flushes=False, protocol="A").notes())
    assert "disk_flushes: false gives up durability" in told
    assert "Protocol A: a write is acknowledged before it is on the other node's disk" in told
    assert "emulated by software (it hangs)" in told


def test_a_delay_is_of_what_goes_to_the_peer_alone() -> None:
    told = drbd_resource.delayed(0.02, "10.213.0.12")
    assert "netem delay 20.000ms" in told
    assert "match ip dst 10.213.0.12/32" in told
