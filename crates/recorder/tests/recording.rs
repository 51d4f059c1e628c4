//! What a disk writes down, and what a power failure makes of that.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod support;

use std::fs::{self, File};
use std::sync::atomic::Ordering;

use dyno_recorder::cut::{Cut, Mode, cut, put};
use dyno_recorder::disk::{Disk, read_point};
use dyno_recorder::log::{Asked, Log};
use proptest::collection::vec;
use proptest::prelude::*;
use support::Folder;

const SIZE: u64 = 64 * 1024;
const SECTOR: u64 = 512;

fn disk(folder: &Folder) -> Disk {
    Disk::open(
        &folder.path("image"),
        SIZE,
        &folder.path("log"),
        &folder.path("point"),
    )
    .unwrap()
}

fn log(folder: &Folder) -> Log {
    Log::read(&folder.path("log")).unwrap()
}

#[test]
fn what_was_asked_is_in_the_log_in_order_and_in_the_image() {
    let folder = Folder::new();
    let mut disk = disk(&folder);
    disk.write(4096, &[7; 1024]).unwrap();
    disk.flush(1).unwrap();
    disk.zero(4096, 512).unwrap();
    let log = log(&folder);
    let asked: Vec<_> = log.entries.iter().map(|entry| entry.asked).collect();
    let (offset, length) = (4096, 1024);
    assert_eq!(
        asked,
        [
            Asked::Write { offset, length },
            Asked::Flush { covers: 1 },
            Asked::Zero {
                offset,
                length: 512
            },
        ]
    );
    assert!(!log.torn);
    assert!(log.entries.is_sorted_by_key(|entry| entry.time_ns));
    let image = fs::read(folder.path("image")).unwrap();
    assert_eq!(image[4096..4608], [0; 512]);
    assert_eq!(image[4608..5120], [7; 512]);
}

#[test]
fn a_request_is_counted_once_it_is_in_the_log() {
    let folder = Folder::new();
    let mut disk = disk(&folder);
    let point = File::open(folder.path("point")).unwrap();
    let acknowledged = disk.acknowledged();
    for number in 1..=3 {
        disk.write(0, &[1; 512]).unwrap();
        assert_eq!(read_point(&point).unwrap(), number);
        assert_eq!(acknowledged.load(Ordering::Acquire), number);
        assert_eq!(log(&folder).entries.len() as u64, number);
    }
}

#[test]
fn what_lies_beyond_the_disk_is_refused_and_not_recorded() {
    let folder = Folder::new();
    let mut disk = disk(&folder);
    assert!(disk.write(SIZE - 512, &[1; 1024]).is_err());
    assert!(disk.zero(u64::MAX, 2).is_err());
    assert_eq!(log(&folder).entries.len(), 0);
}

#[test]
fn a_log_is_read_up_to_where_it_is_torn() {
    let folder = Folder::new();
    let mut disk = disk(&folder);
    disk.write(0, &[1; 512]).unwrap();
    let first = fs::metadata(folder.path("log")).unwrap().len();
    disk.write(512, &[2; 512]).unwrap();
    let whole = fs::read(folder.path("log")).unwrap();
    for end in usize::try_from(first).unwrap() + 1..whole.len() {
        fs::write(folder.path("log"), &whole[..end]).unwrap();
        let log = log(&folder);
        assert_eq!((log.entries.len(), log.torn), (1, true), "cut at {end}");
    }
    fs::write(folder.path("log"), b"something else").unwrap();
    assert!(Log::read(&folder.path("log")).is_err());
}

#[test]
fn a_flush_vouches_only_for_what_was_acknowledged_when_it_came() {
    let folder = Folder::new();
    let mut disk = disk(&folder);
    disk.write(0, &[1; 512]).unwrap();
    // It came when the first write had been acknowledged, and was done after the second.
    disk.write(512, &[2; 512]).unwrap();
    disk.flush(1).unwrap();
    let left = remains(&folder, cut_of(3, 1, Mode::None, SIZE));
    assert_eq!(left[..512], [1; 512]);
    assert_eq!(left[512..1024], [0; 512]);
}

#[test]
fn what_a_full_cache_had_to_give_up_is_on_the_medium() {
    let folder = Folder::new();
    let mut disk = disk(&folder);
    for number in 0..4 {
        disk.write(u64::from(number) * 1024, &[number + 1; 1024])
            .unwrap();
    }
    let left = remains(&folder, cut_of(4, 1, Mode::None, 2048));
    assert_eq!(left[..1024], [1; 1024]);
    assert_eq!(left[1024..2048], [2; 1024]);
    assert_eq!(left[2048..4096], [0; 2048]);
}

#[test]
fn a_cut_of_a_disk_that_was_not_empty_shows_what_it_held() {
    let folder = Folder::new();
    fs::write(folder.path("base"), vec![9; usize::try_from(SIZE).unwrap()]).unwrap();
    fs::copy(folder.path("base"), folder.path("image")).unwrap();
    let mut disk = disk(&folder);
    disk.write(512, &[1; 512]).unwrap();
    let log = log(&folder);
    let made = cut(&log, &cut_of(1, 1, Mode::All, SIZE));
    put(
        &made,
        &log,
        &folder.path("log"),
        Some(&folder.path("base")),
        &folder.path("out"),
    )
    .unwrap();
    let left = fs::read(folder.path("out")).unwrap();
    assert_eq!(left[..512], [9; 512]);
    assert_eq!(left[512..1024], [1; 512]);
    assert_eq!(left, fs::read(folder.path("image")).unwrap());
}

fn cut_of(point: u64, seed: u64, mode: Mode, cache: u64) -> Cut {
    Cut {
        point,
        seed,
        mode,
        sector: SECTOR,
        cache,
    }
}

fn remains(folder: &Folder, of: Cut) -> Vec<u8> {
    let log = log(folder);
    let made = cut(&log, &of);
    put(&made, &log, &folder.path("log"), None, &folder.path("out")).unwrap();
    fs::read(folder.path("out")).unwrap()
}

#[derive(Clone, Debug)]
enum Request {
    Write(u64, u64),
    Zero(u64, u64),
    Flush,
}

fn request() -> impl Strategy<Value = Request> {
    let range = || {
        (0..SIZE / SECTOR).prop_flat_map(|first| {
            (1..=(SIZE / SECTOR - first).min(16)).prop_map(move |count| (first, count))
        })
    };
    prop_oneof![
        6 => range().prop_map(|(first, count)| Request::Write(first, count)),
        1 => range().prop_map(|(first, count)| Request::Zero(first, count)),
        2 => Just(Request::Flush),
    ]
}

/// Carries requests out; each write fills its sectors with its own number. Gives which numbers each sector may show
/// after a cut at the end where all since the last flush was in the cache: the versions since then, and the one before.
fn carry_out(disk: &mut Disk, requests: &[Request]) -> Vec<Vec<u8>> {
    let mut versions: Vec<Vec<u8>> = vec![vec![0]; usize::try_from(SIZE / SECTOR).unwrap()];
    let mut number = 0_u8;
    for (place, request) in requests.iter().enumerate() {
        let mut note = |first: u64, count: u64, value: u8| {
            for sector in first..first + count {
                versions[usize::try_from(sector).unwrap()].push(value);
            }
        };
        match request {
            Request::Write(first, count) => {
                number += 1;
                let data = vec![number; usize::try_from(count * SECTOR).unwrap()];
                disk.write(first * SECTOR, &data).unwrap();
                note(*first, *count, number);
            }
            Request::Zero(first, count) => {
                disk.zero(first * SECTOR, count * SECTOR).unwrap();
                note(*first, *count, 0);
            }
            Request::Flush => {
                disk.flush(place as u64).unwrap();
                for each in &mut versions {
                    let last = each.len() - 1;
                    each.drain(..last);
                }
            }
        }
    }
    versions
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_cut_at_the_end_that_loses_nothing_is_the_image(requests in vec(request(), 1..60)) {
        let folder = Folder::new();
        carry_out(&mut disk(&folder), &requests);
        let left = remains(&folder, cut_of(requests.len() as u64, 1, Mode::All, SIZE));
        prop_assert_eq!(left, fs::read(folder.path("image")).unwrap());
    }

    #[test]
    fn a_sector_shows_what_was_flushed_or_something_later_and_is_never_torn(
        requests in vec(request(), 1..60),
        seed: u64,
        ordered: bool,
    ) {
        let folder = Folder::new();
        let may_show = carry_out(&mut disk(&folder), &requests);
        let mode = if ordered { Mode::Ordered } else { Mode::Any };
        let left = remains(&folder, cut_of(requests.len() as u64, seed, mode, u64::MAX));
        for (sector, may_show) in left.chunks(usize::try_from(SECTOR).unwrap()).zip(may_show) {
            prop_assert!(sector.iter().all(|byte| *byte == sector[0]));
            prop_assert!(may_show.contains(&sector[0]));
        }
    }

    #[test]
    fn a_cache_that_is_written_back_in_order_leaves_a_replay_of_the_first_writes(
        requests in vec(request(), 1..40),
        seed: u64,
    ) {
        let folder = Folder::new();
        carry_out(&mut disk(&folder), &requests);
        let log = log(&folder);
        let end = requests.len() as u64;
        let made = cut(&log, &cut_of(end, seed, Mode::Ordered, u64::MAX));
        let left = remains(&folder, cut_of(end, seed, Mode::Ordered, u64::MAX));
        // With the write that was torn, or without it.
        let replays: Vec<_> = (0..=end)
            .map(|point| remains(&folder, cut_of(point, 1, Mode::All, SIZE)))
            .collect();
        if made.fate.torn == 0 {
            prop_assert!(replays.contains(&left));
        } else {
            let torn = replays.windows(2).any(|pair| {
                let pairs = pair[0].iter().zip(&pair[1]);
                left.iter().zip(pairs).all(|(now, (before, after))| now == before || now == after)
            });
            prop_assert!(torn);
        }
    }

    #[test]
    fn a_cut_is_a_function_of_its_seed_whatever_the_file_held(
        requests in vec(request(), 1..40),
        seed: u64,
        other: u64,
    ) {
        let folder = Folder::new();
        carry_out(&mut disk(&folder), &requests);
        let end = requests.len() as u64;
        let first = remains(&folder, cut_of(end, seed, Mode::Any, u64::MAX));
        remains(&folder, cut_of(end / 2, other, Mode::Any, u64::MAX));
        prop_assert_eq!(first, remains(&folder, cut_of(end, seed, Mode::Any, u64::MAX)));
    }
}

#[test]
fn any_of_the_cached_writes_can_be_lost_and_any_can_be_torn() {
    let folder = Folder::new();
    let mut disk = disk(&folder);
    for number in 0..3_u8 {
        disk.write(u64::from(number) * 4096, &[number + 1; 4096])
            .unwrap();
    }
    // First and last sector of each write, in a thousand cuts.
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..1000 {
        let left = remains(&folder, cut_of(3, seed, Mode::Any, u64::MAX));
        seen.insert([0, 4095, 4096, 8191, 8192, 12287].map(|at| left[at] != 0));
    }
    for (lost, kept) in [(0, 2), (2, 0), (4, 0), (0, 1), (1, 0), (3, 2), (5, 4)] {
        assert!(
            seen.iter().any(|each| !each[lost] && each[kept]),
            "{lost} lost and {kept} kept"
        );
    }
}
