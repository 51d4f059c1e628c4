//! A store that answers at once and stores nothing: what remains is the driver's own cost.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde_json::{Map, Value};

use super::{Backend, BackendReport, Status};
use crate::failure::Failure;
use crate::job::Job;

/// The store.
#[derive(Debug)]
pub struct Null;

impl Backend for Null {
    type Connection = ();

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

    fn effective(&self) -> Map<String, Value> {
        Map::new()
    }

    fn close(self, _: Vec<()>, _: bool) -> Result<Status, Failure> {
        Ok(Status::new())
    }

    fn discard(self, _: Vec<()>) -> Result<Status, Failure> {
        Ok(Status::new())
    }
}
