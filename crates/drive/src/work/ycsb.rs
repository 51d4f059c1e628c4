//! YCSB's core workloads: a mix of operations on rows chosen by a law.

use dyno_load::{
    Driver, InsertSlot, KEY_LENGTH, KeySpace, KeyText, Operation, Request, Stream, Workload,
    fill_printable, write_key,
};

use super::load::text;
use super::{Plan, Work};
use crate::backend::{Backend, Fields, Session};
use crate::failure::{ErrorKind, Failure, OperationError};
use crate::job::{Job, YcsbJob};

/// The workload and the key space that its clients share.
#[derive(Debug)]
pub struct YcsbRun {
    job: YcsbJob,
    workload: Workload,
    space: KeySpace,
}

impl YcsbRun {
    /// The workload on a data set as the load phase leaves it.
    #[must_use]
    pub fn new(job: &Job, ycsb: &YcsbJob) -> Self {
        Self {
            workload: Workload {
                mix: ycsb.mix.clone(),
                chooser: ycsb.chooser,
                records: ycsb.records,
                field_count: ycsb.table.field_count,
                max_scan_length: ycsb.max_scan_length,
                operations: job.operations,
                seed: job.seed,
            },
            space: KeySpace::new(ycsb.records, job.clients as usize, Driver::ALONE),
            job: ycsb.clone(),
        }
    }
}

impl<B: Backend> Plan<B> for YcsbRun {
    type Work<'c>
        = YcsbClient<'c, B::Session<'c>>
    where
        B: 'c;

    fn operations(&self) -> Vec<&'static str> {
        self.job.mix.operations().map(Operation::name).collect()
    }

    fn work<'c>(
        &'c self,
        client: u32,
        backend: &'c B,
        connection: &'c B::Connection,
    ) -> Result<Self::Work<'c>, Failure> {
        Ok(YcsbClient {
            plan: self,
            session: backend.session(connection)?,
            stream: Stream::new(&self.workload, u64::from(client)),
            slot: self.space.slot(client as usize),
            request: Request {
                index: 0,
                operation: Operation::Read,
                key: 0,
                field: 0,
                scan_length: 1,
            },
            key: [0; KEY_LENGTH],
            values: vec![0; self.job.table.row_length()],
        })
    }
}

/// One client's part of a mix.
#[derive(Debug)]
pub struct YcsbClient<'c, S> {
    plan: &'c YcsbRun,
    session: S,
    stream: Stream,
    slot: InsertSlot<'c>,
    request: Request,
    key: KeyText,
    /// The values of a row; an update of one field uses the first of them.
    values: Vec<u8>,
}

impl<S> YcsbClient<'_, S> {
    fn read_fields(&self) -> Fields {
        if self.plan.job.read_all_fields {
            Fields::All
        } else {
            Fields::One(self.request.field)
        }
    }

    fn written_fields(&self) -> Fields {
        if self.plan.job.write_all_fields {
            Fields::All
        } else {
            Fields::One(self.request.field)
        }
    }

    /// Bytes of values that the operation writes.
    fn written_length(&self, operation: Operation) -> usize {
        let table = self.plan.job.table;
        match operation {
            Operation::Read | Operation::Scan => 0,
            Operation::Insert => table.row_length(),
            Operation::Update | Operation::ReadModifyWrite => match self.written_fields() {
                Fields::All => table.row_length(),
                Fields::One(_) => table.field_length as usize,
            },
        }
    }
}

impl<S: Session> Work for YcsbClient<'_, S> {
    #[inline]
    fn prepare(&mut self) -> Option<usize> {
        self.request = self.stream.next(&self.plan.space);
        if self.request.operation == Operation::Insert {
            self.request.key = self.slot.take();
        }
        write_key(&mut self.key, self.request.key, self.plan.job.insert_order);
        let length = self.written_length(self.request.operation);
        if length > 0 {
            fill_printable(&mut self.values[..length], self.stream.rng());
        }
        Some(self.request.index)
    }

    #[inline]
    fn perform(&mut self) -> Result<u64, OperationError> {
        let operation = self.request.operation;
        let (read, write) = (self.read_fields(), self.written_fields());
        let key = text(&self.key)?;
        let values = text(&self.values[..self.written_length(operation)])?;
        let session = &mut self.session;
        match operation {
            Operation::Read => session.read(key, read)?,
            Operation::Update => session.update(key, write, values)?,
            Operation::Insert => {
                let inserted = session.insert(key, values);
                // Where the row is there already, its key exists all the same.
                if !matches!(&inserted, Err(error) if error.kind != ErrorKind::DuplicateKey) {
                    self.slot.acknowledge();
                }
                inserted?;
            }
            Operation::Scan => session.scan(key, self.request.scan_length, read)?,
            Operation::ReadModifyWrite => {
                session.read(key, read)?;
                session.update(key, write, values)?;
            }
        }
        Ok(1)
    }
}
