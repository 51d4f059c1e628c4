//! TPC-C on `PostgreSQL`.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::Stand;
use dyno_sql::{Address, Connection as _, Limits, Postgres, Server};

/// A database of its own on a server that the tests share.
struct Database {
    server: Arc<dyno_servers::Postgres>,
    name: String,
}

impl Database {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let database = Self {
            server: dyno_servers::Postgres::shared(),
            name: format!("tpcc{}", NEXT.fetch_add(1, Ordering::Relaxed)),
        };
        let create = format!("CREATE DATABASE {}", database.name);
        database.enter("postgres").run(&create).unwrap();
        database
    }

    fn enter(&self, name: &str) -> Postgres {
        let limit = Duration::from_secs(60);
        Postgres::connect(&Server {
            address: Address::Unix(self.server.socket()),
            user: "dyno".to_owned(),
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

impl Stand for Database {
    type Connection = Postgres;

    fn connect(&self) -> Postgres {
        self.enter(&self.name)
    }
}

suite!(Database::new());
