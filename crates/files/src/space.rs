//! Whether there is room for what a workload takes, before it takes it: a file system that is full, or a machine that
//! is out of memory, is everybody's trouble.

use std::collections::BTreeMap;
use std::path::Path;

use crate::device;
use crate::fileset::{Plan, plan_tree, share_of};
use crate::program::Program;

/// Refuses filesets that do not fit on their file systems, or devices, but for those of which nothing is written.
pub fn refuse_too_large(plans: &[Plan], seed: u64) -> Result<(), String> {
    let mut wanted: BTreeMap<u64, (u64, u64, &Plan)> = BTreeMap::new();
    for plan in plans.iter().filter(|plan| !plan.trust) {
        let tree = plan_tree(plan, seed)?;
        if let Some(size) = device::size_at(plan)? {
            if tree.bytes() > size {
                return Err(format!(
                    "file {} is to have {} bytes, and the device {} has {size}; a smaller size is needed (--set)",
                    plan.name,
                    tree.bytes(),
                    plan.path.display()
                ));
            }
            continue;
        }
        let Some((device, free)) = free_at(&plan.path) else {
            continue;
        };
        let files = tree.files.len();
        let at_start = share_of(files, plan.prealloc) as f64 / files.max(1) as f64;
        let bytes = crate::number::count(tree.bytes() as f64 * at_start);
        let of = wanted.entry(device).or_insert((0, free, plan));
        of.0 += bytes;
        of.1 += held(&plan.path);
    }
    for (bytes, free, plan) in wanted.into_values() {
        if bytes > free {
            return Err(format!(
                "the filesets take {bytes} bytes at the start, and the file system of {} has {free} left; smaller or fewer \
                 files are needed (--set), or another path",
                plan.path.display()
            ));
        }
    }
    Ok(())
}

/// The file system that a path will be on, and how many bytes it has left.
fn free_at(path: &Path) -> Option<(u64, u64)> {
    let there = path.ancestors().skip(1).find(|path| path.exists())?;
    let device = rustix::fs::stat(there).ok()?.st_dev;
    let of_system = rustix::fs::statvfs(there).ok()?;
    let free = of_system.f_bavail.saturating_mul(of_system.f_frsize);
    Some((device, free))
}

/// Bytes that the files of a tree take: they are kept, or go before the new ones are made.
fn held(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(entries) = std::fs::read_dir(path) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => held(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}

/// Refuses threads whose memory is more than the machine has available.
pub fn refuse_too_much_memory(program: &Program) -> Result<(), String> {
    let wanted: u64 = program
        .threads
        .iter()
        .map(|plan| (plan.memory as u64).saturating_mul(plan.count() as u64))
        .fold(0, u64::saturating_add);
    let Some(available) = available_memory() else {
        return Ok(());
    };
    if wanted > available {
        return Err(format!(
            "the threads' memory (memsize) is {wanted} bytes in all, and {available} are available; fewer threads or a \
             smaller memsize are needed"
        ));
    }
    Ok(())
}

fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
