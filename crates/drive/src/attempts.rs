//! Every attempt of a client, as it is written down where a fault is struck: what intervals are too coarse for.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::clock::{nanoseconds, now_ns};
use crate::failure::{ErrorKind, Failure};
use crate::record::Sample;

/// Names of the files begin so.
const PREFIX: &str = "attempts-";

/// A line an attempt, in the order in which they ended, with times in ns since the epoch.
#[derive(Debug)]
pub struct Attempts {
    file: BufWriter<File>,
    path: PathBuf,
    operations: Vec<&'static str>,
    /// When the part began: as the client has it, and in ns since the epoch.
    origin: Option<(Instant, u64)>,
}

impl Attempts {
    /// Begins the file of a client of a driver in `folder`, which is there.
    pub fn create(
        folder: &Path,
        driver: u64,
        client: u32,
        operations: &[&'static str],
    ) -> Result<Self, Failure> {
        let path = folder.join(format!("{PREFIX}{driver}-{client}.csv"));
        let mut file = File::create(&path)
            .map(BufWriter::new)
            .map_err(|error| failed(&path, &error))?;
        writeln!(file, "due_ns,sent_ns,ended_ns,operation,outcome")
            .map_err(|error| failed(&path, &error))?;
        Ok(Self {
            file,
            path,
            operations: operations.to_vec(),
            origin: None,
        })
    }

    /// Notes one; times are in ns since `origin`. What no schedule asked for was due when it was sent.
    pub fn note(
        &mut self,
        origin: Instant,
        due_ns: Option<u64>,
        sample: &Sample,
    ) -> Result<(), Failure> {
        let since = match self.origin {
            Some((of, since)) if of == origin => since,
            _ => {
                // The part has begun: what was sent within it has ended.
                let since = now_ns().saturating_sub(nanoseconds(origin.elapsed()));
                self.origin = Some((origin, since));
                since
            }
        };
        let sent_ns = sample.end_ns - sample.service_ns;
        let operation = self
            .operations
            .get(usize::from(sample.index))
            .copied()
            .unwrap_or_default();
        writeln!(
            self.file,
            "{},{},{},{operation},{}",
            since + due_ns.unwrap_or(sent_ns),
            since + sent_ns,
            since + sample.end_ns,
            sample.error.map_or("ok", ErrorKind::name),
        )
        .map_err(|error| failed(&self.path, &error))
    }

    /// Completes the file.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.file
            .flush()
            .map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::new("io", format!("writing {}: {error}", path.display()))
}
