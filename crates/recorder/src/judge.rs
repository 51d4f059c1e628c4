//! What of a file system's promises is left after a cut.
//!
//! Time is counted in operations: what a sector or a name held *since* an operation is one more than that
//! operation's place in the history, and 0 for what was there before all of them. A sync *at* a place
//! promises what was there since that place or earlier, or anything that came later: a write that nobody
//! synced may be there or not. So what is found is matched with the latest that it can be, and a promise
//! is broken where it spoke of something later still.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;

use crate::history::{Did, History};
use crate::sector::{Found, Identity, SECTOR, fill, look};
use crate::write::OLD;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The point of the cut.
    pub point: u64,
    /// Syncs that had come back by then, of what nothing later took away.
    pub syncs_checked: u64,
    /// Of these, those of which something is not there.
    pub syncs_lost: u64,
    /// Of the lost ones, `fsync` and `fdatasync` of files.
    pub file_syncs_lost: u64,
    /// Of the lost ones, writes with `O_DSYNC`.
    pub write_syncs_lost: u64,
    /// Of the lost ones, `fsync` of folders.
    pub folder_syncs_lost: u64,
    /// Files that are there.
    pub files: u64,
    /// Files with data of another file, or of another place in theirs.
    pub files_stale: u64,
    /// Of these, files with data that were removed before the writer began.
    pub files_exposing_removed: u64,
    /// Files with a sector that nobody ever wrote, not even in parts.
    pub files_garbage: u64,
    /// Files that have zeros where a sync had promised data.
    pub files_zeros: u64,
    /// Files that end before what a sync had promised.
    pub files_short: u64,
    /// Files with older data than a sync had promised.
    pub files_old: u64,
    /// Files that cannot be read.
    pub files_unreadable: u64,
    /// Files that are longer than they ever were.
    pub files_long: u64,
    /// Names that a sync of their folder had promised, and are not there.
    pub names_missing: u64,
    /// Names that are there, or are of a former file, though a sync of their folder had promised otherwise.
    pub names_back: u64,
    /// Files with two names, of which the one was to take the other's place.
    pub names_doubled: u64,
    /// What no promise forbids, but programs hope for.
    pub unpromised: Unpromised,
    /// What cannot be where recorder, cut and writer are right: words for each.
    pub impossible: Vec<String>,
    /// Words for the first of the things that are wrong.
    pub examples: Vec<String>,
}

/// What is not as one would wish, though nothing was promised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Unpromised {
    /// Files with zeros where data had been written that were not synced.
    pub files_zeros: u64,
    /// Files with a sector that is in part of one write and in part of the next one to it.
    pub files_mixed: u64,
    /// Synced files whose names are not there, since their folder was not synced.
    pub names_missing: u64,
    /// Files that took another's place by renaming without having been synced, and are not whole.
    pub replacements_broken: u64,
}

const EXAMPLES: usize = 20;

/// Judges what is at a folder; where it is None, the file system could not be mounted and all of it is lost.
pub fn judge(history: &History, point: u64, folder: Option<&Path>) -> io::Result<Judgement> {
    let model = Model::of(history, point);
    let seen = match folder {
        Some(folder) => Seen::at(folder)?,
        None => Seen::default(),
    };
    let mut judge = Judge {
        history,
        model: &model,
        out: Judgement {
            point,
            ..Judgement::default()
        },
        overtaken: HashMap::new(),
        holders: BTreeMap::new(),
    };
    judge.names(&seen, folder.is_some());
    judge.folders(folder.is_some());
    Ok(judge.out)
}

/// What a name or a sector was, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    since: usize,
    /// Of a name its file, of a sector its generation; None where there was none.
    holds: Option<u64>,
}

const NOTHING: Version = Version {
    since: 0,
    holds: None,
};

struct Sync {
    at: usize,
    /// The sectors it spoke of, where not all.
    of: Option<std::ops::Range<usize>>,
}

#[derive(Default)]
struct FileStory {
    inode: u64,
    sectors: Vec<Vec<Version>>,
    syncs: Vec<Sync>,
    /// Whether it lost its name to something that was under way by the time of the cut.
    released: bool,
    /// When it took another's place without having been synced before.
    replaced_at: Option<usize>,
}

struct NameStory {
    thread: u64,
    folder: String,
    versions: Vec<Version>,
}

/// What the history says of all that had begun before the cut.
#[derive(Default)]
struct Model {
    files: HashMap<u64, FileStory>,
    names: BTreeMap<String, NameStory>,
    /// When each thread had a folder synced.
    folder_syncs: HashMap<(u64, String), Vec<usize>>,
}

impl Model {
    fn of(history: &History, point: u64) -> Self {
        let mut model = Self::default();
        for (place, operation) in history.operations.iter().enumerate() {
            if operation.began >= point {
                continue; // nothing of it is before the cut
            }
            let since = place + 1;
            let came_back = operation.ended <= point;
            match &operation.did {
                Did::Create { file, name, inode } => {
                    model.files.entry(*file).or_default().inode = *inode;
                    model.bind(operation.thread, name, since, Some(*file));
                }
                Did::Write {
                    file,
                    first,
                    sectors,
                    generation,
                    synced,
                } => {
                    let story = model.files.entry(*file).or_default();
                    let (first, sectors) = (index(*first), index(*sectors));
                    let range = first..first + sectors;
                    if story.sectors.len() < range.end {
                        story.sectors.resize(range.end, vec![NOTHING]);
                    }
                    for versions in &mut story.sectors[range.clone()] {
                        versions.push(Version {
                            since,
                            holds: Some(*generation),
                        });
                    }
                    if *synced && came_back {
                        story.syncs.push(Sync {
                            at: since,
                            of: Some(range),
                        });
                    }
                }
                Did::Truncate { file, sectors } => {
                    let story = model.files.entry(*file).or_default();
                    for versions in story.sectors.iter_mut().skip(index(*sectors)) {
                        if versions.last().is_some_and(|last| last.holds.is_some()) {
                            versions.push(Version { since, holds: None });
                        }
                    }
                }
                Did::Sync { file } if came_back => {
                    let story = model.files.entry(*file).or_default();
                    story.syncs.push(Sync {
                        at: place,
                        of: None,
                    });
                }
                Did::Rename { file, from, to } => {
                    model.release(to);
                    let story = model.files.entry(*file).or_default();
                    if story.syncs.is_empty() {
                        story.replaced_at = Some(place);
                    }
                    model.bind(operation.thread, from, since, None);
                    model.bind(operation.thread, to, since, Some(*file));
                }
                Did::Unlink { name, .. } => {
                    model.release(name);
                    model.bind(operation.thread, name, since, None);
                }
                Did::SyncFolder { folder } if came_back => {
                    let key = (operation.thread, folder.clone());
                    model.folder_syncs.entry(key).or_default().push(place);
                }
                Did::Sync { .. } | Did::SyncFolder { .. } => {}
            }
        }
        model
    }

    fn bind(&mut self, thread: u64, name: &str, since: usize, holds: Option<u64>) {
        let story = self
            .names
            .entry(name.to_owned())
            .or_insert_with(|| NameStory {
                thread,
                folder: name
                    .rsplit_once('/')
                    .map_or("", |(folder, _)| folder)
                    .into(),
                versions: vec![NOTHING],
            });
        story.versions.push(Version { since, holds });
    }

    fn release(&mut self, name: &str) {
        let holder = self
            .names
            .get(name)
            .and_then(|story| story.versions.last())
            .and_then(|version| version.holds);
        if let Some(story) = holder.and_then(|file| self.files.get_mut(&file)) {
            story.released = true;
        }
    }

    /// The place of the last sync of a name's folder, 0 where there was none.
    fn promised_at(&self, story: &NameStory) -> usize {
        let key = (story.thread, story.folder.clone());
        self.folder_syncs
            .get(&key)
            .and_then(|syncs| syncs.last())
            .map_or(0, |at| *at)
    }
}

fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// What is there.
#[derive(Default)]
struct Seen {
    /// By path.
    files: BTreeMap<String, Present>,
    unreadable_folders: Vec<String>,
}

impl Seen {
    fn at(folder: &Path) -> io::Result<Self> {
        let mut seen = Self::default();
        let root = fs::read_dir(folder)?;
        for entry in root.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == "lost+found" {
                continue;
            }
            let Ok(inner) = fs::read_dir(entry.path()) else {
                seen.unreadable_folders.push(name);
                continue;
            };
            for file in inner {
                let Ok(file) = file else {
                    seen.unreadable_folders.push(name.clone());
                    break;
                };
                let path = format!("{name}/{}", file.file_name().to_string_lossy());
                let present = Present {
                    inode: file.metadata().ok().map(|its| its.ino()),
                    data: fs::read(file.path()).ok(),
                };
                seen.files.insert(path, present);
            }
        }
        Ok(seen)
    }
}

/// A file; None where it could not be read.
struct Present {
    inode: Option<u64>,
    data: Option<Vec<u8>>,
}

/// How a file looks, taken for one of those that it can be.
#[derive(Default)]
struct Look {
    own: usize,
    stale: usize,
    removed: usize,
    garbage: usize,
    mixed: usize,
    long: bool,
    /// By sector: since when something later was there than what is found.
    overtaken: Vec<usize>,
    found: Vec<Option<Found>>,
    impossible: Option<String>,
}

struct Judge<'a> {
    history: &'a History,
    model: &'a Model,
    out: Judgement,
    /// By thread and folder: since when the first of its names was something later than it is found to be.
    overtaken: HashMap<(u64, String), usize>,
    /// By file, the names under which it was seen.
    holders: BTreeMap<u64, Vec<String>>,
}

impl Judge<'_> {
    fn names(&mut self, seen: &Seen, mounted: bool) {
        for folder in &seen.unreadable_folders {
            self.tell(format!("{folder} cannot be read"));
        }
        for name in seen.files.keys() {
            if self.model.names.contains_key(name) {
                continue;
            }
            if name.starts_with("old/") {
                self.out.names_back += 1;
                self.tell(format!("{name} was removed before the writer began"));
            } else {
                let known = self.history.operations.iter().any(|operation| {
                    matches!(&operation.did, Did::Create { name: created, .. } if created == name)
                });
                let why = if known {
                    "was made after the cut"
                } else {
                    "was never made"
                };
                self.out.impossible.push(format!("{name} {why}"));
            }
        }
        for (name, story) in &self.model.names {
            let found = seen.files.get(name);
            let observed = match found {
                Some(present) => self.file(name, story, present),
                None => None,
            };
            self.name(name, story, observed, found.is_some(), mounted);
        }
        for (file, names) in &self.holders {
            if names.len() > 1 {
                self.out.names_doubled += 1;
                if self.out.examples.len() < EXAMPLES {
                    let names = names.join(" and ");
                    self.out
                        .examples
                        .push(format!("file {file} is both {names}"));
                }
            }
        }
    }

    fn tell(&mut self, what: String) {
        if self.out.examples.len() < EXAMPLES {
            self.out.examples.push(what);
        }
    }

    /// Compares a name with what it was to be. `observed` is the file that it is, where there is one.
    fn name(
        &mut self,
        name: &str,
        story: &NameStory,
        observed: Option<u64>,
        present: bool,
        mounted: bool,
    ) {
        let versions = &story.versions;
        let matching = versions.iter().rposition(|version| match version.holds {
            None => !present,
            some => present && some == observed,
        });
        let next = matching.map_or(1, |place| place + 1);
        let overtaken = versions
            .get(next)
            .map_or(usize::MAX, |version| version.since);
        let key = (story.thread, story.folder.clone());
        let earliest = self.overtaken.entry(key).or_insert(usize::MAX);
        *earliest = overtaken.min(*earliest);

        let promised_at = self.model.promised_at(story);
        let promised = versions
            .iter()
            .rposition(|version| version.since <= promised_at);
        let allowed = &versions[promised.unwrap_or(0)..];
        let must_be = allowed.iter().all(|version| version.holds.is_some());
        if overtaken <= promised_at {
            if present {
                self.out.names_back += 1;
                self.tell(format!(
                    "{name} is back to what it was before its folder was synced"
                ));
            } else {
                self.out.names_missing += 1;
                self.tell(format!("{name} is missing, though its folder was synced"));
            }
        } else if !present && must_be {
            self.out.names_missing += 1;
            self.tell(format!(
                "{name} is missing, which it was at no time since its folder was synced"
            ));
        }
        let is_allowed = allowed.iter().any(|version| version.holds == observed);
        if must_be && !(present && is_allowed) {
            // The promised file cannot be reached any more.
            if let Some(file) = allowed[0].holds {
                self.all_lost(file);
            }
        } else if !present {
            let newest = versions.last().and_then(|version| version.holds);
            let synced = newest
                .and_then(|file| self.model.files.get(&file))
                .filter(|story| !story.released && !story.syncs.is_empty());
            if let (Some(_), Some(file)) = (synced, newest) {
                if mounted {
                    self.out.unpromised.names_missing += 1;
                } else {
                    self.all_lost(file);
                }
            }
        }
    }

    fn all_lost(&mut self, file: u64) {
        let Some(story) = self.model.files.get(&file) else {
            return;
        };
        for sync in &story.syncs {
            self.out.syncs_checked += 1;
            self.lost(sync);
        }
    }

    fn lost(&mut self, sync: &Sync) {
        self.out.syncs_lost += 1;
        match sync.of {
            None => self.out.file_syncs_lost += 1,
            Some(_) => self.out.write_syncs_lost += 1,
        }
    }

    /// Judges what is under a name; says which file it is, where it can be one.
    fn file(&mut self, name: &str, story: &NameStory, present: &Present) -> Option<u64> {
        self.out.files += 1;
        let candidates: BTreeSet<u64> = story
            .versions
            .iter()
            .filter_map(|version| version.holds)
            .collect();
        let Some(data) = &present.data else {
            self.out.files_unreadable += 1;
            self.tell(format!("{name} cannot be read"));
            let newest = story
                .versions
                .iter()
                .rev()
                .find_map(|version| version.holds)?;
            self.all_lost(newest);
            return Some(newest);
        };
        let found: Vec<Found> = data.chunks(SECTOR).map(look).collect();
        let promised_at = self.model.promised_at(story);
        // Blocks of a file that had this name before may be what a newer one shows, so its data alone do not
        // tell which it is. What no promise forbids is taken for so.
        let (file, look) = candidates
            .into_iter()
            .filter_map(|file| {
                let its = self.model.files.get(&file)?;
                Some((file, its, self.taken_for(file, its, &found, data)))
            })
            .max_by_key(|(file, its, look)| {
                let latest = story
                    .versions
                    .iter()
                    .rposition(|it| it.holds == Some(*file));
                let next = latest.and_then(|place| story.versions.get(place + 1));
                let allowed = next.is_none_or(|next| next.since > promised_at);
                let kept = usize::MAX - losses(its, look);
                // Numbers of files rise: of equals it is the latest.
                (
                    Some(its.inode) == present.inode,
                    !look.long,
                    allowed,
                    kept,
                    look.own,
                    *file,
                )
            })
            .map(|(file, _, look)| (file, look))?;
        self.report(name, file, &look);
        if look.own > 0 {
            self.holders.entry(file).or_default().push(name.to_owned());
        }
        Some(file)
    }

    fn taken_for(&self, file: u64, story: &FileStory, found: &[Found], data: &[u8]) -> Look {
        let mut out = Look {
            long: found.len() > story.sectors.len(),
            ..Look::default()
        };
        let none = [NOTHING];
        for place in 0..story.sectors.len().max(found.len()) {
            let versions = story.sectors.get(place).map_or(&none[..], Vec::as_slice);
            let found = found.get(place).copied();
            let latest = |holds| versions.iter().rposition(|version| version.holds == holds);
            let matching = match found {
                None | Some(Found::Zeros) => latest(None),
                Some(Found::Garbage) => {
                    let mixed = self.mixture(file, place, versions, data);
                    match mixed {
                        Some(_) => out.mixed += 1,
                        None => out.garbage += 1,
                    }
                    mixed
                }
                Some(Found::Whole(identity)) => {
                    let its = identity.run == self.history.run.run && identity.file == file;
                    if its && identity.number == place as u64 {
                        out.own += 1;
                        let known = latest(Some(identity.generation));
                        if known.is_none() {
                            out.impossible.get_or_insert_with(|| {
                                format!("sector {place} is of a write that was not under way before the cut")
                            });
                        }
                        known
                    } else {
                        out.stale += 1;
                        let removed = identity.run != self.history.run.run || identity.file >= OLD;
                        out.removed += usize::from(removed);
                        None
                    }
                }
            };
            let next = matching.max(reused(versions)).map_or(1, |place| place + 1);
            out.overtaken.push(
                versions
                    .get(next)
                    .map_or(usize::MAX, |version| version.since),
            );
            out.found.push(found);
        }
        out
    }

    /// Which version a sector still is in part, where it is bytes of that and of the next one alone: a page that was
    /// written over in memory while the disk read it.
    fn mixture(&self, file: u64, place: usize, versions: &[Version], data: &[u8]) -> Option<usize> {
        let sector = data.get(place * SECTOR..(place + 1) * SECTOR)?;
        let content = |version: &Version| {
            let mut bytes = [0; SECTOR];
            if let Some(generation) = version.holds {
                let identity = Identity {
                    run: self.history.run.run,
                    file,
                    number: place as u64,
                    generation,
                };
                fill(&mut bytes, &identity);
            }
            bytes
        };
        (0..versions.len().saturating_sub(1)).rev().find(|older| {
            let (before, after) = (content(&versions[*older]), content(&versions[older + 1]));
            let mut bytes = sector.iter().zip(before.iter().zip(&after));
            bytes.all(|(byte, (before, after))| byte == before || byte == after)
        })
    }

    fn report(&mut self, name: &str, file: u64, look: &Look) {
        let Some(story) = self.model.files.get(&file) else {
            return;
        };
        if let Some(why) = &look.impossible {
            self.out.impossible.push(format!("{name}: {why}"));
        }
        // What the last sync of each sector spoke of.
        let whole = story
            .syncs
            .iter()
            .filter(|sync| sync.of.is_none())
            .map(|sync| sync.at)
            .max();
        let mut promised = vec![whole; look.found.len()];
        for sync in &story.syncs {
            if let Some(range) = &sync.of {
                for at in &mut promised[range.clone()] {
                    *at = (*at).max(Some(sync.at));
                }
            }
        }
        let (mut zeros, mut short, mut old, mut unsynced) = (false, false, false, false);
        for (place, found) in look.found.iter().enumerate() {
            let broken = promised[place].is_some_and(|at| look.overtaken[place] <= at);
            match found {
                Some(Found::Zeros) if broken => zeros = true,
                Some(Found::Zeros) if place < story.sectors.len() => unsynced = true,
                Some(Found::Whole(identity)) if broken && identity.file == file => old = true,
                None if broken => short = true,
                _ => {}
            }
        }
        let kinds = [
            (
                look.stale > 0,
                &mut self.out.files_stale,
                "holds data of others",
            ),
            (
                look.removed > 0,
                &mut self.out.files_exposing_removed,
                "holds removed data",
            ),
            (
                look.garbage > 0,
                &mut self.out.files_garbage,
                "holds garbage",
            ),
            (
                zeros,
                &mut self.out.files_zeros,
                "holds zeros in place of synced data",
            ),
            (short, &mut self.out.files_short, "ends before synced data"),
            (
                old,
                &mut self.out.files_old,
                "holds older data than were synced",
            ),
            (
                look.long,
                &mut self.out.files_long,
                "is longer than it ever was",
            ),
        ];
        let mut wrong = Vec::new();
        for (is_so, count, words) in kinds {
            if is_so {
                *count += 1;
                wrong.push(format!("{name} {words}"));
            }
        }
        for words in wrong {
            self.tell(words);
        }
        self.out.unpromised.files_zeros += u64::from(unsynced);
        self.out.unpromised.files_mixed += u64::from(look.mixed > 0);
        let earliest = look.overtaken.iter().copied().min().unwrap_or(usize::MAX);
        if story.replaced_at.is_some_and(|at| earliest <= at) {
            self.out.unpromised.replacements_broken += 1;
        }
        for sync in &story.syncs {
            self.out.syncs_checked += 1;
            if is_lost(sync, look) {
                self.lost(sync);
            }
        }
    }

    fn folders(&mut self, mounted: bool) {
        for (key, syncs) in &self.model.folder_syncs {
            let overtaken = match self.overtaken.get(key) {
                _ if !mounted => 0,
                Some(since) => *since,
                None => usize::MAX,
            };
            let lost = syncs.iter().filter(|at| overtaken <= **at).count() as u64;
            self.out.syncs_checked += syncs.len() as u64;
            self.out.syncs_lost += lost;
            self.out.folder_syncs_lost += lost;
        }
    }
}

/// The latest time that a sector was no part of its file, where it was to become one again: what nobody promised of
/// it may then be anything, since another block may be in its place.
fn reused(versions: &[Version]) -> Option<usize> {
    let latest = versions
        .iter()
        .rposition(|version| version.holds.is_none())?;
    if latest + 1 < versions.len() {
        Some(latest)
    } else {
        // It was to be none from then on: a promise of that alone is broken by whatever is there.
        latest.checked_sub(1)
    }
}

fn losses(story: &FileStory, look: &Look) -> usize {
    let lost = story.syncs.iter().filter(|sync| is_lost(sync, look));
    lost.count()
}

fn is_lost(sync: &Sync, look: &Look) -> bool {
    let range = sync.of.clone().unwrap_or(0..look.overtaken.len());
    look.overtaken[range].iter().any(|since| *since <= sync.at)
}
