"""What of the device of the data a system used: of that which limits count."""

from __future__ import annotations

from typing import Final

from dyno.model.usage import Usage

_OF_DEVICE: Final = {
    "read_bytes": "disk.read",
    "write_bytes": "disk.written",
    "reads": "disk.reads",
    "writes": "disk.writes",
}
_OF_GROUP: Final = {
    "read_bytes": ("cgroup.rkB_s", 1024),
    "write_bytes": ("cgroup.wkB_s", 1024),
    "reads": ("cgroup.r_s", 1),
    "writes": ("cgroup.w_s", 1),
}


def amounts_a_second(used: Usage, of: str) -> dict[str, float]:
    """By what is limited; what was not observed is left out. `of` is server or driver.

    Others may read and write a shared device too; a group counts what it does on a loop device once more below it.
    """
    found = {}
    for name, of_device in _OF_DEVICE.items():
        metric, scale = _OF_GROUP[name]
        of_group = used.means.get(f"{of}.{metric}")
        if of_group is not None and not used.own_device:
            found[name] = of_group * scale
        elif of_device in used.per_s:
            found[name] = used.per_s[of_device]
    return found
