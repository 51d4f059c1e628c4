//! What can go wrong with an operation on a store.

pub use dyno_result::error::ErrorKind;
use dyno_result::error::OperationFailed;

/// An operation that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// As what it is counted.
    pub kind: ErrorKind,
    /// What the store said.
    pub message: String,
}

impl Error {
    /// An error of that kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)
    }
}

impl std::error::Error for Error {}

/// What operations give.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl OperationFailed for Error {
    fn kind(&self) -> ErrorKind {
        self.kind
    }

    fn message(&self) -> &str {
        &self.message
    }
}
