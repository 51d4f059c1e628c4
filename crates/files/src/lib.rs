//! An engine for workloads in filebench's language.

mod aio;
mod built_in;
mod compile;
mod device;
mod explain;
mod fileset;
mod multi;
mod number;
mod paths;
mod pool;
mod program;
mod rate;
mod recording;
mod remove;
mod result;
mod run;
mod script;
mod shared;
mod space;
mod sync;
mod sys;
#[cfg(test)]
mod testing;
mod tree;
mod verify;
mod worker;

pub use built_in::{names, purpose, text};
pub use explain::Explanation;
pub use result::FilesResult;
pub use script::{Format, Phase, Request, Stop, carry_out, check, explain};
