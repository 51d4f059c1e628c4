//! A store that answers at once and stores nothing: what remains is the driver's own cost.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value};

use super::{Answer, Backend, BackendReport, Fields, Session, Status};
use crate::failure::Failure;
use crate::job::Job;

/// The store.
#[derive(Debug)]
pub struct Null;

impl Backend for Null {
    type Connection = ();
    type Session<'c> = NullSession;

    fn open(_: &Job, clients: u32, _: &Arc<AtomicBool>) -> Result<(Self, Vec<()>), Failure> {
        Ok((Self, vec![(); clients as usize]))
    }

    fn unopened() -> BackendReport {
        BackendReport {
            kind: "null",
            version: env!("CARGO_PKG_VERSION").to_owned(),
            effective: Map::new(),
            status: Status::new(),
        }
    }

    fn create(&self, (): &()) -> Result<(), Failure> {
        Ok(())
    }

    fn effective(&self) -> Map<String, Value> {
        Map::new()
    }

    fn session<'c>(&'c self, (): &'c ()) -> Result<NullSession, Failure> {
        Ok(NullSession)
    }

    fn counters(&self, (): &()) -> Status {
        Status::new()
    }

    fn close(self, _: Vec<()>, _: bool) -> Result<Status, Failure> {
        Ok(Status::new())
    }

    fn discard(self, _: Vec<()>) -> Result<Status, Failure> {
        Ok(Status::new())
    }
}

/// Looks at what it is given, so that the compiler cannot leave out making it.
#[derive(Debug)]
pub struct NullSession;

impl Session for NullSession {
    fn read(&mut self, key: &str, fields: Fields) -> Answer {
        black_box((key, fields));
        Ok(())
    }

    fn update(&mut self, key: &str, fields: Fields, values: &str) -> Answer {
        black_box((key, fields, values));
        Ok(())
    }

    fn insert(&mut self, key: &str, values: &str) -> Answer {
        black_box((key, values));
        Ok(())
    }

    fn scan(&mut self, start: &str, rows: u32, fields: Fields) -> Answer {
        black_box((start, rows, fields));
        Ok(())
    }

    fn load(&mut self, keys: &str, values: &str) -> Answer {
        black_box((keys, values));
        Ok(())
    }
}
