//! Counts what a program does between two of its own lines: under valgrind's callgrind, or by the machine's counters.
//!
//! [`valgrind`] asks the tool that runs the program to count from here to there. [`hardware`] reads counters of the
//! kernel's `perf_event` before and after, and knows what a reading costs itself.

pub mod hardware;
pub mod valgrind;
