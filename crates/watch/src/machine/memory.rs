//! What memory is used for, as sar -r and vmstat tell it.

use crate::proc_file::{Buffer, ProcFile};
use crate::sample::{Samples, per};
use crate::text::numbers_of;

/// Keys in `/proc/meminfo`, where KiB stand. The first ones are used below by their places.
const KEYS: [&str; 21] = [
    "MemTotal",
    "MemFree",
    "Buffers",
    "Cached",
    "Slab",
    "Committed_AS",
    "SwapTotal",
    "SwapFree",
    "MemAvailable",
    "Dirty",
    "Writeback",
    "Active",
    "Inactive",
    "AnonPages",
    "Mapped",
    "Shmem",
    "SReclaimable",
    "KernelStack",
    "PageTables",
    "VmallocUsed",
    "SwapCached",
];

/// Their metrics.
const METRICS: [&str; KEYS.len()] = [
    "mem.total",
    "mem.free",
    "mem.buffers",
    "mem.cached",
    "mem.slab",
    "mem.commit",
    "mem.swap_total",
    "mem.swap_free",
    "mem.available",
    "mem.dirty",
    "mem.writeback",
    "mem.active",
    "mem.inact",
    "mem.anonpg",
    "mem.mapped",
    "mem.shmem",
    "mem.sreclaimable",
    "mem.kstack",
    "mem.pgtbl",
    "mem.vmused",
    "mem.swap_cached",
];

#[derive(Debug)]
pub struct Memory(ProcFile);

impl Memory {
    pub fn new(file: ProcFile) -> Self {
        Self(file)
    }

    pub fn sample(&self, buffer: &mut Buffer, samples: &mut Samples) {
        let Ok(text) = self.0.read(buffer) else {
            return;
        };
        let bytes = numbers_of(text, &KEYS).map(|kib| kib.map(|kib| kib as f64 * 1024.0));
        for (metric, value) in METRICS.into_iter().zip(bytes) {
            samples.add_machine(metric, value);
        }
        for (metric, value) in derived(&bytes) {
            samples.add_machine(metric, value);
        }
    }
}

/// What sar and vmstat reckon from several.
fn derived(bytes: &[Option<f64>; KEYS.len()]) -> [(&'static str, Option<f64>); 4] {
    let [
        total,
        free,
        buffers,
        cached,
        slab,
        commit,
        swap_total,
        swap_free,
        ..,
    ] = *bytes;
    let used = (|| Some((total? - free? - buffers? - cached? - slab?).max(0.0)))();
    let swapped = swap_total.zip(swap_free).map(|(all, free)| all - free);
    let whole = total.unwrap_or(0.0);
    let percent = |value: Option<f64>, of| per(value.map(|value| 100.0 * value), of);
    [
        ("mem.used", used),
        ("mem.used_share", percent(used, whole)),
        (
            "mem.commit_share",
            percent(commit, whole + swap_total.unwrap_or(0.0)),
        ),
        ("mem.swpd", swapped),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn used_memory_is_what_sar_calls_so() {
        let text = b"MemTotal: 1000 kB\nMemFree: 300 kB\nBuffers: 50 kB\nCached: 250 kB\nSwapTotal: 1000 kB\nSwapFree: 900 kB\nSlab: 100 kB\nCommitted_AS: 500 kB\n";
        let bytes = numbers_of(text, &KEYS).map(|kib| kib.map(|kib| kib as f64));
        let found = derived(&bytes).map(|(_, value)| value);
        assert_eq!(found, [Some(300.0), Some(30.0), Some(25.0), Some(100.0)]);
    }

    #[test]
    fn without_one_of_its_parts_used_memory_is_not_known() {
        // Linux before 2.6.19 told no Slab in this file on some machines.
        let text = b"MemTotal: 1000 kB\nMemFree: 300 kB\nBuffers: 50 kB\nCached: 250 kB\nCommitted_AS: 500 kB\n";
        let bytes = numbers_of(text, &KEYS).map(|kib| kib.map(|kib| kib as f64));
        let found = derived(&bytes).map(|(_, value)| value);
        assert_eq!(found, [None, None, Some(50.0), None]);
    }
}
