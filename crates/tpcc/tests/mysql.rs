//! TPC-C on `MariaDB` and on `MySQL`.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::Stand;
use dyno_sql::{Address, Connection as _, Limits, Mysql, Server};

/// A database of its own on a server that the tests share.
struct Database<S> {
    /// Ends with the last test that has it.
    _server: Arc<S>,
    socket: PathBuf,
    name: String,
}

impl<S> Database<S> {
    fn new(server: Arc<S>, socket: PathBuf) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let database = Self {
            _server: server,
            socket,
            name: format!("tpcc{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        };
        let create = format!("CREATE DATABASE {}", database.name);
        database.enter("mysql").run(&create).unwrap();
        database
    }

    fn enter(&self, name: &str) -> Mysql {
        let limit = Duration::from_secs(60);
        Mysql::connect(&Server {
            address: Address::Unix(self.socket.clone()),
            user: "root".to_owned(),
            password: None,
            database: name.to_owned(),
            limits: Limits {
                connect: limit,
                read: limit,
                write: limit,
            },
        })
        .unwrap()
    }
}

impl<S: Send + Sync> Stand for Database<S> {
    type Connection = Mysql;

    fn connect(&self) -> Mysql {
        self.enter(&self.name)
    }
}

mod on_mariadb {
    use super::{Arc, Database};
    use dyno_servers::Mariadb;

    fn database() -> Database<Mariadb> {
        let server = Mariadb::shared();
        let socket = server.socket();
        Database::new(Arc::clone(&server), socket)
    }

    crate::suite!(database());
}

mod on_mysql {
    use super::{Arc, Database};
    use dyno_servers::Mysql;

    fn database() -> Database<Mysql> {
        let server = Mysql::shared();
        let socket = server.socket();
        Database::new(Arc::clone(&server), socket)
    }

    crate::suite!(database());
}
