//! The protocol of `MySQL` on real servers, and on ones that misbehave.

// A test that cannot go on fails.
#![allow(clippy::panic, clippy::unwrap_used)]

mod bulk;
mod endings;
mod large;
mod login;
mod others;
mod statements;
mod support;
