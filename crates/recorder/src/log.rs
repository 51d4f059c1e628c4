//! The log of a disk: every write, discard and flush in the order in which they were acknowledged.
//!
//! A file of a head and records; a record of a write is followed by its data. A record's place in that
//! order is its *number*, and a *point* of the log is how many records stand before it. Each record has a
//! checksum, but not its data, which are not read along with it; a log whose end is torn is read up to there.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// The version is part of it.
const MAGIC: &[u8; 8] = b"DYNOLOG1";
const HEAD: usize = 16;
const RECORD: usize = 48;

/// What was asked of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Data that follow the record, from a byte of the disk on.
    Write {
        /// The first byte.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// A discard, or zeros: the range reads as zeros.
    Zero {
        /// The first byte.
        offset: u64,
        /// How many.
        length: u64,
    },
    /// A flush of the cache. It vouches for the records that were acknowledged when it came.
    Flush {
        /// How many records that were: they are the first ones.
        covers: u64,
    },
}

/// A record, and where its data are in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What was asked.
    pub asked: Asked,
    /// When it was acknowledged, in nanoseconds since the epoch.
    pub time_ns: u64,
    /// Where the data of a write are in the log file.
    pub data_at: u64,
}

/// Appends to a log; each record is with the kernel when the call returns.
pub struct Writer {
    file: File,
    at: u64,
    count: u64,
}

impl Writer {
    /// Begins a log of a disk of that size; there must not be one.
    pub fn create(path: &Path, size: u64) -> io::Result<Self> {
        let mut file = File::options().write(true).create_new(true).open(path)?;
        let mut head = Vec::with_capacity(HEAD);
        head.extend_from_slice(MAGIC);
        head.extend_from_slice(&size.to_le_bytes());
        file.write_all(&head)?;
        Ok(Self {
            file,
            at: HEAD as u64,
            count: 0,
        })
    }

    /// Appends a record. After an error the log ends with what was whole before it.
    pub fn append(&mut self, asked: Asked, data: &[u8], time_ns: u64) -> io::Result<()> {
        let mut bytes = encode(asked, self.count, time_ns, data.len());
        bytes.extend_from_slice(data);
        if let Err(error) = self.file.write_all(&bytes) {
            self.file.set_len(self.at)?;
            self.file.seek(SeekFrom::Start(self.at))?;
            return Err(error);
        }
        self.at += bytes.len() as u64;
        self.count += 1;
        Ok(())
    }

    /// How many records it has.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }
}

fn encode(asked: Asked, number: u64, time_ns: u64, follow: usize) -> Vec<u8> {
    let (kind, first, second) = match asked {
        Asked::Write { offset, length } => (1_u32, offset, length),
        Asked::Zero { offset, length } => (2, offset, length),
        Asked::Flush { covers } => (3, covers, 0),
    };
    let mut bytes = Vec::with_capacity(RECORD + follow);
    bytes.extend_from_slice(&kind.to_le_bytes());
    bytes.extend_from_slice(&0_u32.to_le_bytes());
    for number in [number, time_ns, first, second] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let sum = crc32c::crc32c(&bytes);
    bytes.extend_from_slice(&u64::from(sum).to_le_bytes());
    bytes
}

/// A log that was read: what was asked of the disk, without the data.
pub struct Log {
    /// The records in order.
    pub entries: Vec<Entry>,
    /// The disk's size in bytes.
    pub size: u64,
    /// Whether something that is no whole record stands at its end.
    pub torn: bool,
}

impl Log {
    /// Reads a log and checks each record, but no data. An error says what is wrong with the file.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut input = BufReader::with_capacity(1 << 12, File::open(path)?);
        let mut head = [0; HEAD];
        input.read_exact(&mut head).map_err(|_| no_log())?;
        if !head.starts_with(MAGIC) {
            return Err(no_log());
        }
        let size = number(&head, 8);
        let mut log = Self {
            entries: Vec::new(),
            size,
            torn: false,
        };
        let end = input.get_ref().metadata()?.len();
        let mut at = HEAD as u64;
        loop {
            let mut record = [0; RECORD];
            match fill(&mut input, &mut record)? {
                0 => return Ok(log),
                RECORD => {}
                _ => break,
            }
            let Some((asked, time_ns)) = decode(&record, log.entries.len() as u64, size) else {
                break;
            };
            let data_at = at + RECORD as u64;
            let follow = match asked {
                Asked::Write { length, .. } => length,
                Asked::Zero { .. } | Asked::Flush { .. } => 0,
            };
            if data_at + follow > end {
                break;
            }
            input.seek_relative(i64::try_from(follow).map_err(io::Error::other)?)?;
            log.entries.push(Entry {
                asked,
                time_ns,
                data_at,
            });
            at = data_at + follow;
        }
        log.torn = true;
        Ok(log)
    }
}

fn no_log() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "no log of a disk")
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn decode(record: &[u8; RECORD], expected: u64, size: u64) -> Option<(Asked, u64)> {
    let (first, second) = (number(record, 24), number(record, 32));
    if u64::from(crc32c::crc32c(&record[..RECORD - 8])) != number(record, RECORD - 8) {
        return None;
    }
    let within = first.checked_add(second).is_some_and(|end| end <= size);
    let asked = match (number(record, 0), within) {
        (1, true) => Asked::Write {
            offset: first,
            length: second,
        },
        (2, true) => Asked::Zero {
            offset: first,
            length: second,
        },
        (3, _) if first <= expected => Asked::Flush { covers: first },
        _ => return None,
    };
    (number(record, 8) == expected).then_some((asked, number(record, 16)))
}

/// As much as there is, which at the end of the file is less than asked for.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut have = 0;
    while have < buffer.len() {
        match input.read(&mut buffer[have..]) {
            Ok(0) => break,
            Ok(more) => have += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(have)
}
