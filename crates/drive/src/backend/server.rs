//! Servers that take SQL over a protocol of their own, a connection a client.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dyno_sql::{Address, Connection, Interrupter, Row, Server};
use serde_json::{Map, Value, json};

use super::{Backend, BackendReport, SqlBackend, Status};
use crate::failure::Failure;
use crate::job::{BackendJob, Job};
use dyno_sql::Error as OperationError;

/// `MariaDB` and `MySQL`.
pub type Mysql = Servers<dyno_sql::Mysql>;

/// `PostgreSQL`.
pub type Postgresql = Servers<dyno_sql::Postgres>;

/// A protocol, as a backend.
pub trait Protocol: Connection + Send + Sized {
    /// The kind, as in the job.
    const KIND: &'static str;

    /// The statement that gives the name and the value of what isolates a connection's transactions.
    const ISOLATION: &'static str;

    /// The server of a job of this kind.
    fn server(backend: &BackendJob) -> Option<&Server>;

    /// Connects and logs in.
    fn connect(server: &Server) -> Result<Self, OperationError>;
}

impl Protocol for dyno_sql::Mysql {
    const KIND: &'static str = "mysql";
    // MySQL dropped the older name, and MariaDB took on the newer one only with version 11. There is no table that both
    // have them in.
    const ISOLATION: &'static str = "SHOW SESSION VARIABLES \
         WHERE variable_name IN ('tx_isolation', 'transaction_isolation')";

    fn server(backend: &BackendJob) -> Option<&Server> {
        match backend {
            BackendJob::Mysql(server) => Some(server),
            _ => None,
        }
    }

    fn connect(server: &Server) -> Result<Self, OperationError> {
        Self::connect(server)
    }
}

impl Protocol for dyno_sql::Postgres {
    const KIND: &'static str = "postgresql";
    const ISOLATION: &'static str =
        "SELECT name, setting FROM pg_settings WHERE name = 'transaction_isolation'";

    fn server(backend: &BackendJob) -> Option<&Server> {
        match backend {
            BackendJob::Postgresql(server) => Some(server),
            _ => None,
        }
    }

    fn connect(server: &Server) -> Result<Self, OperationError> {
        Self::connect(server)
    }
}

/// A server, and what its connections have in common.
#[derive(Debug)]
pub struct Servers<C> {
    version: String,
    effective: Map<String, Value>,
    interrupters: Vec<Interrupter>,
    protocol: PhantomData<fn() -> C>,
}

impl<C: Protocol> Backend for Servers<C> {
    type Connection = C;

    fn open(job: &Job, clients: u32, halt: &Arc<AtomicBool>) -> Result<(Self, Vec<C>), Failure> {
        let Some(server) = C::server(&job.backend) else {
            return Err(Failure::new(
                "internal",
                format!("this backend opens {} jobs only", C::KIND),
            ));
        };
        let fail = |error: &OperationError| {
            let attempted = format!("{} at {}", C::KIND, server.address);
            Failure::while_attempting(&attempted, error)
        };
        let mut connections = Vec::new();
        for _ in 0..clients {
            if halt.load(Ordering::Relaxed) {
                return Err(Failure::new("halted", "the run was to end before it began"));
            }
            connections.push(C::connect(server).map_err(|error| fail(&error))?);
        }
        let mut backend = Self {
            version: connections
                .first()
                .map_or_else(String::new, |connection| connection.version().to_owned()),
            effective: Map::new(),
            interrupters: connections.iter().map(Connection::interrupter).collect(),
            protocol: PhantomData,
        };
        if let Some(first) = connections.first_mut() {
            let transport = match server.address {
                Address::Tcp(..) => "tcp",
                Address::Unix(_) => "socket",
            };
            let isolation = isolation(first).map_err(|error| fail(&error))?;
            backend
                .effective
                .insert("transport".to_owned(), json!(transport));
            backend
                .effective
                .insert("isolation".to_owned(), json!(isolation));
        }
        Ok((backend, connections))
    }

    fn unopened() -> BackendReport {
        BackendReport {
            kind: C::KIND,
            version: "unknown".to_owned(),
            effective: Map::new(),
            status: Status::new(),
        }
    }

    fn version(&self) -> Option<String> {
        Some(self.version.clone())
    }

    fn effective(&self) -> Map<String, Value> {
        self.effective.clone()
    }

    fn interrupt(&self) {
        self.interrupters.iter().for_each(Interrupter::interrupt);
    }

    fn close(self, _: Vec<C>, _: bool) -> Result<Status, Failure> {
        Ok(Status::new())
    }

    fn discard(self, _: Vec<C>) -> Result<Status, Failure> {
        Ok(Status::new())
    }
}

impl<C: Protocol> SqlBackend for Servers<C> {
    type Session<'c>
        = &'c mut C
    where
        C: 'c;

    const ONE_WRITER: bool = false;

    fn connect(server: &BackendJob) -> Result<C, Failure> {
        let Some(server) = C::server(server) else {
            return Err(Failure::new(
                "internal",
                format!("this backend connects to {} servers only", C::KIND),
            ));
        };
        C::connect(server).map_err(|error| {
            let attempted = format!("{} at {}", C::KIND, server.address);
            Failure::while_attempting(&attempted, &error)
        })
    }

    fn session<'c>(&'c self, connection: &'c mut C) -> &'c mut C {
        connection
    }
}

/// As the server names it, in lower case and with spaces, as the SQL standard writes it.
fn isolation<C: Protocol>(connection: &mut C) -> Result<String, OperationError> {
    let mut statement = connection.prepare(C::ISOLATION)?;
    let mut name = String::new();
    connection.query(&mut statement, &[], |row| {
        row.text()?;
        name = String::from_utf8_lossy(row.text()?)
            .to_lowercase()
            .replace('-', " ");
        Ok(())
    })?;
    Ok(name)
}
