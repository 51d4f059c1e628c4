//! A ledger: uniquely numbered rows, the acknowledged ones noted outside the store, and an audit.
//!
//! Each client inserts rows with numbers of its own, each number once: a write whose answer did not come
//! is not tried again, so that the same row twice is the store's doing. A number is noted as soon as its
//! write was acknowledged, by one `write` to a file without sync: what the kernel has taken survives the
//! death of the store and of this driver, not that of this machine.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use dyno_load::{Random, fill_printable, mix64};
use dyno_sql::{Connection, Dialect, Row, Value};

use super::readers::{Board, Readers};
use super::{Companion, Findings, Inspection, LedgerCount, Plan, Work};
use crate::backend::SqlBackend;
use crate::failure::{ErrorKind, Failure};
use crate::job::{Job, LedgerJob};
use dyno_sql::Error as OperationError;

/// An empty ledger is made; there is nothing to fill it with.
#[derive(Clone, Copy, Debug)]
pub struct LedgerCreate {
    indexed: bool,
}

impl<B: SqlBackend> Plan<B> for LedgerCreate {
    type Work<'c>
        = Nothing
    where
        B: 'c;

    fn operations(&self) -> Vec<&'static str> {
        vec!["write"]
    }

    fn set_up(&self, backend: &B, connection: &mut B::Connection) -> Result<(), Failure> {
        backend
            .session(connection)
            .run(&self.table(<B::Session<'_> as Connection>::DIALECT))
            .map_err(|error| Failure::while_attempting("creating the ledger", &error))
    }

    fn work<'c>(&'c self, _: u32, _: &'c B, _: &'c mut B::Connection) -> Result<Nothing, Failure> {
        Ok(Nothing)
    }
}

impl LedgerCreate {
    /// As the job has it.
    #[must_use]
    pub const fn new(ledger: &LedgerJob) -> Self {
        Self {
            indexed: ledger.indexed,
        }
    }

    /// No constraint keeps a row from being there twice: a store that doubles one is to be found out.
    fn table(self, dialect: Dialect) -> String {
        let (id, options) = match dialect {
            Dialect::Sqlite => ("INTEGER PRIMARY KEY", ""),
            Dialect::Mysql => (
                "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
                " ENGINE=InnoDB DEFAULT CHARACTER SET ascii COLLATE ascii_bin",
            ),
            Dialect::Postgresql => ("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY", ""),
        };
        let index = if self.indexed {
            "; CREATE INDEX ledger_names ON ledger(run_seed, driver, client, number)"
        } else {
            ""
        };
        format!(
            "CREATE TABLE ledger(id {id}, run_seed BIGINT NOT NULL, driver INTEGER NOT NULL, \
             client INTEGER NOT NULL, number BIGINT NOT NULL, payload TEXT NOT NULL){options}{index}"
        )
    }
}

/// Nothing to do.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Work for Nothing {
    fn prepare(&mut self) -> Option<usize> {
        None
    }

    fn perform(&mut self) -> Result<u32, OperationError> {
        Ok(0)
    }
}

/// Writing into a ledger.
#[derive(Debug)]
pub struct LedgerRun<'j> {
    job: &'j Job,
    ledger: &'j LedgerJob,
    folder: PathBuf,
    /// Where readers are told what was acknowledged; none where nobody reads.
    readers: Option<Readers<'j>>,
}

impl<'j> LedgerRun<'j> {
    /// Acknowledged numbers go to `folder`, which is there.
    #[must_use]
    pub fn new(job: &'j Job, ledger: &'j LedgerJob, folder: &Path) -> Self {
        Self {
            job,
            ledger,
            folder: folder.to_owned(),
            readers: job
                .readers
                .as_ref()
                .map(|readers| Readers::new(readers, job)),
        }
    }
}

impl<B: SqlBackend> Plan<B> for LedgerRun<'_> {
    type Work<'c>
        = Writer<'c, B::Session<'c>>
    where
        Self: 'c,
        B: 'c;

    fn operations(&self) -> Vec<&'static str> {
        vec!["write"]
    }

    fn work<'c>(
        &'c self,
        client: u32,
        backend: &'c B,
        connection: &'c mut B::Connection,
    ) -> Result<Self::Work<'c>, Failure> {
        let driver = u32::try_from(self.job.driver.number).unwrap_or(u32::MAX);
        let path = self.folder.join(file_name(driver, client));
        let acknowledged = File::create(&path)
            .map_err(|error| Failure::new("io", format!("creating {}: {error}", path.display())))?;
        let mut connection = backend.session(connection);
        let insert = prepare(&mut connection)
            .map_err(|error| Failure::while_attempting("preparing statements", &error))?;
        Ok(Writer {
            connection,
            insert,
            acknowledged,
            path,
            seed: self.job.seed,
            driver,
            client,
            number: None,
            payload: vec![0; self.ledger.payload_length],
            board: self.readers.as_ref().map(Readers::board),
        })
    }

    fn companions<'s>(
        &'s self,
        backend: &'s B,
        over: &'s AtomicBool,
    ) -> Result<Vec<Companion<'s>>, Failure> {
        self.readers.as_ref().map_or_else(
            || Ok(Vec::new()),
            |readers| readers.companions(backend, &self.folder, over),
        )
    }

    fn look(&self, _: &B, _: &mut B::Connection) -> Result<Findings, Failure> {
        Ok(Findings {
            reads: self.readers.as_ref().map(Readers::count),
            ..Findings::default()
        })
    }
}

fn prepare<C: Connection>(connection: &mut C) -> Result<C::Statement, OperationError> {
    connection
        .prepare("INSERT INTO ledger(run_seed, driver, client, number, payload) VALUES(?,?,?,?,?)")
}

const PREFIX: &str = "acknowledged-";

fn file_name(driver: u32, client: u32) -> String {
    format!("{PREFIX}{driver}-{client}.txt")
}

/// As the store keeps it, which knows signed numbers only.
pub(super) fn run_seed(seed: u64) -> i64 {
    seed.cast_signed()
}

/// A row's payload follows from its name, so that an altered one is found out.
fn fill_payload(payload: &mut [u8], seed: u64, driver: u32, client: u32, number: u64) {
    let name = mix64(u64::from(driver) << 32 | u64::from(client)) ^ number;
    fill_printable(payload, &mut Random::new(seed, mix64(name)));
}

/// One client that writes.
#[derive(Debug)]
pub struct Writer<'r, C: Connection> {
    connection: C,
    insert: C::Statement,
    acknowledged: File,
    path: PathBuf,
    seed: u64,
    driver: u32,
    client: u32,
    /// Of the row that was written last.
    number: Option<u64>,
    payload: Vec<u8>,
    board: Option<&'r Board>,
}

impl<C: Connection> Work for Writer<'_, C> {
    fn prepare(&mut self) -> Option<usize> {
        let number = self.number.map_or(0, |number| number + 1);
        self.number = Some(number);
        fill_payload(
            &mut self.payload,
            self.seed,
            self.driver,
            self.client,
            number,
        );
        Some(0)
    }

    fn perform(&mut self) -> Result<u32, OperationError> {
        let number = self.number.unwrap_or_default();
        let payload = std::str::from_utf8(&self.payload)
            .map_err(|error| OperationError::new(ErrorKind::Refused, error.to_string()))?;
        let values = [
            Value::Int(run_seed(self.seed)),
            Value::Int(i64::from(self.driver)),
            Value::Int(i64::from(self.client)),
            Value::Int(number.cast_signed()),
            Value::Text(payload),
        ];
        self.connection.execute(&mut self.insert, &values)?;
        // A number that cannot be noted makes the audit worthless.
        self.acknowledged
            .write_all(format!("{number}\n").as_bytes())
            .map_err(|error| {
                let message = format!("noting a number in {}: {error}", self.path.display());
                OperationError::new(ErrorKind::CannotOpen, message)
            })?;
        if let Some(board) = self.board {
            board.post(self.driver, self.client, number);
        }
        Ok(1)
    }

    fn reconnect(&mut self) -> Result<(), OperationError> {
        self.connection.reconnect()?;
        self.insert = prepare(&mut self.connection)?;
        Ok(())
    }
}

/// The audit of a ledger.
#[derive(Debug)]
pub struct LedgerCheck<'j> {
    job: &'j Job,
    ledger: &'j LedgerJob,
}

impl<'j> LedgerCheck<'j> {
    /// Of the run with this job's seed.
    #[must_use]
    pub const fn new(job: &'j Job, ledger: &'j LedgerJob) -> Self {
        Self { job, ledger }
    }
}

impl<B: SqlBackend> Inspection<B> for LedgerCheck<'_> {
    fn inspect(&self, backend: &B, connection: &mut B::Connection) -> Result<Findings, Failure> {
        let mut audit = Audit::default();
        for folder in &self.ledger.acknowledged {
            audit.read_folder(folder)?;
        }
        let mut session = backend.session(connection);
        self.read_rows(&mut session, &mut audit)
            .map_err(|error| Failure::while_attempting("reading the ledger", &error))?;
        Ok(Findings {
            checks: Vec::new(),
            ledger: Some(audit.count()),
            reads: None,
        })
    }
}

impl LedgerCheck<'_> {
    fn read_rows<C: Connection>(
        &self,
        connection: &mut C,
        audit: &mut Audit,
    ) -> Result<(), OperationError> {
        let mut select =
            connection.prepare("SELECT run_seed, driver, client, number, payload FROM ledger")?;
        let mut expected = vec![0; self.ledger.payload_length];
        let seed = self.job.seed;
        connection.query(&mut select, &[], |row| {
            let written_by = row.int()?;
            let name = Name {
                driver: row.int()?,
                client: row.int()?,
                number: row.int()?,
            };
            if written_by != run_seed(seed) {
                audit.found_of_another(written_by, name);
                return Ok(());
            }
            let as_written = name.plausible().is_some_and(|(driver, client, number)| {
                fill_payload(&mut expected, seed, driver, client, number);
                true
            }) && row.text()? == expected;
            audit.found(name, as_written);
            Ok(())
        })?;
        Ok(())
    }
}

/// What a row is called, whoever called it so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    driver: i64,
    client: i64,
    number: i64,
}

impl Name {
    /// Its driver, client and number, if a client can have given it.
    fn plausible(self) -> Option<(u32, u32, u64)> {
        Some((
            u32::try_from(self.driver).ok()?,
            u32::try_from(self.client).ok()?,
            u64::try_from(self.number).ok()?,
        ))
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.driver, self.client, self.number)
    }
}

/// What is known of one row.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    altered: bool,
    /// How often it is in the store; more than this many are not told apart.
    found: u8,
}

impl Known {
    fn note(&mut self, as_written: bool) {
        self.found = self.found.saturating_add(1);
        self.altered |= !as_written;
    }
}

/// Every row that was acknowledged or found. No row's number says how much is kept of it: a store may say any.
#[derive(Debug, Default)]
struct Audit {
    /// By driver and client, in the order of their numbers.
    acknowledged: BTreeMap<(u32, u32), Vec<(u32, Known)>>,
    others: BTreeMap<Name, Known>,
    foreign: u64,
    examples: BTreeMap<&'static str, Vec<String>>,
}

/// Examples of each kind that are shown.
const MOST_EXAMPLES: usize = 10;

impl Audit {
    fn read_folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let fail = |path: &Path, error: &dyn std::fmt::Display| {
            Failure::new(
                "io",
                format!(
                    "reading acknowledged numbers of {}: {error}",
                    path.display()
                ),
            )
        };
        let mut files = 0;
        for entry in fs::read_dir(folder).map_err(|error| fail(folder, &error))? {
            let path = entry.map_err(|error| fail(folder, &error))?.path();
            let Some(client) = path.file_name().and_then(|name| parse_name(name.to_str()?)) else {
                continue;
            };
            let text = fs::read_to_string(&path).map_err(|error| fail(&path, &error))?;
            self.read_numbers(client, &text)
                .map_err(|error| fail(&path, &error))?;
            files += 1;
        }
        if files == 0 {
            return Err(fail(folder, &format!("there is no file {PREFIX}*.txt")));
        }
        Ok(())
    }

    fn read_numbers(&mut self, client: (u32, u32), text: &str) -> Result<(), String> {
        // Every client is known, though it may have written nothing.
        let rows = self.acknowledged.entry(client).or_default();
        for line in text.split_inclusive('\n') {
            // What the machine's death cut off was not noted.
            let Some(number) = line.strip_suffix('\n') else {
                continue;
            };
            let number: u32 = number
                .parse()
                .map_err(|_| format!("{number:?} is not a number that dyno noted"))?;
            rows.push((number, Known::default()));
        }
        // They are in order already, unless a client has more than one file.
        rows.sort_by_key(|(number, _)| *number);
        rows.dedup_by_key(|(number, _)| *number);
        Ok(())
    }

    /// The place of an acknowledged row.
    fn acknowledged(&mut self, name: Name) -> Option<&mut Known> {
        let (driver, client, number) = name.plausible()?;
        let rows = self.acknowledged.get_mut(&(driver, client))?;
        let number = u32::try_from(number).ok()?;
        let place = rows.binary_search_by_key(&number, |(number, _)| *number);
        place.ok().map(|place| &mut rows[place].1)
    }

    /// A row of this run's seed.
    fn found(&mut self, name: Name, as_written: bool) {
        let known = match self.acknowledged(name) {
            Some(known) => known,
            None => self.others.entry(name).or_default(),
        };
        known.note(as_written);
    }

    /// A row of another run.
    fn found_of_another(&mut self, run_seed: i64, name: Name) {
        self.foreign += 1;
        show(&mut self.examples, "foreign", || {
            format!("{name} of run_seed {run_seed}")
        });
    }

    /// Whether one of this run's clients can have written it.
    fn is_of_this_run(&self, name: Name) -> bool {
        name.plausible()
            .is_some_and(|(driver, client, _)| self.acknowledged.contains_key(&(driver, client)))
    }

    fn count(mut self) -> LedgerCount {
        let mut count = LedgerCount {
            foreign: self.foreign,
            examples: std::mem::take(&mut self.examples),
            ..LedgerCount::default()
        };
        for (&(driver, client), rows) in &self.acknowledged {
            for &(number, known) in rows {
                let name = Name {
                    driver: driver.into(),
                    client: client.into(),
                    number: number.into(),
                };
                count.acknowledged += 1;
                if known.found == 0 {
                    count.lost += 1;
                    show(&mut count.examples, "lost", || name.to_string());
                }
                count_found(&mut count, name, known);
            }
        }
        for (&name, &known) in &self.others {
            if self.is_of_this_run(name) {
                count.phantom += 1;
                show(&mut count.examples, "phantom", || name.to_string());
                count_found(&mut count, name, known);
            } else {
                count.foreign += u64::from(known.found);
                show(&mut count.examples, "foreign", || name.to_string());
            }
        }
        count
    }
}

fn count_found(count: &mut LedgerCount, name: Name, known: Known) {
    count.present += u64::from(known.found);
    if known.found > 1 {
        count.duplicated += u64::from(known.found - 1);
        show(&mut count.examples, "duplicated", || name.to_string());
    }
    if known.altered {
        count.altered += 1;
        show(&mut count.examples, "altered", || name.to_string());
    }
}

fn show(
    examples: &mut BTreeMap<&'static str, Vec<String>>,
    what: &'static str,
    name: impl FnOnce() -> String,
) {
    let examples = examples.entry(what).or_default();
    if examples.len() < MOST_EXAMPLES {
        examples.push(name());
    }
}

/// The driver and client of a file of acknowledged numbers.
fn parse_name(name: &str) -> Option<(u32, u32)> {
    let (driver, client) = name
        .strip_prefix(PREFIX)?
        .strip_suffix(".txt")?
        .split_once('-')?;
    Some((driver.parse().ok()?, client.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn name(driver: i64, client: i64, number: i64) -> Name {
        Name {
            driver,
            client,
            number,
        }
    }

    #[test]
    fn lost_phantom_duplicated_and_altered_rows_are_told_apart() {
        let mut audit = Audit::default();
        audit.read_numbers((0, 1), "0\n1\n3\n").unwrap();
        audit.read_numbers((1, 0), "0\n").unwrap();
        for (driver, client, number, as_written) in [
            (0, 1, 0, true),
            (0, 1, 2, true),
            (0, 1, 3, true),
            (0, 1, 3, true),
            (1, 0, 0, false),
        ] {
            audit.found(name(driver, client, number), as_written);
        }
        let count = audit.count();
        let figures = (count.acknowledged, count.present, count.lost, count.phantom);
        assert_eq!(figures, (4, 5, 1, 1));
        assert_eq!((count.duplicated, count.altered, count.foreign), (1, 1, 0));
        assert_eq!(count.examples["lost"], ["0/1/1"]);
        assert_eq!(count.examples["phantom"], ["0/1/2"]);
        assert_eq!(count.examples["duplicated"], ["0/1/3"]);
        assert_eq!(count.examples["altered"], ["1/0/0"]);
    }

    /// A number below 0 once ended the audit, and one near the end of all numbers had it take 12.9 GB.
    #[test]
    fn rows_that_nobody_can_have_written_are_counted_whatever_they_are_called() {
        let mut audit = Audit::default();
        audit.read_numbers((0, 0), "0\n1\n").unwrap();
        for number in [0, 1, 4_294_967_290, i64::MAX] {
            audit.found(name(0, 0, number), true);
        }
        for foreign in [
            name(0, 0, -4),
            name(-1, 0, 0),
            name(0, 1 << 40, 0),
            name(0, 7, 0),
        ] {
            audit.found(foreign, false);
        }
        audit.found_of_another(-9, name(0, 0, 1));
        let count = audit.count();
        let figures = (count.acknowledged, count.present, count.lost, count.phantom);
        assert_eq!(figures, (2, 4, 0, 2));
        assert_eq!((count.duplicated, count.altered, count.foreign), (0, 0, 5));
        assert_eq!(
            count.examples["phantom"],
            ["0/0/4294967290", "0/0/9223372036854775807"]
        );
        assert_eq!(count.examples["foreign"][0], "0/0/1 of run_seed -9");
        assert!(count.examples["foreign"].contains(&"0/0/-4".to_owned()));
    }

    #[test]
    fn a_number_that_was_cut_off_was_not_noted_and_one_that_is_none_is_refused() {
        let mut audit = Audit::default();
        audit.read_numbers((0, 0), "0\n1\n23").unwrap();
        assert!(audit.read_numbers((0, 0), "x\n").is_err());
        assert!(audit.read_numbers((0, 0), "99999999999\n").is_err());
        assert!(audit.read_numbers((0, 0), "-1\n").is_err());
        assert_eq!(audit.count().acknowledged, 2);
    }

    #[test]
    fn file_names_are_read_as_they_are_written() {
        assert_eq!(parse_name(&file_name(3, 17)), Some((3, 17)));
        assert_eq!(parse_name("acknowledged-3.txt"), None);
        assert_eq!(parse_name("result.json"), None);
    }

    #[test]
    fn payloads_differ_by_driver_client_and_number() {
        let payload = |driver, client, number| {
            let mut bytes = vec![0; 20];
            fill_payload(&mut bytes, 1, driver, client, number);
            bytes
        };
        let all = [
            payload(0, 0, 0),
            payload(0, 0, 1),
            payload(0, 1, 0),
            payload(1, 0, 0),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(all[..place].iter().all(|other| other != one));
        }
    }
}
