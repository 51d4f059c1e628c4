//! Real servers for tests, each in a temporary folder, ended with its owner also where a test fails.
//!
//! What goes wrong here is a failed test, so that everything here panics with what to do about it.

#![allow(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used
)]

mod disk;
mod folder;
mod mariadb;
mod mysql;
mod postgres;
mod process;
mod shared;

use std::env;
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

pub use disk::{in_mounts, may_mount};
pub use folder::Folder;
pub use mariadb::Mariadb;
pub use mysql::Mysql;
pub use postgres::Postgres;
pub use process::Process;
pub use shared::Shared;

/// Longer than anything takes that comes about at all.
const LONG: Duration = Duration::from_secs(60);

/// Where dyno keeps what takes long to make.
fn cache() -> PathBuf {
    let cache = env::var_os("XDG_CACHE_HOME").map_or_else(
        || PathBuf::from(env::var_os("HOME").unwrap_or_default()).join(".cache"),
        PathBuf::from,
    );
    cache.join("dyno")
}

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
