//! What a power failure leaves of a disk with a volatile cache.
//!
//! The model: a write that a completed flush covers is there. So is one that the cache, which holds the
//! latest writes up to its size, has had to give up for later ones. Of the others, up to the point of the
//! cut, some are there and some are not, whole or in part: by sectors, none of which is ever torn. What
//! a sector holds is the last of the writes to it that is there, so that a sector never goes back from a
//! later write to an earlier one that was there already; but any of its writes since the flush can be the
//! last one that is there, whatever became of the writes to other sectors.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use clap::ValueEnum;
use dyno_load::Random;
use rangemap::RangeMap;
use serde::Serialize;

use crate::disk::punch;
use crate::log::{Asked, Entry, Log};

/// Which of the writes in the cache are there afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Those before some write, and a part of that one: a cache that is written back in order
    Ordered,
    /// Any of them, some in part: a cache that is written back as it suits the disk
    Any,
    /// None: a cache that was not written back yet
    None,
    /// All: a cache that is written back with its last energy
    All,
}

/// A power failure.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    /// How many of the records had been acknowledged.
    pub point: u64,
    /// What is left to chance is a function of it.
    pub seed: u64,
    /// What becomes of the cache.
    pub mode: Mode,
    /// What is written whole or not at all, in bytes.
    pub sector: u64,
    /// How much the cache holds, in bytes.
    pub cache: u64,
}

/// What the bytes of a range come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Zeros,
    /// The data of the record with that number.
    Record(usize),
}

/// What a cut did to the writes in the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Fate {
    /// Writes and discards that were there for sure.
    pub durable: u64,
    /// Those that were in the cache.
    pub volatile: u64,
    /// Of these, how many are there whole.
    pub kept: u64,
    /// Of these, how many are there in part.
    pub torn: u64,
}

/// What a disk holds after a cut, by ranges of bytes; elsewhere it holds what it held when recording began.
pub struct Remains {
    ranges: RangeMap<u64, Source>,
    /// What became of the cache.
    pub fate: Fate,
}

/// Decides what a cut leaves.
#[must_use]
pub fn cut(log: &Log, cut: &Cut) -> Remains {
    let before =
        usize::try_from(cut.point).map_or(log.entries.len(), |point| point.min(log.entries.len()));
    let entries = &log.entries[..before];
    let settled = settled(entries, cut.cache);
    let mut remains = Remains {
        ranges: RangeMap::new(),
        fate: Fate::default(),
    };
    for (number, entry) in entries[..settled].iter().enumerate() {
        if let Some((range, source)) = change(number, entry) {
            remains.ranges.insert(range, source);
            remains.fate.durable += 1;
        }
    }
    let cached: Vec<_> = (settled..before)
        .filter_map(|number| change(number, &entries[number]))
        .collect();
    remains.fate.volatile = cached.len() as u64;
    let mut chance = Random::new(cut.seed, 0);
    let (written_back, likely) = match cut.mode {
        Mode::Ordered => (
            usize::try_from(chance.below(cached.len() as u64 + 1)).unwrap_or(cached.len()),
            1.0,
        ),
        // Else most cuts would lose about half of the cache, and hardly one almost nothing or almost all.
        Mode::Any => (cached.len(), chance.next_f64()),
        Mode::None => (0, 0.0),
        Mode::All => (cached.len(), 1.0),
    };
    for (place, (range, source)) in cached.into_iter().enumerate() {
        let parts = match cut.mode {
            Mode::Any => match (chance.next_f64() < likely, chance.below(TEARS_ONE_IN)) {
                (false, _) => continue,
                (true, 0) => some_parts(&range, cut.sector, &mut chance),
                (true, _) => vec![range.clone()],
            },
            Mode::Ordered if place == written_back => first_part(&range, cut.sector, &mut chance),
            _ if place < written_back => vec![range.clone()],
            _ => continue,
        };
        let kept: u64 = parts.iter().map(|part| part.end - part.start).sum();
        if kept == range.end - range.start {
            remains.fate.kept += 1;
        } else if kept > 0 {
            remains.fate.torn += 1;
        }
        for part in parts {
            remains.ranges.insert(part, source);
        }
    }
    remains
}

const TEARS_ONE_IN: u64 = 4;
const TEARS_AT_MOST: u64 = 3;

/// How many of the first records are on the medium for sure: flushed, or given up by a full cache.
fn settled(entries: &[Entry], cache: u64) -> usize {
    let flushed = entries
        .iter()
        .filter_map(|entry| match entry.asked {
            Asked::Flush { covers } => usize::try_from(covers).ok(),
            _ => None,
        })
        .max()
        .unwrap_or(0);
    let mut room = cache;
    for (number, entry) in entries.iter().enumerate().skip(flushed).rev() {
        if let Asked::Write { length, .. } = entry.asked {
            match room.checked_sub(length) {
                Some(left) => room = left,
                None => return number + 1,
            }
        }
    }
    flushed
}

fn change(number: usize, entry: &Entry) -> Option<(Range<u64>, Source)> {
    match entry.asked {
        Asked::Write { offset, length } if length > 0 => {
            Some((offset..offset + length, Source::Record(number)))
        }
        Asked::Zero { offset, length } if length > 0 => {
            Some((offset..offset + length, Source::Zeros))
        }
        _ => None,
    }
}

/// The boundaries of sectors within a range.
fn boundaries(range: &Range<u64>, sector: u64) -> u64 {
    (range.end - 1) / sector - range.start / sector
}

fn boundary(range: &Range<u64>, sector: u64, which: u64) -> u64 {
    (range.start / sector + 1 + which) * sector
}

/// The sectors before one that chance names: perhaps none, never all.
fn first_part(range: &Range<u64>, sector: u64, chance: &mut Random) -> Vec<Range<u64>> {
    match chance.below(boundaries(range, sector) + 1) {
        0 => Vec::new(),
        which => {
            let end = boundary(range, sector, which - 1);
            std::iter::once(range.start..end).collect()
        }
    }
}

/// Every other one of the runs of sectors that chance makes of a range; a single sector stays whole.
fn some_parts(range: &Range<u64>, sector: u64, chance: &mut Random) -> Vec<Range<u64>> {
    let inner = boundaries(range, sector);
    if inner == 0 {
        return vec![range.clone()];
    }
    let mut ends: Vec<u64> = (0..=chance.below(TEARS_AT_MOST))
        .map(|_| boundary(range, sector, chance.below(inner)))
        .collect();
    ends.sort_unstable();
    ends.dedup();
    ends.push(range.end);
    let first = chance.below(2);
    let mut start = range.start;
    let mut parts = Vec::new();
    for (place, end) in ends.into_iter().enumerate() {
        if place as u64 % 2 == first {
            parts.push(start..end);
        }
        start = end;
    }
    parts
}

const CHUNK: usize = 256 * 1024;
const PAGE: usize = 4096;

/// Makes a file hold what a cut left. `base` is the image as recording began, None where that was empty.
///
/// Only pages that differ are written, so that a file that holds another cut's remains costs little.
pub fn put(
    remains: &Remains,
    log: &Log,
    log_file: &Path,
    base: Option<&Path>,
    out: &Path,
) -> io::Result<()> {
    let data = File::open(log_file)?;
    let base = base.map(File::open).transpose()?;
    let out = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(out)?;
    if out.metadata()?.len() != log.size {
        out.set_len(log.size)?;
    }
    for gap in remains.ranges.gaps(&(0..log.size)) {
        match &base {
            Some(base) => alike(base, gap.start, &out, &gap)?,
            None => punch(&out, gap.start, gap.end - gap.start)?,
        }
    }
    for (range, source) in remains.ranges.iter() {
        match source {
            Source::Zeros => punch(&out, range.start, range.end - range.start)?,
            Source::Record(number) => {
                let entry = &log.entries[*number];
                if let Asked::Write { offset, .. } = entry.asked {
                    alike(&data, entry.data_at + (range.start - offset), &out, range)?;
                }
            }
        }
    }
    Ok(())
}

fn alike(from: &File, from_at: u64, out: &File, range: &Range<u64>) -> io::Result<()> {
    let mut wanted = vec![0; CHUNK];
    let mut present = vec![0; CHUNK];
    let mut at = range.start;
    while at < range.end {
        let length = usize::try_from(range.end - at).map_or(CHUNK, |left| left.min(CHUNK));
        from.read_exact_at(&mut wanted[..length], from_at + (at - range.start))?;
        out.read_exact_at(&mut present[..length], at)?;
        if wanted[..length] != present[..length] {
            for start in (0..length).step_by(PAGE) {
                let end = (start + PAGE).min(length);
                if wanted[start..end] != present[start..end] {
                    out.write_all_at(&wanted[start..end], at + start as u64)?;
                }
            }
        }
        at += length as u64;
    }
    Ok(())
}
