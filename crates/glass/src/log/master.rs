//! Where recovery begins: one small record in a file of its own, in two copies that are written by turns, so that one of them
//! is whole whenever power is lost.

use std::sync::Arc;

use super::segments;
use crate::pages::disk::{Disk, Folder};
use crate::{Error, Lsn, Result};

pub(super) const NAME: &str = "master";
const MAGIC: &[u8; 8] = b"glasslog";
/// Of the log's format. 1: the first. 2: the master record says whether the store was closed.
const VERSION: u32 = 1;
/// The copies are so far apart that none is torn by writing the other.
const APART: u64 = 4096;
const LENGTH: usize = 48;

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Master {
    /// How often the log has been opened.
    pub epoch: u32,
    /// Of the log's files, in bytes.
    pub segment: u64,
    /// Where the record ends that began the last checkpoint; [`Lsn::NONE`] before the first: the store is still being made.
    pub checkpoint: Lsn,
    /// Whether the store was closed after it, so that nothing is to be recovered; said to be otherwise as soon as it is opened.
    pub closed: bool,
}

/// The file.
pub(super) struct MasterFile {
    disk: Arc<dyn Disk>,
    // How often it has been written.
    count: u64,
    now: Option<Master>,
}

impl MasterFile {
    /// That of a folder; its record is `None` where the log has never been opened.
    pub fn open(folder: &dyn Folder) -> Result<Self> {
        let disk = folder.open(NAME).map_err(failed)?;
        let mut count = 0;
        let mut now = None;
        for copy in 0..2 {
            let mut bytes = [0; LENGTH];
            disk.read(copy * APART, &mut bytes).map_err(failed)?;
            if let Some((written, master)) = decode(&bytes)?
                && written > count
            {
                count = written;
                now = Some(master);
            }
        }
        if now.is_none() && !segments::present(folder)?.is_empty() {
            let message = "the log's master record is damaged, both copies of it";
            return Err(Error::Corrupt(None, message.into()));
        }
        Ok(Self { disk, count, now })
    }

    /// What it says.
    pub const fn now(&self) -> Option<Master> {
        self.now
    }

    /// Makes it say that, after a loss of power too.
    pub fn set(&mut self, master: Master) -> Result<()> {
        let count = self.count + 1;
        let bytes = encode(count, &master);
        let offset = count % 2 * APART;
        self.disk.write(offset, &bytes).map_err(failed)?;
        self.disk.sync().map_err(failed)?;
        self.count = count;
        self.now = Some(master);
        Ok(())
    }
}

fn encode(count: u64, master: &Master) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&master.epoch.to_le_bytes());
    bytes[16..24].copy_from_slice(&count.to_le_bytes());
    bytes[24..32].copy_from_slice(&master.segment.to_le_bytes());
    bytes[32..40].copy_from_slice(&master.checkpoint.0.to_le_bytes());
    bytes[40..44].copy_from_slice(&u32::from(master.closed).to_le_bytes());
    let checksum = crc32c::crc32c(&bytes[..44]);
    bytes[44..].copy_from_slice(&checksum.to_le_bytes());
    bytes
}

/// How often it had been written with this copy, and what it says; `None` where it is not whole.
fn decode(bytes: &[u8; LENGTH]) -> Result<Option<(u64, Master)>> {
    let u32_at = |at: usize| {
        let mut number = [0; 4];
        number.copy_from_slice(&bytes[at..at + 4]);
        u32::from_le_bytes(number)
    };
    let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
    if &bytes[..8] != MAGIC || u32_at(44) != crc32c::crc32c(&bytes[..44]) {
        return Ok(None);
    }
    if u32_at(8) != VERSION {
        let message = format!("the log's format is {}, not {VERSION}", u32_at(8));
        return Err(Error::Corrupt(None, message));
    }
    let master = Master {
        epoch: u32_at(12),
        segment: u64_at(24),
        checkpoint: Lsn(u64_at(32)),
        closed: u32_at(40) != 0,
    };
    Ok(Some((u64_at(16), master)))
}

fn failed(error: std::io::Error) -> Error {
    Error::Io("the log's master record", error)
}
