//! A file system in a folder, whose losses are planted: the judge finds each, and nothing where nothing is wrong.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod support;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_recorder::history::{Did, History, Operation, Run};
use dyno_recorder::judge::{Judgement, judge};
use dyno_recorder::sector::{Identity, SECTOR, fill};
use dyno_recorder::write::{Job, Limit, OLD, write};
use support::Folder;

const RUN: u64 = 77;

/// A file system that does all at once, and what was done; each operation is one record of the disk.
struct Story {
    folder: Folder,
    operations: Vec<Operation>,
}

impl Story {
    fn new() -> Self {
        let folder = Folder::new();
        fs::create_dir_all(folder.path("fs/d0")).unwrap();
        Self {
            folder,
            operations: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path("fs").join(name)
    }

    fn did(&mut self, did: Did) {
        let began = self.operations.len() as u64;
        self.operations.push(Operation {
            thread: 0,
            began,
            ended: began + 1,
            did,
        });
    }

    fn create(&mut self, file: u64, name: &str) {
        let inode = File::create_new(self.path(name))
            .unwrap()
            .metadata()
            .unwrap()
            .ino();
        let name = name.to_owned();
        self.did(Did::Create { file, name, inode });
    }

    fn write(&mut self, name: &str, file: u64, first: u64, sectors: u64, generation: u64) {
        self.plant(name, file, first..first + sectors, generation);
        self.did(Did::Write {
            file,
            first,
            sectors,
            generation,
            synced: false,
        });
    }

    fn sync(&mut self, file: u64) {
        self.did(Did::Sync { file });
    }

    fn sync_folder(&mut self) {
        let folder = "d0".into();
        self.did(Did::SyncFolder { folder });
    }

    /// Into the file alone, and not into the history.
    fn plant(&self, name: &str, file: u64, sectors: std::ops::Range<u64>, generation: u64) {
        let handle = File::options().write(true).open(self.path(name)).unwrap();
        for number in sectors {
            let mut sector = [0; SECTOR];
            let identity = Identity {
                run: RUN,
                file,
                number,
                generation,
            };
            fill(&mut sector, &identity);
            handle
                .write_all_at(&sector, number * SECTOR as u64)
                .unwrap();
        }
    }

    fn plant_bytes(&self, name: &str, sector: u64, bytes: &[u8]) {
        let handle = File::options().write(true).open(self.path(name)).unwrap();
        handle.write_all_at(bytes, sector * SECTOR as u64).unwrap();
    }

    fn shorten(&self, name: &str, sectors: u64) {
        let handle = File::options().write(true).open(self.path(name)).unwrap();
        handle.set_len(sectors * SECTOR as u64).unwrap();
    }

    fn judged_at(&self, point: u64) -> Judgement {
        let history = History {
            run: Run { run: RUN },
            operations: self.operations.clone(),
        };
        judge(&history, point, Some(&self.folder.path("fs"))).unwrap()
    }

    fn judged(&self) -> Judgement {
        self.judged_at(self.operations.len() as u64)
    }
}

/// One file of 16 sectors, synced, and its folder too.
fn synced() -> Story {
    let mut story = Story::new();
    story.create(1, "d0/a");
    story.write("d0/a", 1, 0, 16, 1);
    story.sync(1);
    story.sync_folder();
    story
}

#[test]
fn where_all_is_there_nothing_is_found() {
    let judged = synced().judged();
    let expected = Judgement {
        point: 4,
        syncs_checked: 2,
        files: 1,
        ..Judgement::default()
    };
    assert_eq!(judged, expected);
}

#[test]
fn a_synced_file_that_ends_early_is_a_lost_sync() {
    let story = synced();
    story.shorten("d0/a", 8);
    let judged = story.judged();
    assert_eq!(
        (
            judged.syncs_lost,
            judged.file_syncs_lost,
            judged.files_short
        ),
        (1, 1, 1)
    );
}

#[test]
fn zeros_in_place_of_synced_data_are_a_lost_sync() {
    let story = synced();
    story.plant_bytes("d0/a", 3, &[0; SECTOR]);
    let judged = story.judged();
    assert_eq!((judged.syncs_lost, judged.files_zeros), (1, 1));
}

#[test]
fn garbage_is_found_in_whatever_byte_it_is() {
    let story = synced();
    story.plant_bytes("d0/a", 3, &[1]);
    let judged = story.judged();
    assert_eq!((judged.syncs_lost, judged.files_garbage), (1, 1));
}

#[test]
fn data_of_another_file_and_of_another_place_are_stale() {
    for (file, number) in [(2, 3), (1, 9)] {
        let story = synced();
        let mut sector = [0; SECTOR];
        let identity = Identity {
            run: RUN,
            file,
            number,
            generation: 1,
        };
        fill(&mut sector, &identity);
        story.plant_bytes("d0/a", 3, &sector);
        let judged = story.judged();
        assert_eq!((judged.syncs_lost, judged.files_stale), (1, 1));
        assert_eq!(judged.files_exposing_removed, 0);
    }
}

#[test]
fn removed_data_in_a_file_that_nobody_synced_are_stale_and_no_lost_sync() {
    let mut story = synced();
    story.create(2, "d0/b");
    story.write("d0/b", 2, 0, 8, 1);
    story.plant("d0/b", OLD | 5, 2..4, 1);
    let judged = story.judged();
    assert_eq!((judged.syncs_checked, judged.syncs_lost), (2, 0));
    assert_eq!((judged.files_stale, judged.files_exposing_removed), (1, 1));
}

#[test]
fn older_data_than_were_synced_are_a_lost_sync_and_later_ones_that_were_not_are_none() {
    let mut story = synced();
    story.write("d0/a", 1, 0, 4, 2);
    story.plant("d0/a", 1, 0..2, 1);
    assert_eq!(story.judged().syncs_lost, 0, "half of an unsynced write");
    story.sync(1);
    let judged = story.judged();
    assert_eq!((judged.syncs_checked, judged.syncs_lost), (3, 1));
    assert_eq!(judged.files_old, 1);
}

#[test]
fn a_sector_of_parts_of_two_writes_is_the_older_one_and_no_garbage() {
    let mut story = synced();
    let older = fs::read(story.path("d0/a")).unwrap();
    story.write("d0/a", 1, 0, 4, 2);
    // The disk read the page while it was written over.
    story.plant_bytes("d0/a", 1, &older[SECTOR..SECTOR + 300]);
    let judged = story.judged();
    assert_eq!((judged.files_garbage, judged.syncs_lost), (0, 0));
    assert_eq!(judged.unpromised.files_mixed, 1);
    story.sync(1);
    assert_eq!(story.judged().syncs_lost, 1);
}

#[test]
fn only_what_had_come_back_by_the_cut_was_promised() {
    let mut story = synced();
    story.write("d0/a", 1, 0, 4, 2);
    story.sync(1);
    story.plant("d0/a", 1, 0..4, 1);
    assert_eq!(story.judged_at(5).syncs_lost, 0, "the sync had not begun");
    assert_eq!(story.judged_at(6).syncs_lost, 1);
}

#[test]
fn a_write_with_its_own_sync_is_promised_by_itself() {
    let mut story = synced();
    story.plant("d0/a", 1, 2..4, 2);
    story.did(Did::Write {
        file: 1,
        first: 2,
        sectors: 2,
        generation: 2,
        synced: true,
    });
    assert_eq!(story.judged().syncs_lost, 0);
    story.plant("d0/a", 1, 3..4, 1);
    let judged = story.judged();
    assert_eq!((judged.syncs_lost, judged.write_syncs_lost), (1, 1));
}

#[test]
fn a_synced_truncation_that_is_undone_is_a_lost_sync() {
    let mut story = synced();
    story.did(Did::Truncate {
        file: 1,
        sectors: 8,
    });
    assert_eq!(story.judged().syncs_lost, 0, "nobody synced it");
    story.sync(1);
    assert_eq!(story.judged().syncs_lost, 1);
    story.shorten("d0/a", 8);
    assert_eq!(story.judged().syncs_lost, 0);
}

#[test]
fn a_block_that_was_given_to_a_file_anew_and_not_synced_may_hold_anything() {
    let mut story = synced();
    story.did(Did::Truncate {
        file: 1,
        sectors: 8,
    });
    story.write("d0/a", 1, 8, 8, 2);
    story.plant("d0/a", OLD, 12..14, 1);
    let judged = story.judged();
    assert_eq!((judged.syncs_lost, judged.files_stale), (0, 1));
    story.sync(1);
    assert_eq!(story.judged().syncs_lost, 1);
}

#[test]
fn a_name_is_promised_by_the_sync_of_its_folder_alone() {
    let mut story = Story::new();
    story.create(1, "d0/a");
    story.write("d0/a", 1, 0, 8, 1);
    story.sync(1);
    fs::remove_file(story.path("d0/a")).unwrap();
    let judged = story.judged();
    assert_eq!((judged.syncs_checked, judged.syncs_lost), (0, 0));
    assert_eq!(judged.unpromised.names_missing, 1);
    story.sync_folder();
    let judged = story.judged();
    // The folder's, and that of the file that cannot be reached any more.
    assert_eq!((judged.syncs_checked, judged.syncs_lost), (2, 2));
    assert_eq!((judged.names_missing, judged.folder_syncs_lost), (1, 1));
}

#[test]
fn a_file_that_was_removed_for_good_must_not_come_back() {
    let mut story = synced();
    let name = String::from("d0/a");
    story.did(Did::Unlink { file: 1, name });
    assert_eq!(story.judged().syncs_lost, 0);
    story.sync_folder();
    let judged = story.judged();
    assert_eq!((judged.names_back, judged.folder_syncs_lost), (1, 1));
}

/// `d0/a` is replaced by a new file of 8 sectors.
fn replaced(synced: bool) -> Story {
    let mut story = self::synced();
    story.create(2, "d0/a.new");
    story.write("d0/a.new", 2, 0, 8, 1);
    if synced {
        story.sync(2);
    }
    fs::rename(story.path("d0/a.new"), story.path("d0/a")).unwrap();
    story.did(Did::Rename {
        file: 2,
        from: "d0/a.new".into(),
        to: "d0/a".into(),
    });
    story
}

#[test]
fn a_replacement_that_is_there_takes_nothing_with_it() {
    let judged = replaced(true).judged();
    // The folder's and the new file's: the old one's is released.
    assert_eq!((judged.syncs_checked, judged.syncs_lost), (2, 0));
    assert!(judged.impossible.is_empty());
}

#[test]
fn a_name_that_is_neither_the_old_nor_the_new_file_is_missing() {
    let story = replaced(true);
    fs::remove_file(story.path("d0/a")).unwrap();
    let judged = story.judged();
    assert_eq!(judged.names_missing, 1);
    assert!(judged.syncs_lost > 0);
}

#[test]
fn a_file_under_its_old_and_its_new_name_is_told_of() {
    let story = replaced(true);
    fs::hard_link(story.path("d0/a"), story.path("d0/a.new")).unwrap();
    assert_eq!(story.judged().names_doubled, 1);
}

#[test]
fn a_replacement_that_was_not_synced_and_is_empty_breaks_a_hope_and_no_promise() {
    let story = replaced(false);
    story.shorten("d0/a", 0);
    let judged = story.judged();
    assert_eq!(judged.unpromised.replacements_broken, 1);
    assert_eq!(judged.syncs_lost, 0);
    let story = replaced(true);
    story.shorten("d0/a", 0);
    assert_eq!(story.judged().syncs_lost, 1);
}

#[test]
fn what_cannot_be_before_the_cut_is_told_apart_from_what_was_lost() {
    let mut story = synced();
    story.create(2, "d0/b");
    let judged = story.judged_at(4);
    assert_eq!(judged.impossible, ["d0/b was made after the cut"]);
    story.plant("d0/a", 1, 0..1, 9);
    assert_eq!(story.judged().impossible.len(), 1);
}

#[test]
fn where_nothing_could_be_mounted_all_is_lost() {
    let story = synced();
    let history = History {
        run: Run { run: RUN },
        operations: story.operations.clone(),
    };
    let judged = judge(&history, 4, None).unwrap();
    assert_eq!((judged.syncs_checked, judged.syncs_lost), (2, 2));
}

#[test]
fn of_what_the_writer_did_the_judge_finds_all_there_and_its_history_reads_back() {
    let folder = Folder::new();
    fs::create_dir(folder.path("fs")).unwrap();
    fs::write(folder.path("point"), 5_u64.to_le_bytes()).unwrap();
    let job = Job {
        folder: folder.path("fs"),
        point: folder.path("point"),
        history: folder.path("history"),
        threads: 3,
        limit: Limit::Steps(1500),
        seed: 3,
        files: 10,
        largest: 16,
        loose: 40,
        prefill: 0,
    };
    let done = write(&job, &AtomicBool::new(false)).unwrap();
    let history = History::read(&folder.path("history")).unwrap();
    assert_eq!(
        history.operations.len() as u64,
        done.operations.values().sum::<u64>()
    );
    for kind in [
        "sync",
        "sync_folder",
        "write_synced",
        "rename",
        "unlink",
        "truncate",
    ] {
        assert!(done.operations[kind] > 10, "{kind}");
    }
    let judged = judge(&history, 6, Some(&folder.path("fs"))).unwrap();
    assert!(judged.syncs_checked > 100);
    let expected = Judgement {
        point: 6,
        syncs_checked: judged.syncs_checked,
        files: judged.files,
        ..Judgement::default()
    };
    assert_eq!(judged, expected);
}

#[test]
fn the_writer_ends_in_time_and_when_told() {
    let folder = Folder::new();
    fs::create_dir(folder.path("fs")).unwrap();
    fs::write(folder.path("point"), 0_u64.to_le_bytes()).unwrap();
    let job = Job {
        folder: folder.path("fs"),
        point: folder.path("point"),
        history: folder.path("history"),
        threads: 2,
        limit: Limit::Time(Duration::from_secs(3600)),
        seed: 3,
        files: 4,
        largest: 4,
        loose: 50,
        prefill: 0,
    };
    assert!(write(&job, &AtomicBool::new(true)).unwrap().halted);
}
