//! What a writer did and was promised, and when, in points of the disk's log.
//!
//! A file of JSON lines: the first says of which run it is, each other tells of an operation, once it had
//! come back. Each file and each name belongs to one thread alone, whose operations stand in their order.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The number of the run in every sector.
    pub run: u64,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "did", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Did {
    /// Made an empty file.
    Create {
        /// Its number.
        file: u64,
        /// Its path in the file system.
        name: String,
        /// Its inode.
        inode: u64,
    },
    /// Wrote sectors over others or behind them.
    Write {
        /// The file.
        file: u64,
        /// The first sector.
        first: u64,
        /// How many.
        sectors: u64,
        /// The number of this write among those to the file.
        generation: u64,
        /// Whether the file was open with `O_DSYNC`: the write is its own sync.
        synced: bool,
    },
    /// Made a file shorter.
    Truncate {
        /// The file.
        file: u64,
        /// The sectors that it has now.
        sectors: u64,
    },
    /// Had all of a file made durable: `fsync` or `fdatasync`.
    Sync {
        /// The file.
        file: u64,
    },
    /// Gave a file another name, over what had that before.
    Rename {
        /// The file.
        file: u64,
        /// The name that it had.
        from: String,
        /// The name that it has.
        to: String,
    },
    /// Removed a file.
    Unlink {
        /// The file.
        file: u64,
        /// The name that it had.
        name: String,
    },
    /// Had the names in a folder made durable: `fsync` of the folder.
    SyncFolder {
        /// Its path in the file system.
        folder: String,
    },
}

/// An operation that came back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Whose.
    pub thread: u64,
    /// The point of the log before it began: what it did to the disk stands behind that.
    pub began: u64,
    /// The point of the log after it came back: what it waited for stands before that.
    pub ended: u64,
    /// What it did.
    #[serde(flatten)]
    pub did: Did,
}

/// Writes a history.
pub struct Keeper {
    output: BufWriter<File>,
}

impl Keeper {
    /// Begins a file.
    pub fn create(path: &Path, run: Run) -> io::Result<Self> {
        let mut keeper = Self {
            output: BufWriter::new(File::create(path)?),
        };
        keeper.line(&run)?;
        Ok(keeper)
    }

    /// Adds an operation that came back.
    pub fn add(&mut self, operation: &Operation) -> io::Result<()> {
        self.line(operation)
    }

    /// Writes what is left.
    pub fn close(mut self) -> io::Result<()> {
        self.output.flush()
    }

    fn line(&mut self, of: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.output, of)?;
        self.output.write_all(b"\n")
    }
}

/// A history that was read.
#[derive(Debug)]
pub struct History {
    /// Of which run.
    pub run: Run,
    /// In the order in which they came back.
    pub operations: Vec<Operation>,
}

impl History {
    /// Reads a history. An error names the line and what is wrong with it.
    pub fn read(path: &Path) -> io::Result<Self> {
        let mut lines = BufReader::new(File::open(path)?).lines();
        let run = parse(1, &lines.next().transpose()?.unwrap_or_default())?;
        let operations = lines
            .enumerate()
            .map(|(place, line)| parse(place + 2, &line?))
            .collect::<io::Result<_>>()?;
        Ok(Self { run, operations })
    }
}

fn parse<T: for<'a> Deserialize<'a>>(number: usize, line: &str) -> io::Result<T> {
    serde_json::from_str(line).map_err(|error| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("line {number} is none of a history: {error}"),
        )
    })
}
