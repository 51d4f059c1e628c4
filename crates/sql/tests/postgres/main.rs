//! Connections to `PostgreSQL`, on a real server; and on one that says what a real one hardly ever would.

// A test that cannot go on fails.
#![allow(clippy::panic, clippy::unwrap_used)]

mod failures;
mod login;
mod operations;
mod pipelines;
mod rows;
mod scripted;
mod support;
