//! Reads the packed rows, puts them into the order asked for, and gives each worker its batches.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::batch::{Batch, Counts};
use crate::line::table_and_owner;
use crate::manifest::unpack;
use crate::order::{Order, Shuffled};
use crate::pack::lines;
use crate::split::{Owners, Split};

const CHUNK: usize = 256 << 10;
/// Batches that wait for each worker: enough that it never waits for the reader, and few, since they are memory.
const WAITING: usize = 3;

/// Where a worker finds its batches.
#[derive(Clone)]
pub struct Queue(Arc<Mutex<Receiver<Batch>>>);

impl Queue {
    /// The next batch; none where there are no more.
    pub fn next(&self) -> Option<Batch> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv()
            .ok()
    }
}

/// Batches that were sent, whose memory serves again.
#[derive(Debug, Default)]
pub struct Pool(Mutex<Vec<Batch>>);

impl Pool {
    /// Gives one back.
    pub fn give(&self, mut batch: Batch) {
        batch.text.clear();
        batch.ends.clear();
        batch.counts = Counts::default();
        batch.again = Counts::default();
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(batch);
    }

    fn take(&self) -> Batch {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop()
            .unwrap_or_default()
    }
}

/// Queues for so many workers, and the ends that the reader fills.
#[must_use]
pub fn queues(split: Split, workers: usize) -> (Vec<SyncSender<Batch>>, Vec<Queue>) {
    let queue = |room| {
        let (sender, receiver) = sync_channel(room);
        (sender, Queue(Arc::new(Mutex::new(receiver))))
    };
    match split {
        Split::Host => (0..workers).map(|_| queue(WAITING)).unzip(),
        Split::Batch => {
            let (sender, shared) = queue(WAITING * workers);
            (vec![sender], vec![shared; workers])
        }
    }
}

/// What is read.
pub struct Reader<'a> {
    /// The packed data.
    pub folder: &'a Path,
    /// Tables by their places.
    pub tables: &'a [String],
    /// Rows of a batch.
    pub batch_rows: u64,
    /// The order asked for.
    pub order: Order,
    /// Of that order.
    pub seed: u64,
    /// Ends it early.
    pub over: &'a AtomicBool,
    /// Where memory for batches comes from.
    pub pool: &'a Pool,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default)]
pub struct WasRead {
    /// Rows that were to be sent, those that come twice included.
    pub rows: u64,
    /// Rows that came later than they were made.
    pub delayed: u64,
    /// Rows that came a second time.
    pub duplicated: u64,
    /// Whether all data were read.
    pub whole: bool,
}

/// Why reading ended.
enum Ended {
    /// Nobody takes more.
    Over,
    Wrong(String),
}

impl Reader<'_> {
    /// Reads to the end, or until nobody takes more. In one line, why the data cannot be read.
    pub fn read(&self, senders: Vec<SyncSender<Batch>>) -> Result<WasRead, String> {
        let mut dealer = Dealer {
            reader: self,
            owners: Owners::new(senders.len()),
            open: senders.iter().map(|_| self.pool.take()).collect(),
            senders,
            rows: 0,
            table: 0,
        };
        let mut shuffled = Shuffled::new(self.order, self.seed);
        let whole = match self.all(&mut dealer, &mut shuffled) {
            Ok(()) => true,
            Err(Ended::Over) => false,
            Err(Ended::Wrong(wrong)) => return Err(format!("{}: {wrong}", self.folder.display())),
        };
        Ok(WasRead {
            rows: dealer.rows,
            delayed: shuffled.delayed,
            duplicated: shuffled.duplicated,
            whole,
        })
    }

    fn all(&self, dealer: &mut Dealer, shuffled: &mut Shuffled) -> Result<(), Ended> {
        let wrong = |error: std::io::Error| Ended::Wrong(error.to_string());
        let mut data = unpack(self.folder).map_err(wrong)?;
        let (mut buffer, mut rest) = (vec![0; CHUNK], Vec::new());
        loop {
            let read = data.read(&mut buffer).map_err(wrong)?;
            if read == 0 {
                break;
            }
            if self.over.load(Ordering::Relaxed) {
                return Err(Ended::Over);
            }
            lines(&mut rest, &buffer[..read], &mut |line| {
                shuffled.put(line, &mut |line, times| dealer.deal(line, times))
            })?;
        }
        shuffled.finish(&mut |line, times| dealer.deal(line, times))?;
        dealer.finish()
    }
}

/// Deals rows out to workers.
struct Dealer<'a> {
    reader: &'a Reader<'a>,
    senders: Vec<SyncSender<Batch>>,
    owners: Owners,
    open: Vec<Batch>,
    rows: u64,
    /// The place of the table of the row before.
    table: usize,
}

impl Dealer<'_> {
    /// All times that a row is sent are of one batch, so that each batch by itself says what became of its rows.
    fn deal(&mut self, line: &[u8], times: u64) -> Result<(), Ended> {
        let (table, owner) = table_and_owner(line);
        let before = self.reader.tables.get(self.table);
        if before.is_none_or(|name| name.as_bytes() != table) {
            let name = crate::line::plain(table);
            let found = self.reader.tables.iter().position(|known| *known == name);
            self.table = found.ok_or_else(|| {
                Ended::Wrong(format!(
                    "has rows of {name}, which its manifest does not know"
                ))
            })?;
        }
        let worker = self.owners.worker(owner);
        self.rows += times;
        let batch = &mut self.open[worker];
        // The manifest was read with fewer tables than that.
        let table = u16::try_from(self.table).unwrap_or(u16::MAX);
        for _ in 0..times {
            batch.push(line, table);
        }
        batch.again.add(self.table, times - 1);
        batch.made = self.rows;
        if batch.rows() >= self.reader.batch_rows {
            self.send(worker)?;
        }
        Ok(())
    }

    fn send(&mut self, worker: usize) -> Result<(), Ended> {
        let full = std::mem::replace(&mut self.open[worker], self.reader.pool.take());
        self.senders[worker].send(full).map_err(|_| Ended::Over)
    }

    fn finish(&mut self) -> Result<(), Ended> {
        for worker in 0..self.open.len() {
            if self.open[worker].rows() > 0 {
                self.send(worker)?;
            }
        }
        Ok(())
    }
}
