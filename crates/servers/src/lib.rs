//! Real servers for tests, each in a temporary folder, ended with its owner also where a test fails.
//!
//! What goes wrong here is a failed test, so that everything here panics with what to do about it.

#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used
)]

mod common;
mod folder;
mod mariadb;
mod mysql;
mod postgres;
mod process;

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

pub use common::Shared;
pub use folder::Folder;
pub use mariadb::Mariadb;
pub use mysql::Mysql;
pub use postgres::Postgres;
pub use process::Process;

/// A port that nobody listens on now.
#[must_use]
pub fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its number").port()
}

/// Waits until something is so, for at most `limit`.
pub fn wait_until(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: not within {limit:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
