//! An engine for workloads in filebench's language.

mod aio;
mod compile;
mod fileset;
mod number;
mod paths;
mod pool;
mod program;
mod rate;
mod recording;
mod remove;
mod run;
mod shared;
mod sync;
mod sys;
#[cfg(test)]
mod testing;
mod tree;
mod verify;
mod worker;
