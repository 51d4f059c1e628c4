//! What is wrong with a workload file.

use crate::ast::Position;

/// What is wrong with a workload file, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What the file is called.
    pub name: String,
    /// Where, from 1.
    pub line: u32,
    /// Where in the line, in characters, from 1.
    pub column: u32,
    /// What is wrong and what would be right, in one line.
    pub message: String,
}

impl Error {
    /// An error of the file `name` at `at`. Its message is one line, whatever names of the file it holds.
    pub fn new(name: &str, at: Position, message: impl Into<String>) -> Self {
        let mut message = message.into();
        if message.contains(char::is_control) {
            message = message.replace(char::is_control, "\u{fffd}");
        }
        Self {
            name: name.to_owned(),
            line: at.line,
            column: at.column,
            message,
        }
    }

    /// Where it is.
    #[must_use]
    pub const fn at(&self) -> Position {
        Position {
            line: self.line,
            column: self.column,
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}:{}:{}: {}",
            self.name, self.line, self.column, self.message
        )
    }
}

impl std::error::Error for Error {}
