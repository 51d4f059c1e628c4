//! What is recorded of operations, and the result folder: the same for every driver, so that whoever
//! reads one reads all.

pub mod clock;
pub mod error;
pub mod failure;
pub mod figures;
pub mod output;
pub mod record;
