//! Real servers for tests: each in a temporary folder of its own, on a free port and a socket, stopped and
//! removed when it is dropped. What goes wrong with them is a failed test, so they panic.

#![allow(clippy::missing_panics_doc, clippy::panic, clippy::unwrap_used)]

mod common;
mod postgres;

pub use common::{Shared, free_port, wait_until};
pub use postgres::Postgres;
