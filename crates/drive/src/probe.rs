//! Looks at a backend as a job would find it, without working on it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::backend::{Backend, BackendReport, Berkeley, Glass, Mysql, Null, Postgresql, Sqlite};
use crate::failure::Failure;
use crate::job::{BackendJob, Job};

/// What a look at a backend gave.
pub type Probe = BackendReport;

/// Opens the backend as the job says, reads its settings back and closes it again.
pub fn probe(job: &Job, halt: &Arc<AtomicBool>) -> Result<Probe, Failure> {
    match &job.backend {
        BackendJob::Sqlite(_) => probe_on::<Sqlite>(job, halt),
        BackendJob::Glass(_) => probe_on::<Glass>(job, halt),
        BackendJob::Berkeley(_) => probe_on::<Berkeley>(job, halt),
        BackendJob::Null(_) => probe_on::<Null>(job, halt),
        BackendJob::Mysql(_) => probe_on::<Mysql>(job, halt),
        BackendJob::Postgresql(_) => probe_on::<Postgresql>(job, halt),
    }
}

fn probe_on<B: Backend>(job: &Job, halt: &Arc<AtomicBool>) -> Result<Probe, Failure> {
    let (backend, connections) = B::open(job, 1, halt)?;
    let unopened = B::unopened();
    Ok(Probe {
        kind: unopened.kind,
        version: backend.version().unwrap_or(unopened.version),
        effective: backend.effective(),
        status: backend.discard(connections)?,
    })
}
