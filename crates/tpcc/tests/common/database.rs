//! Databases of servers.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dyno_sql::{Address, Connection, Limits, Result, Server};

use super::Stand;

/// A database of its own on a server that the tests share.
pub struct Database<S, C> {
    /// Ends with the last test that has it.
    _running: Arc<S>,
    server: Server,
    connect: fn(&Server) -> Result<C>,
}

impl<S, C: Connection> Database<S, C> {
    /// A new one, made by that user from within the database that each server has.
    pub fn new(
        running: Arc<S>,
        socket: PathBuf,
        user: &str,
        database: &str,
        connect: fn(&Server) -> Result<C>,
    ) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let limit = Duration::from_secs(60);
        let mut server = Server {
            address: Address::Unix(socket),
            user: user.to_owned(),
            password: None,
            database: database.to_owned(),
            limits: Limits {
                connect: limit,
                read: limit,
                write: limit,
            },
        };
        let name = format!("tpcc{}", NEXT.fetch_add(1, Ordering::Relaxed));
        let create = format!("CREATE DATABASE {name}");
        connect(&server).unwrap().run(&create).unwrap();
        server.database = name;
        Self {
            _running: running,
            server,
            connect,
        }
    }
}

impl<S: Send + Sync, C: Connection> Stand for Database<S, C> {
    type Connection = C;

    fn connect(&self) -> C {
        (self.connect)(&self.server).unwrap()
    }
}
