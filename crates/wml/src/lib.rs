//! filebench's Workload Model Language: what a workload file says and what is wrong with it.

pub mod ast;
mod error;
mod lexer;
mod parser;

pub use error::Error;
pub use parser::{parse, parse_bytes, parse_value};
