"""What samples tell of the machine and of the device of the data: a run has the mean of each over its measured part.

Names and units are those of `schema/metrics.json`, bytes as `B`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_BY_UNIT: Final = {
    "%": "cpu.usr cpu.nice cpu.sys cpu.iowait cpu.irq cpu.soft cpu.steal cpu.idle cpu.guest cpu.gnice sched.run_delay "
    "vm.vmeff mem.used_share mem.commit_share psi.cpu.some psi.memory.some psi.memory.full psi.io.some psi.io.full "
    "disk.rrqm disk.wrqm disk.util",
    "1/s": "vm.cs vm.in vm.pgfault vm.pgmajfault vm.pgfree vm.pgscank vm.pgscand vm.pgsteal vm.refault "
    "disk.r_s disk.w_s disk.f_s disk.rrqm_s disk.wrqm_s tcp.iseg_s tcp.oseg_s tcp.retrans_s",
    "1": "vm.r vm.b disk.aqu_sz",
    "KiB/s": "vm.bi vm.bo vm.si vm.so disk.rkB_s disk.wkB_s",
    "KiB": "disk.rareq_sz disk.wareq_sz",
    "ms": "disk.r_await disk.w_await disk.f_await",
    "us": "sched.run_delay_mean",
    "B": "mem.free mem.available mem.cached mem.dirty mem.writeback mem.used mem.buffers mem.commit mem.active "
    "mem.inact mem.anonpg mem.mapped mem.shmem mem.slab mem.swpd",
}

SAMPLED: Final[Mapping[str, str]] = {name: unit for unit, names in _BY_UNIT.items() for name in names.split()}
"""Metric to unit."""
