//! A recorded disk with a loop device upon it, as the kernel uses it. Needs root and FUSE.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use dyno_recorder::disk::{Disk, Totals};
use dyno_recorder::fuse::{FILE, Served};
use dyno_recorder::log::{Asked, Log};
use nix::libc::{O_DIRECT, O_DSYNC};
use nix::unistd::geteuid;
use support::Folder;

const SIZE: u64 = 32 << 20;

fn run(words: &[&str]) -> String {
    let answer = Command::new(words[0]).args(&words[1..]).output().unwrap();
    let complaint = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "{words:?}: {complaint}");
    String::from_utf8(answer.stdout).unwrap().trim().to_owned()
}

/// Takes down what a test put up, whether it passes or not.
struct Device {
    path: PathBuf,
    mounted: Option<PathBuf>,
}

impl Drop for Device {
    fn drop(&mut self) {
        if let Some(folder) = &self.mounted {
            let _ = Command::new("umount").arg(folder).status();
        }
        let _ = Command::new("losetup").arg("-d").arg(&self.path).status();
    }
}

/// Does something with a loop device upon a recorded disk; gives the log and what the disk was asked for in all.
fn recorded(act: impl FnOnce(&mut Device, &Folder)) -> Option<(Log, Totals)> {
    if !geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: a loop device upon FUSE needs root and /dev/fuse");
        return None;
    }
    let folder = Folder::new();
    let served = folder.path("served");
    fs::create_dir(&served).unwrap();
    let log = folder.path("log");
    let disk = Disk::open(&folder.path("image"), SIZE, &log, &folder.path("point")).unwrap();
    let running = Served::mount(disk, SIZE, &served).unwrap();
    let file = served.join(FILE);
    let words = ["losetup", "--find", "--show", "--direct-io=on"];
    let device = run(&[&words[..], &[file.to_str().unwrap()]].concat());
    let mut device = Device {
        path: device.into(),
        mounted: None,
    };
    let dio = Path::new("/sys/block").join(device.path.file_name().unwrap());
    assert_eq!(fs::read_to_string(dio.join("loop/dio")).unwrap(), "1\n");
    act(&mut device, &folder);
    drop(device);
    // The kernel lets go of the file a moment after the device is detached.
    let unmount = running.unmounter();
    while unmount().is_err() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let totals = running.wait().unwrap();
    Some((Log::read(&log).unwrap(), totals))
}

fn writes(log: &Log) -> Vec<usize> {
    let is_write = |asked: &Asked| matches!(asked, Asked::Write { .. });
    (0..log.entries.len())
        .filter(|at| is_write(&log.entries[*at].asked))
        .collect()
}

#[test]
fn a_write_and_a_sync_of_the_device_are_recorded_as_writes_and_then_a_flush_that_covers_them() {
    let Some((log, totals)) = recorded(|device, _| {
        let handle = File::options().write(true).open(&device.path).unwrap();
        handle.write_all_at(&vec![5; 3 << 20], 1 << 20).unwrap();
        handle.sync_all().unwrap();
    }) else {
        return;
    };
    let writes = writes(&log);
    let last = *writes.last().unwrap() as u64;
    let flush = log
        .entries
        .iter()
        .position(|entry| matches!(entry.asked, Asked::Flush { covers } if covers > last));
    assert!(flush.unwrap() as u64 > last);
    assert_eq!(totals.bytes_written, 3 << 20);
    assert_eq!(totals.writes, writes.len() as u64);
}

#[test]
fn a_write_with_o_dsync_past_the_page_cache_has_come_back_with_its_flush() {
    // Memory that direct I/O takes.
    let mut memory = vec![5_u8; 3 * 4096];
    let from = memory.as_ptr().align_offset(4096);
    let data = &mut memory[from..from + 8192];
    let Some((log, _)) = recorded(|device, folder| {
        let handle = File::options()
            .write(true)
            .custom_flags(O_DIRECT | O_DSYNC)
            .open(&device.path)
            .unwrap();
        for number in 0..10 {
            handle.write_all_at(data, number * 8192).unwrap();
            let point = File::open(folder.path("point")).unwrap();
            let point = dyno_recorder::disk::read_point(&point).unwrap();
            assert!(point >= 2 * (number + 1), "{point} records after {number}");
        }
    }) else {
        return;
    };
    let writes = writes(&log);
    assert_eq!(writes.len(), 10);
    for at in writes {
        let flushed = |entry: &dyno_recorder::log::Entry| matches!(entry.asked, Asked::Flush { covers } if covers > at as u64);
        assert!(log.entries[at + 1..].iter().any(flushed));
    }
}

#[test]
fn a_disk_in_use_is_not_unmounted_and_can_be_later() {
    if !geteuid().is_root() || !Path::new("/dev/fuse").exists() {
        eprintln!("skipped: mounting needs root and /dev/fuse");
        return;
    }
    let folder = Folder::new();
    let served = folder.path("served");
    fs::create_dir(&served).unwrap();
    let files = [
        folder.path("image"),
        folder.path("log"),
        folder.path("point"),
    ];
    let disk = Disk::open(&files[0], SIZE, &files[1], &files[2]).unwrap();
    let running = Served::mount(disk, SIZE, &served).unwrap();
    let unmount = running.unmounter();
    let in_use = File::open(served.join(FILE)).unwrap();
    assert!(unmount().is_err());
    assert!(unmount().is_err());
    drop(in_use);
    // The kernel tells the file system of the close a moment later.
    while unmount().is_err() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(!served.join(FILE).exists());
    running.wait().unwrap();
}

/// What ext4 asks of its disk for ten synced files; its flushes while it was mounted.
fn flushes_of_ext4(option: &str) -> Option<u64> {
    let mut before = 0;
    let mut after = 0;
    recorded(|device, folder| {
        let flushes = || {
            let log = Log::read(&folder.path("log")).unwrap();
            let is_flush = |asked: &Asked| matches!(asked, Asked::Flush { .. });
            log.entries
                .iter()
                .filter(|each| is_flush(&each.asked))
                .count() as u64
        };
        let name = device.path.to_str().unwrap().to_owned();
        run(&[
            "mkfs.ext4",
            "-q",
            "-F",
            "-E",
            "lazy_itable_init=0,lazy_journal_init=0",
            &name,
        ]);
        let mount = folder.path("mount");
        fs::create_dir(&mount).unwrap();
        run(&[
            "mount",
            "-t",
            "ext4",
            "-o",
            option,
            &name,
            mount.to_str().unwrap(),
        ]);
        device.mounted = Some(mount.clone());
        before = flushes();
        for number in 0..10 {
            let file = File::create(mount.join(number.to_string())).unwrap();
            file.write_all_at(&[1; 4096], 0).unwrap();
            file.sync_all().unwrap();
        }
        after = flushes();
    })?;
    Some(after - before)
}

#[test]
fn ext4_flushes_at_each_sync_with_barriers_and_never_without() {
    let Some(flushes) = flushes_of_ext4("barrier=1") else {
        return;
    };
    assert!(flushes >= 10, "{flushes} flushes");
    assert_eq!(flushes_of_ext4("barrier=0"), Some(0));
}

#[test]
fn what_the_device_discards_reads_as_zeros_and_is_recorded() {
    let Some((log, totals)) = recorded(|device, folder| {
        let handle = File::options().write(true).open(&device.path).unwrap();
        handle.write_all_at(&vec![5; 1 << 20], 0).unwrap();
        handle.sync_all().unwrap();
        let name = device.path.to_str().unwrap();
        run(&["blkdiscard", "--offset", "65536", "--length", "65536", name]);
        let image = fs::read(folder.path("image")).unwrap();
        assert!(image[65_536..131_072].iter().all(|byte| *byte == 0));
        assert!(image[131_072..1 << 20].iter().all(|byte| *byte == 5));
    }) else {
        return;
    };
    let (offset, length) = (65_536, 65_536);
    assert!(
        log.entries
            .iter()
            .any(|each| each.asked == Asked::Zero { offset, length })
    );
    assert_eq!(totals.zeros, 1);
}
