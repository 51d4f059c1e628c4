"""What DRBD and Pacemaker are told, and what DRBD says of itself; nothing here asks anybody.

The words are those of DRBD 8.4, which the distribution's kernel has (drbd.conf(5), drbdsetup(8)).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from dyno.model.base import RunError, Scalar

RESOURCE = "r0"
DEVICE, BACKING = "/dev/drbd0", "/dev/vdb"
PORT = 7789
DATA = "/server/srv/db"
"""Where the file system of the device is mounted."""

NET = ("protocol", "max-buffers", "max-epoch-size", "sndbuf-size", "rcvbuf-size", "unplug-watermark")
DISK = ("al-extents", "disk-barrier", "disk-flushes", "md-flushes")
# What a node that was given up while it lived has written since is its own alone, and goes where it joins again.
_SPLIT: Mapping[str, Scalar] = {
    "after-sb-0pri": "discard-zero-changes",
    "after-sb-1pri": "discard-secondary",
    "after-sb-2pri": "disconnect",
}
_RESYNC: Mapping[str, Scalar] = {"c-plan-ahead": 0, "resync-rate": "200M", "c-min-rate": 0}

DEAD: Mapping[str, str] = {
    "unplug-watermark": "kernels since 2.6.39 plug requests on the stack of whoever makes them, and DRBD has no use "
    "for it any more (drbd.conf(5) of 8.4)",
    "disk-barrier": "the DRBD of such kernels keeps no order by barriers, and flushes where disk_flushes allows it",
}
"""Settings that are accepted, and change nothing with the kernel of the machines; and why."""
METHODS = {"b": "barrier", "f": "flush", "d": "drain", "n": "none"}
"""How DRBD keeps writes in order on the disk below, by the letter after `wo:`."""

_MULTIPLES = {"": 1, "s": 512, "k": 2**10, "m": 2**20, "g": 2**30}


def resource(addresses: Mapping[str, str], options: Mapping[str, Scalar], silent_for: float) -> str:
    """The file of the resource, for nodes by their names; with those `options` of `NET` and `DISK` that are given.

    A peer is given up that has not answered a write, or where nothing is written a ping, for so many seconds.
    """
    net = {**_given(NET, options), **_timing(silent_for), **_SPLIT}
    disk = {**_given(DISK, options), **_RESYNC}
    on = "".join(f"  on {name} {{ address {address}:{PORT}; }}\n" for name, address in addresses.items())
    return (
        f"global {{ usage-count no; }}\n"
        f"resource {RESOURCE} {{\n"
        f"  net {{ {_statements(net)} }}\n"
        f"  disk {{ {_statements(disk)} }}\n"
        f"  device {DEVICE}; disk {BACKING}; meta-disk internal;\n"
        f"{on}}}\n"
    )


def _given(names: Sequence[str], options: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {name: options[name] for name in names if name in options}


def _timing(silent_for: float) -> dict[str, Scalar]:
    """In s and tenths of s; a time limit has to be below the two intervals."""
    between = max(math.ceil(silent_for), 1) + 1
    limit = round(10 * silent_for)
    return {"timeout": limit, "ping-timeout": limit, "ping-int": between, "connect-int": between}


def _statements(options: Mapping[str, Scalar]) -> str:
    return " ".join(f"{name} {_word(value)};" for name, value in options.items())


def _word(value: Scalar) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def metadata_bytes(disk: int) -> int:
    """What DRBD's own data take at the end of a disk of so many bytes, and a little more (drbd.conf(5), meta-disk)."""
    return (36 * 2**10 + disk // 2**15 + 2**20 + 4095) // 4096 * 4096


def effective(said: str) -> dict[str, Scalar]:
    """The settings in `drbdsetup show --show-defaults`, by name: numbers in their base unit, switches, words."""
    found: dict[str, Scalar] = {}
    for line in said.splitlines():
        if match := re.match(r"\s*([a-z][a-z0-9-]*)\s+([^;{}]+);", line):
            found[match[1]] = _value(match[2].strip())
    return found


def _value(text: str) -> Scalar:
    if text in ("yes", "no"):
        return text == "yes"
    number = re.fullmatch(r"(\d+)([skmgSKMG]?)", text)
    return text.strip('"') if number is None else int(number[1]) * _MULTIPLES[number[2].lower()]


@dataclass(frozen=True)
class Replication:
    """A node's line in /proc/drbd, and the counters below it: `role`, `peer` Primary, Secondary or Unknown."""

    connection: str
    role: str
    peer: str
    disk: str
    peer_disk: str
    protocol: str
    counters: Mapping[str, int]
    ordering: str

    @property
    def in_step(self) -> bool:
        """Whether both disks hold the same, as far as this node knows."""
        return (self.connection, self.disk, self.peer_disk) == ("Connected", "UpToDate", "UpToDate")

    def __str__(self) -> str:
        return f"{self.connection}, {self.disk}/{self.peer_disk}"


_STATE = re.compile(r"^\s*0: cs:(\w+)(?: ro:(\w+)/(\w+) ds:(\w+)/(\w+) (\w?))?", re.MULTILINE)
_COUNTER = re.compile(r"\b([a-z]{2,3}):(\d+)")
COUNTERS = {"ns": "sent_kib", "nr": "received_kib", "dw": "written_kib", "dr": "read_kib", "al": "log_writes"}
COUNTERS |= {"bm": "bitmap_writes", "oos": "out_of_sync_kib"}
"""Of the counters those that tell something of a run, and what they are called there."""


def replication(said: str) -> Replication:
    """What /proc/drbd says of the device. Raises RunError where it has none."""
    state = _STATE.search(said)
    if state is None:
        raise RunError(f"DRBD has no device yet: {' '.join(said.split()) or '/proc/drbd is empty'}")
    below = said[state.end() :]
    ordering = re.search(r"\bwo:(\w)", below)
    return Replication(
        connection=state[1],
        role=state[2] or "Unknown",
        peer=state[3] or "Unknown",
        disk=state[4] or "Diskless",
        peer_disk=state[5] or "DUnknown",
        protocol=state[6] or "",
        counters={name: int(value) for name, value in _COUNTER.findall(below)},
        ordering=METHODS.get(ordering[1], ordering[1]) if ordering else "unknown",
    )


def module_version(said: str) -> str:
    """The first line of /proc/drbd: the version of what runs in the kernel."""
    found = re.search(r"^version: (\S+)", said, re.MULTILINE)
    return found[1] if found else "unknown"


# ---- Pacemaker and what it stands on.


def corosync(addresses: Mapping[str, str], silent_for: float) -> str:
    """corosync.conf of two nodes, of which one goes on alone once the other was silent for so many seconds."""
    nodes = "".join(
        f"  node {{\n    name: {name}\n    nodeid: {number}\n    ring0_addr: {address}\n  }}\n"
        for number, (name, address) in enumerate(addresses.items(), 1)
    )
    return (
        "totem {\n  version: 2\n  cluster_name: dyno\n  transport: udpu\n  crypto_cipher: none\n  crypto_hash: none\n"
        f"  token: {round(silent_for * 1000)}\n}}\n"
        "quorum {\n  provider: corosync_votequorum\n  two_node: 1\n  wait_for_all: 0\n}\n"
        f"nodelist {{\n{nodes}}}\n"
        "logging {\n  to_stderr: no\n  to_syslog: no\n  to_logfile: yes\n  logfile: /var/log/cluster/corosync.log\n}\n"
    )


_OPERATION_S = 180
"""How long one of a resource may take: an emulated CPU is slow, and nothing is faster for a shorter limit.

Nor is any looked at often, since each look starts many programs: that a node is gone corosync notices without.
"""


def cluster(first: str, address: str) -> str:
    """What Pacemaker is to keep up: the disk's primary, and with it file system, server and address; on `first` first.

    Without fencing by a device of its own, which machines here have not: a node that is given up while it lives is
    fenced when it is mended.
    """
    disk = _primitive(
        "disk",
        "ocf:linbit:drbd",
        {"drbd_resource": RESOURCE},
        [("monitor", "59s", "Promoted"), ("monitor", "61s", "Unpromoted")],
    )
    group = [
        _primitive(
            "files",
            "ocf:heartbeat:Filesystem",
            {"device": DEVICE, "directory": DATA, "fstype": "ext4", "options": "noatime"},
            [("monitor", "120s", "")],
        ),
        _primitive("server", "ocf:dyno:server", {}, [("monitor", "10s", "")]),
        _primitive(
            "address",
            "ocf:heartbeat:IPaddr2",
            {"ip": address, "cidr_netmask": "24", "nic": "eth0", "arp_count": "3", "arp_interval": "100"},
            [("monitor", "120s", "")],
        ),
    ]
    meta = {
        "promotable": "true", "promoted-max": "1", "promoted-node-max": "1", "clone-max": "2", "clone-node-max": "1",
        "notify": "true",
    }  # fmt: skip
    options = {
        "stonith-enabled": "false", "no-quorum-policy": "ignore", "start-failure-is-fatal": "false",
        # How long nodes that start wait for one that leads already, which there is none of at first.
        "dc-deadtime": "5s",
    }  # fmt: skip
    return (
        # Since 3.7 roles are called Promoted and Unpromoted.
        '<cib validate-with="pacemaker-3.7" epoch="1" num_updates="0" admin_epoch="1"><configuration><crm_config>'
        f'<cluster_property_set id="options">{_pairs("options", options)}</cluster_property_set></crm_config>'
        '<nodes/><resources><clone id="disks">'
        f'<meta_attributes id="disks-meta">{_pairs("disks-meta", meta)}</meta_attributes>{disk}</clone>'
        f'<group id="database">{"".join(group)}</group></resources><constraints>'
        f'<rsc_location id="first" rsc="database" node={quoteattr(first)} score="50"/>'
        '<rsc_colocation id="on-primary" rsc="database" with-rsc="disks" with-rsc-role="Promoted" score="INFINITY"/>'
        '<rsc_order id="after-promotion" first="disks" first-action="promote" then="database" then-action="start"/>'
        '</constraints><rsc_defaults><meta_attributes id="defaults">'
        f"{_pairs('defaults', {'resource-stickiness': '1000'})}</meta_attributes></rsc_defaults>"
        "</configuration><status/></cib>"
    )


def _primitive(name: str, kind: str, parameters: Mapping[str, str], operations: Sequence[tuple[str, str, str]]) -> str:
    standard, provider, agent = kind.split(":")
    told = [(action, interval, role) for action, interval, role in operations]
    told += [(action, "0s", "") for action in ("start", "stop", *(("promote", "demote") if agent == "drbd" else ()))]
    made = "".join(
        f'<op id="{name}-{action}-{interval}" name="{action}" interval="{interval}" timeout="{_OPERATION_S}s"'
        f"{f' role={quoteattr(role)}' if role else ''}/>"
        for action, interval, role in told
    )
    given = f'<instance_attributes id="{name}-attributes">{_pairs(name, parameters)}</instance_attributes>'
    head = f'<primitive id="{name}" class="{standard}" provider="{provider}" type="{agent}">'
    return f"{head}{given if parameters else ''}<operations>{made}</operations></primitive>"


def _pairs(of: str, values: Mapping[str, str]) -> str:
    return "".join(
        f'<nvpair id="{of}-{name}" name={quoteattr(name)} value={quoteattr(value)}/>' for name, value in values.items()
    )


# ---- Delays and cuts, by the machine's own kernel.


def delayed(seconds: float, peer: str) -> str:
    """Have what a node sends to its peer, and that alone, arrive so much later."""
    if not seconds:
        return "tc qdisc del dev eth0 root 2>/dev/null; true"
    # The kernel puts no queue of one kind in the place of another's that has a handle: what is there goes first.
    return (
        "{ tc qdisc del dev eth0 root 2>/dev/null; true; } && "
        "tc qdisc add dev eth0 root handle 1: prio bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1 && "
        f"tc qdisc add dev eth0 parent 1:4 handle 40: netem delay {seconds * 1000:.3f}ms limit 100000 && "
        f"tc filter add dev eth0 parent 1: protocol ip u32 match ip dst {peer}/32 flowid 1:4"
    )


def slowed(seconds: float, rate: int) -> str:
    """Have all that a node sends arrive so much later, at so many bytes a second."""
    return (
        "{ tc qdisc del dev eth0 root 2>/dev/null; true; } && "
        f"tc qdisc add dev eth0 root netem delay {seconds * 1000:.3f}ms rate {8 * rate}bit limit 100000"
    )


def deaf_and_dumb(address: str) -> str:
    """Have nothing pass between a node and an address."""
    return (
        "tc qdisc add dev eth0 clsact && "
        f"tc filter add dev eth0 ingress protocol ip u32 match ip src {address}/32 action drop && "
        f"tc filter add dev eth0 egress protocol ip u32 match ip dst {address}/32 action drop"
    )


def dumb() -> str:
    """Have nothing that a node sends arrive; it still hears all."""
    return "tc qdisc add dev eth0 clsact && tc filter add dev eth0 egress protocol all matchall action drop"


def healed() -> str:
    """Take back `deaf_and_dumb` and `dumb`."""
    return "tc qdisc del dev eth0 clsact 2>/dev/null; true"
