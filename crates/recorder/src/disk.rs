//! A disk in a file that writes down what is asked of it: the part of the recorder that knows no FUSE.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use nix::fcntl::{FallocateFlags, fallocate};
use serde::Serialize;

use crate::log::{Asked, Writer};

/// What a disk was asked for in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Writes.
    pub writes: u64,
    /// Their bytes.
    pub bytes_written: u64,
    /// Discards and ranges of zeros.
    pub zeros: u64,
    /// Flushes.
    pub flushes: u64,
}

/// The image holds the present contents, the log how they came about.
///
/// A request is in the log, then in the image, then counted in the file of the point; only then may it be
/// acknowledged. So whoever reads the point after a call has come back knows that all that the call waited
/// for stands before it in the log.
pub struct Disk {
    image: File,
    size: u64,
    log: Writer,
    point: File,
    acknowledged: Arc<AtomicU64>,
    totals: Totals,
}

impl Disk {
    /// Opens an image, or makes an empty one of that size, and begins a log and the file of the point.
    pub fn open(image: &Path, size: u64, log: &Path, point: &Path) -> io::Result<Self> {
        let image = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(image)?;
        if image.metadata()?.len() == 0 {
            image.set_len(size)?;
        } else if image.metadata()?.len() != size {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("the image is of another size than {size} bytes"),
            ));
        }
        let point = File::create(point)?;
        point.write_all_at(&0_u64.to_le_bytes(), 0)?;
        Ok(Self {
            image,
            size,
            log: Writer::create(log, size)?,
            point,
            acknowledged: Arc::default(),
            totals: Totals::default(),
        })
    }

    /// How many records were acknowledged; to be read by whoever takes requests in, when a flush comes.
    #[must_use]
    pub fn acknowledged(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.acknowledged)
    }

    /// What it was asked for by now.
    #[must_use]
    pub const fn totals(&self) -> Totals {
        self.totals
    }

    /// Reads what is within the disk.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let within = self.size.saturating_sub(offset).min(buffer.len() as u64);
        let within = usize::try_from(within).unwrap_or(buffer.len());
        self.image.read_exact_at(&mut buffer[..within], offset)?;
        Ok(within)
    }

    /// Writes within the disk.
    pub fn write(&mut self, offset: u64, data: &[u8]) -> io::Result<()> {
        let length = data.len() as u64;
        self.refuse_beyond(offset, length)?;
        self.log
            .append(Asked::Write { offset, length }, data, now_ns())?;
        self.image.write_all_at(data, offset)?;
        self.totals.writes += 1;
        self.totals.bytes_written += length;
        self.acknowledge()
    }

    /// Makes a range read as zeros.
    pub fn zero(&mut self, offset: u64, length: u64) -> io::Result<()> {
        self.refuse_beyond(offset, length)?;
        self.log
            .append(Asked::Zero { offset, length }, &[], now_ns())?;
        punch(&self.image, offset, length)?;
        self.totals.zeros += 1;
        self.acknowledge()
    }

    /// Flushes the cache that such a disk may have; `covers` is what was acknowledged when the flush came.
    pub fn flush(&mut self, covers: u64) -> io::Result<()> {
        self.log.append(Asked::Flush { covers }, &[], now_ns())?;
        self.totals.flushes += 1;
        self.acknowledge()
    }

    fn acknowledge(&self) -> io::Result<()> {
        let count = self.log.count();
        self.point.write_all_at(&count.to_le_bytes(), 0)?;
        self.acknowledged.store(count, Ordering::Release);
        Ok(())
    }

    fn refuse_beyond(&self, offset: u64, length: u64) -> io::Result<()> {
        if offset.checked_add(length).is_none_or(|end| end > self.size) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "beyond the end of the disk",
            ));
        }
        Ok(())
    }
}

/// Reads the point that a recording disk keeps in a file.
pub fn read_point(file: &File) -> io::Result<u64> {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, 0)?;
    Ok(u64::from_le_bytes(word))
}

/// Makes a range of a file read as zeros and take no room.
pub(crate) fn punch(file: &File, offset: u64, length: u64) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    let signed = |number: u64| i64::try_from(number).map_err(io::Error::other);
    let how = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    Ok(fallocate(file, how, signed(offset)?, signed(length)?)?)
}

fn now_ns() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| {
            u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
        })
}
