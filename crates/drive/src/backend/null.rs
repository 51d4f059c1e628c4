//! A store that answers at once and stores nothing: what remains is the driver's own cost. It can be told to
//! stand still for a while, so that what the driver says of a stall can be held against arithmetic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use super::{Backend, BackendReport, Status};
use crate::failure::{ErrorKind, Failure};
use crate::job::{BackendJob, Job, StallJob};
use dyno_sql::Error as OperationError;

/// The store.
#[derive(Debug)]
pub struct Null {
    stall: Option<Stall>,
}

impl Null {
    /// When it stands still, if it ever does.
    #[must_use]
    pub const fn stall(&self) -> Option<&Stall> {
        self.stall.as_ref()
    }
}

impl Backend for Null {
    type Connection = ();

    fn open(job: &Job, clients: u32, halt: &Arc<AtomicBool>) -> Result<(Self, Vec<()>), Failure> {
        let asked = match &job.backend {
            BackendJob::Null(null) => null.stall,
            _ => None,
        };
        let stall = asked.map(|asked| Stall::new(asked, Arc::clone(halt)));
        Ok((Self { stall }, vec![(); clients as usize]))
    }

    fn unopened() -> BackendReport {
        BackendReport {
            kind: "null",
            version: env!("CARGO_PKG_VERSION").to_owned(),
            effective: Map::new(),
            status: Status::new(),
        }
    }

    fn effective(&self) -> Map<String, Value> {
        self.stall
            .iter()
            .map(|stall| ("stall".to_owned(), json!(stall.asked)))
            .collect()
    }

    fn begin(&self, origin: Instant) {
        if let Some(stall) = &self.stall {
            // There is one measured part.
            let _ = stall.origin.set(origin);
        }
    }

    fn close(self, _: Vec<()>, _: bool) -> Result<Status, Failure> {
        Ok(Status::new())
    }

    fn discard(self, _: Vec<()>) -> Result<Status, Failure> {
        Ok(Status::new())
    }
}

/// A time within the measured part in which nothing is answered: what is begun in it ends at its end.
#[derive(Debug)]
pub struct Stall {
    asked: StallJob,
    halt: Arc<AtomicBool>,
    /// Of the measured part; before it is known nothing stands still.
    origin: OnceLock<Instant>,
}

impl Stall {
    const fn new(asked: StallJob, halt: Arc<AtomicBool>) -> Self {
        Self {
            asked,
            halt,
            origin: OnceLock::new(),
        }
    }

    /// Answers an operation that is begun now. An error only where the run was to end meanwhile.
    pub fn answer(&self) -> Result<(), OperationError> {
        const LOOK_EVERY: Duration = Duration::from_millis(100);
        let Some(&origin) = self.origin.get() else {
            return Ok(());
        };
        let from = origin + Duration::from_secs_f64(self.asked.at_s);
        let until = from + Duration::from_secs_f64(self.asked.for_s);
        if Instant::now() < from {
            return Ok(());
        }
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            if self.halt.load(Ordering::Relaxed) {
                return Err(OperationError::new(
                    ErrorKind::Timeout,
                    "the run was to end within the stall",
                ));
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stall(origin: Option<Instant>) -> Stall {
        let asked = StallJob {
            at_s: 10.0,
            for_s: 0.1,
        };
        let stall = Stall::new(asked, Arc::default());
        if let Some(origin) = origin {
            stall.origin.set(origin).unwrap();
        }
        stall
    }

    /// How long an operation takes that is begun so many ms after the measured part began.
    fn took(after_ms: u64) -> Duration {
        let begun = Instant::now();
        let origin = begun.checked_sub(Duration::from_millis(after_ms)).unwrap();
        stall(Some(origin)).answer().unwrap();
        begun.elapsed()
    }

    #[test]
    fn what_is_begun_within_the_stall_ends_at_its_end_and_nothing_else_waits() {
        assert!(took(10_000) >= Duration::from_millis(99));
        let late = took(10_060);
        assert!(late >= Duration::from_millis(39), "{late:?}");
        // A busy machine makes waits longer and never shorter; these have none.
        assert!(took(9_000) < Duration::from_millis(90));
        assert!(took(10_200) < Duration::from_millis(90));
    }

    #[test]
    fn before_the_measured_part_nothing_stands_still() {
        let begun = Instant::now();
        stall(None).answer().unwrap();
        assert!(begun.elapsed() < Duration::from_millis(90));
    }

    #[test]
    fn a_run_that_is_to_end_does_not_wait_for_the_end_of_the_stall() {
        let begun = Instant::now();
        let asked = StallJob {
            at_s: 0.0,
            for_s: 600.0,
        };
        let stall = Stall::new(asked, Arc::new(AtomicBool::new(true)));
        stall.origin.set(begun).unwrap();
        assert!(stall.answer().is_err());
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
}
