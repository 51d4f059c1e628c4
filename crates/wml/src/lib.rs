//! filebench's Workload Model Language: what a workload file says and what is wrong with it.

pub mod ast;
mod check;
mod distribution;
mod error;
mod lexer;
mod parser;
mod special;
mod values;

pub use check::{Finding, MOST_STEPS, Severity, Step, check, expand};
pub use distribution::{
    CUSTOM_KINDS, CustomKind, CustomParameters, Distribution, RandomParameters,
};
pub use error::Error;
pub use parser::{parse, parse_bytes, parse_value};
pub use values::{Held, Number, Variables};
