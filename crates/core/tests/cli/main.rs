//! The program as others meet it: files and lines in, files, lines and an exit status out.

// A test that cannot go on fails.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod berkeleydb;
mod cut;
mod drive;
mod drive_failures;
mod drive_stops;
mod files;
mod files_devices;
mod files_flowops;
mod files_language;
mod flame;
mod freeze;
mod glass;
mod golden;
mod merge;
mod servers;
mod support;
mod sysstat;
mod watch;
