//! A terminal: one client's way through its transactions.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dyno_load::Random;
use dyno_sql::Result;

use crate::input::{Input, Inputs};
use crate::random::stream;
use crate::transactions::{self, Outcome, Rows};
use crate::{Config, DISTRICTS, Kind, Store, keying_time, think_time};

const PACE: u64 = 0x7061_6365;

/// What happened that is neither an error nor to be seen in latencies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// New orders rolled back on purpose (2.4.1.4); they count as completed (5.1.2).
    pub rolled_back: u64,
    /// Deliveries that ended well.
    pub deliveries: u64,
    /// Deliveries among them that found no order in some district; to be reported where they are more
    /// than 1 % (2.7.4.2).
    pub skipping_deliveries: u64,
    /// Districts in which they found none.
    pub skipped_districts: u64,
}

/// One client's terminal.
#[derive(Debug)]
pub struct Terminal<S> {
    store: S,
    inputs: Inputs,
    pace: Random,
    input: Input,
    rows: Rows,
    tally: Tally,
}

impl<S: Store> Terminal<S> {
    /// The terminal of client number `client`, from 0; over all drivers no two clients have one number.
    pub fn new(config: &Config, client: u64, store: S) -> Self {
        let mut inputs = Inputs::new(config, client);
        Self {
            store,
            input: inputs.draw(),
            inputs,
            pace: stream(config.seed, PACE, client),
            rows: Rows::default(),
            tally: Tally::default(),
        }
    }

    /// Draws the next transaction and all its inputs, outside its time.
    pub fn prepare(&mut self) -> Kind {
        self.input = self.inputs.draw();
        self.input.kind()
    }

    /// As [`Self::prepare`], of a kind that the caller chooses.
    pub fn prepare_kind(&mut self, kind: Kind) {
        self.input = self.inputs.of_kind(kind);
    }

    /// Carries out what was prepared. A New-Order rolled back on purpose is none of the errors; a
    /// transaction that the store rolled back is, and is not tried again.
    pub fn perform(&mut self) -> Result<Outcome> {
        self.perform_between(|| Ok(()), |()| Ok(()))
    }

    /// As [`Self::perform`], with something done just before the transaction and just after it, however it ends.
    pub fn perform_between<T>(
        &mut self,
        before: impl FnOnce() -> Result<T>,
        after: impl FnOnce(T) -> Result<()>,
    ) -> Result<Outcome> {
        let now = micros_since_epoch();
        let begun = before()?;
        let outcome = transactions::perform(&mut self.store, &self.input, now, &mut self.rows);
        after(begun)?;
        let outcome = outcome?;
        self.tally.count(outcome);
        Ok(outcome)
    }

    /// How long somebody types before the prepared transaction.
    #[must_use]
    pub const fn keying_time(&self) -> Duration {
        keying_time(self.input.kind())
    }

    /// How long somebody thinks after the prepared transaction.
    pub fn think_time(&mut self) -> Duration {
        think_time(self.input.kind(), &mut self.pace)
    }

    /// What was prepared.
    #[must_use]
    pub const fn input(&self) -> &Input {
        &self.input
    }

    /// What the last transaction read.
    #[must_use]
    pub const fn rows(&self) -> &Rows {
        &self.rows
    }

    /// What happened since the terminal was made.
    #[must_use]
    pub const fn tally(&self) -> Tally {
        self.tally
    }

    /// The store, to connect anew.
    pub const fn store(&mut self) -> &mut S {
        &mut self.store
    }

    /// Gives the store back.
    pub fn into_store(self) -> S {
        self.store
    }
}

impl Tally {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::NewOrder { total: None, .. } => self.rolled_back += 1,
            Outcome::Delivery { delivered } => {
                let skipped = DISTRICTS.unsigned_abs().saturating_sub(delivered as u64);
                self.deliveries += 1;
                self.skipping_deliveries += u64::from(skipped > 0);
                self.skipped_districts += skipped;
            }
            _ => {}
        }
    }
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.rolled_back += other.rolled_back;
        self.deliveries += other.deliveries;
        self.skipping_deliveries += other.skipping_deliveries;
        self.skipped_districts += other.skipped_districts;
    }
}

fn micros_since_epoch() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| {
        i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
    })
}
