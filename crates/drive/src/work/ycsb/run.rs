//! YCSB's core workloads: a mix of operations on rows chosen by a law.

use dyno_load::{
    Driver, InsertSlot, KEY_LENGTH, KeySpace, KeyText, Operation, Random, Request, Stream,
    Workload, certify, fill_printable, write_key,
};

use super::load::text;
use super::{DATA_SET, Fields, Rows, Shape, YcsbBackend};
use crate::backend::Status;
use crate::failure::{ErrorKind, Failure};
use crate::job::{Job, YcsbJob};
use crate::work::{Plan, Work};
use dyno_sql::Error as OperationError;

/// Makes the values of fields of one row.
#[inline]
pub(super) fn fill(
    values: &mut [u8],
    job: &YcsbJob,
    key: &KeyText,
    fields: Fields,
    rng: &mut Random,
) {
    if !job.data_integrity {
        fill_printable(values, rng);
        return;
    }
    let first = match fields {
        Fields::All => 0,
        Fields::One(field) => field,
    };
    for (field, value) in (first..).zip(values.chunks_mut(job.table.field_length as usize)) {
        certify(value, DATA_SET, key, field, rng);
    }
}

/// The workload and the key space that its clients share.
#[derive(Debug)]
pub struct YcsbRun {
    shape: Shape,
    workload: Workload,
    driver: Driver,
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
                reads_one_field: !ycsb.read_all_fields,
                writes_one_field: !ycsb.write_all_fields,
                max_scan_length: ycsb.max_scan_length,
                operations: job.operations,
                seed: job.seed,
            },
            driver: job.driver,
            space: KeySpace::new(ycsb.records, job.clients as usize, job.driver),
            shape: Shape { job: ycsb.clone() },
        }
    }
}

impl<B: YcsbBackend> Plan<B> for YcsbRun {
    type Work<'c>
        = YcsbClient<'c, B::Rows<'c>>
    where
        B: 'c;

    fn operations(&self) -> Vec<&'static str> {
        self.shape
            .job
            .mix
            .operations()
            .map(Operation::name)
            .collect()
    }

    fn set_up(&self, backend: &B, connection: &mut B::Connection) -> Result<(), Failure> {
        backend.check_table(connection, &self.shape)
    }

    fn work<'c>(
        &'c self,
        client: u32,
        backend: &'c B,
        connection: &'c mut B::Connection,
    ) -> Result<Self::Work<'c>, Failure> {
        // No two clients ask the same, over all drivers.
        let number = u64::from(client) * self.driver.of + self.driver.number;
        Ok(YcsbClient {
            plan: self,
            rows: backend.rows(connection, &self.shape)?,
            stream: Stream::new(&self.workload, number),
            slot: self.space.slot(client as usize),
            request: Request {
                index: 0,
                operation: Operation::Read,
                key: 0,
                field: 0,
                scan_length: 1,
            },
            key: [0; KEY_LENGTH],
            values: vec![0; self.shape.job.table.row_length()],
        })
    }
}

/// One client's part of a mix.
#[derive(Debug)]
pub struct YcsbClient<'c, R> {
    plan: &'c YcsbRun,
    rows: R,
    stream: Stream,
    slot: InsertSlot<'c>,
    request: Request,
    key: KeyText,
    /// The values of a row; an update of one field uses the first of them.
    values: Vec<u8>,
}

impl<R> YcsbClient<'_, R> {
    fn read_fields(&self) -> Fields {
        if self.plan.shape.job.read_all_fields {
            Fields::All
        } else {
            Fields::One(self.request.field)
        }
    }

    fn written_fields(&self) -> Fields {
        if self.plan.shape.job.write_all_fields {
            Fields::All
        } else {
            Fields::One(self.request.field)
        }
    }

    /// Bytes of values that the operation writes.
    fn written_length(&self, operation: Operation) -> usize {
        let table = self.plan.shape.job.table;
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

impl<R: Rows> Work for YcsbClient<'_, R> {
    #[inline]
    fn prepare(&mut self) -> Option<usize> {
        self.request = self.stream.next(&self.plan.space);
        if self.request.operation == Operation::Insert {
            self.request.key = self.slot.take();
        }
        write_key(
            &mut self.key,
            self.request.key,
            self.plan.shape.job.insert_order,
        );
        let length = self.written_length(self.request.operation);
        if length > 0 {
            let written = match self.request.operation {
                Operation::Insert => Fields::All,
                _ => self.written_fields(),
            };
            let Shape { job } = &self.plan.shape;
            let values = &mut self.values[..length];
            fill(values, job, &self.key, written, self.stream.rng());
        }
        Some(self.request.index)
    }

    #[inline]
    fn perform(&mut self) -> Result<u32, OperationError> {
        let operation = self.request.operation;
        let (read, write) = (self.read_fields(), self.written_fields());
        let key = text(&self.key)?;
        let values = text(&self.values[..self.written_length(operation)])?;
        let rows = &mut self.rows;
        match operation {
            Operation::Read => rows.read(key, read)?,
            Operation::Update => rows.update(key, write, values)?,
            Operation::Insert => {
                let inserted = rows.insert(key, values);
                // Where the row is there already, its key exists all the same.
                if !matches!(&inserted, Err(error) if error.kind != ErrorKind::DuplicateKey) {
                    self.slot.acknowledge();
                }
                inserted?;
            }
            Operation::Scan => rows.scan(key, self.request.scan_length, read)?,
            Operation::ReadModifyWrite => {
                rows.read(key, read)?;
                rows.update(key, write, values)?;
            }
        }
        Ok(1)
    }
    fn reconnect(&mut self) -> Result<(), OperationError> {
        self.rows.reconnect()
    }

    fn counters(&self) -> Status {
        self.rows.counters()
    }
}
