//! filebench's Workload Model Language: what a workload file says and what is wrong with it.
//!
//! [`parse`] gives a file's commands in order ([`ast`]), [`check`] says what would go wrong with them,
//! [`Variables`] hold the values and read the references, [`Distribution`] draws what random variables are.
//! Nothing here touches a file. `docs/workload-files.md` is the reference for users.
//!
//! # Older forms
//!
//! What filebench 1.5 refuses and earlier versions had is accepted, each with a [`ast::Note`], and makes the file one of
//! older form ([`ast::Script::older`]).
//!
//! | form | means | is |
//! |---|---|---|
//! | `load name` | the workload `name.f` stands here | carried out by the engine |
//! | `create filesets` | `create files` | parsed to that |
//! | `create processes`, `stats clear`, `sleep`, without a `run` | a warm-up and a run of the time that is slept, or several rounds of it | parsed to that |
//! | `create processes` and `stats clear` beside a `run`, `stats snap` | nothing: a run does it | accepted |
//! | `stats directory`, `dump`, `xmldump`, `multidump`, `command` | where figures go, what runs beside | accepted |
//! | `shutdown` | nothing: a run ends by itself | accepted |
//! | `warmup n` | seconds that are not counted | carried out by the engine |
//! | `foreach $x in 1, 2 { ... }` | the commands for each value | carried out by the engine |
//! | `usage`, `log` | `echo` | carried out by the engine |
//! | `vars`, `list`, `help`, `exit` | prints variables; lists all; nothing; `quit` | carried out by the engine |
//! | `fscheck`, `fsflush` | started scripts | accepted |
//! | `define randvar name=$x, ...` | `set $x = randvar(...)` | parsed to that |
//! | `set $x = $y`, `set $x = $y * 2` | a copy, an integer, at once | carried out by [`Variables::assign`] |
//! | `set $x.mean = 5`, `$x.mean` | one parameter | carried out by [`Variables::set_parameter`], [`Variables::number`] |
//! | `$dir/name` without quotes | a text of pieces | carried out by [`Variables::text`] |
//! | `filesizegamma=`, sizes in files of older form | gamma-distributed sizes | carried out by [`Variables::file_size`] |
//! | `datasource=entro`, `entropy=` | data of so many bits a byte | carried out by the engine |
//! | `cached=`, `procname=`, `dirwidth=` and the like of a single file | nothing | accepted |

pub mod ast;
mod check;
mod distribution;
mod error;
mod lexer;
mod parser;
mod special;
mod values;

pub use check::{DEEPEST_COMPOSITE, Finding, MOST_STEPS, Severity, Step, check, expand};
pub use distribution::{
    CUSTOM_KINDS, CustomKind, CustomParameters, Distribution, RandomParameters,
};
pub use error::Error;
pub use parser::{parse, parse_bytes, parse_value};
pub use values::{Held, Number, Variables};
