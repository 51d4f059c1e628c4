//! The log's bytes, one after the other from its very beginning, in files of one size: byte `b` is in file `b / size`. Those that
//! nobody needs any more are removed from the front.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::record::TRAILER;
use crate::pages::disk::{Disk, Folder};
use crate::{Error, Lsn, Result};

const PREFIX: &str = "log-";

/// The files.
pub(super) struct Segments {
    folder: Arc<dyn Folder>,
    size: u64,
    present: BTreeSet<u64>,
    open: BTreeMap<u64, Open>,
}

struct Open {
    disk: Arc<dyn Disk>,
    unsynced: bool,
}

impl Segments {
    /// Those of a folder, of `size` bytes each.
    pub fn new(folder: Arc<dyn Folder>, size: u64) -> Result<Self> {
        let present = present(&*folder)?;
        Ok(Self {
            folder,
            size,
            present,
            open: BTreeMap::new(),
        })
    }

    /// Where the last of the files would end.
    pub fn end(&self) -> u64 {
        self.present.last().map_or(0, |last| (last + 1) * self.size)
    }

    /// Reads from `at` on. There are zeros where there is no file.
    pub fn read(&mut self, at: u64, into: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < into.len() {
            let (number, offset, length) = self.piece(at + done as u64, into.len() - done);
            let piece = &mut into[done..done + length];
            if self.present.contains(&number) {
                let disk = &self.open(number)?.disk;
                disk.read(offset, piece).map_err(failed("read"))?;
            } else {
                piece.fill(0);
            }
            done += length;
        }
        Ok(())
    }

    /// Where the record begins that ends at `end`.
    pub fn start_of(&mut self, end: Lsn) -> Result<Lsn> {
        let mut length = [0; TRAILER];
        let start = match end.0.checked_sub(TRAILER as u64) {
            Some(at) => {
                self.read(at, &mut length)?;
                end.0.checked_sub(u64::from(u32::from_le_bytes(length)))
            }
            None => None,
        };
        start.map(Lsn).ok_or_else(|| {
            Error::Corrupt(
                None,
                format!("the log has no record that ends at {}", end.0),
            )
        })
    }

    /// Writes from `at` on.
    pub fn write(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            let (number, offset, length) = self.piece(at + done as u64, bytes.len() - done);
            let open = self.open(number)?;
            open.unsynced = true;
            let piece = &bytes[done..done + length];
            open.disk.write(offset, piece).map_err(failed("written"))?;
            done += length;
        }
        Ok(())
    }

    /// What was written is on disk.
    pub fn sync(&mut self) -> Result<()> {
        for open in self.open.values_mut().filter(|open| open.unsynced) {
            open.disk.sync().map_err(failed("synced"))?;
            open.unsynced = false;
        }
        // Nobody writes into any but the last again.
        while self.open.len() > 1 {
            self.open.pop_first();
        }
        Ok(())
    }

    /// All that can be read is on disk, whoever wrote it.
    pub fn sync_all(&mut self) -> Result<()> {
        for number in self.present.clone() {
            self.open(number)?.unsynced = true;
        }
        self.sync()
    }

    /// Removes the files that end before `lsn`.
    pub fn remove_before(&mut self, lsn: Lsn) -> Result<()> {
        let keep = self.present.split_off(&(lsn.0 / self.size));
        for number in std::mem::replace(&mut self.present, keep) {
            self.open.remove(&number);
            self.folder
                .remove(&name(number))
                .map_err(failed("removed"))?;
        }
        Ok(())
    }

    /// Which file has byte `at`, where, and how many of so many bytes.
    fn piece(&self, at: u64, length: usize) -> (u64, u64, usize) {
        let offset = at % self.size;
        let left = usize::try_from(self.size - offset).unwrap_or(usize::MAX);
        (at / self.size, offset, length.min(left))
    }

    fn open(&mut self, number: u64) -> Result<&mut Open> {
        use std::collections::btree_map::Entry;
        match self.open.entry(number) {
            Entry::Occupied(open) => Ok(open.into_mut()),
            Entry::Vacant(place) => {
                let disk = self.folder.open(&name(number)).map_err(failed("opened"))?;
                self.present.insert(number);
                Ok(place.insert(Open {
                    disk,
                    unsynced: false,
                }))
            }
        }
    }
}

/// The numbers of the files in a folder.
pub(super) fn present(folder: &dyn Folder) -> Result<BTreeSet<u64>> {
    let names = folder.names().map_err(failed("looked for"))?;
    Ok(names
        .iter()
        .filter_map(|name| name.strip_prefix(PREFIX)?.parse().ok())
        .collect())
}

pub(super) fn name(number: u64) -> String {
    format!("{PREFIX}{number:010}")
}

pub(super) fn failed(what: &'static str) -> impl Fn(std::io::Error) -> Error {
    move |error| {
        let message = format!("a file of it could not be {what}: {error}");
        Error::Io("the log", std::io::Error::new(error.kind(), message))
    }
}
