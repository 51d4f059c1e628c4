//! What can go wrong with an operation on a store, by kind.

/// The kinds of errors by which operations are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ErrorKind {
    /// The store cannot be reached: nobody listens, no route, no answer within the limit.
    Connect,
    /// The connection broke while an operation was under way: it is not known whether it was done.
    ConnectionLost,
    /// No answer within the limit: it is not known whether the operation was done.
    Timeout,
    /// The store is there and takes no more work for now: too many connections, starting, shutting down.
    Unavailable,
    /// The store rolled the transaction back because of others: a deadlock or a failed serialization.
    Conflict,
    /// Another client held the lock for longer than the limit.
    Busy,
    /// A row that must exist was not there.
    MissingKey,
    /// A row that must not exist was there.
    DuplicateKey,
    /// There was no file that the operation could be done on.
    NoFile,
    /// A file had nothing to read where something was to be.
    NoData,
    /// A row did not hold what the job's data set has.
    WrongValue,
    /// A read, write or sync of a file failed.
    Io,
    /// No memory.
    OutOfMemory,
    /// No space.
    DiskFull,
    /// The data are damaged, or not a database.
    Corrupt,
    /// The database or a file beside it could not be opened.
    CannotOpen,
    /// The store may not be written.
    ReadOnly,
    /// The account is unknown, its password wrong, or it has no right to this.
    AccessDenied,
    /// The store refused a statement: its schema is not the expected one, or dyno is wrong.
    Refused,
    /// What came over the connection is not the protocol that was expected.
    Protocol,
}

impl ErrorKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 20] = [
        Self::Connect,
        Self::ConnectionLost,
        Self::Timeout,
        Self::Unavailable,
        Self::Conflict,
        Self::Busy,
        Self::MissingKey,
        Self::DuplicateKey,
        Self::NoFile,
        Self::NoData,
        Self::WrongValue,
        Self::Io,
        Self::OutOfMemory,
        Self::DiskFull,
        Self::Corrupt,
        Self::CannotOpen,
        Self::ReadOnly,
        Self::AccessDenied,
        Self::Refused,
        Self::Protocol,
    ];

    /// Its name in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::ConnectionLost => "connection_lost",
            Self::Timeout => "timeout",
            Self::Unavailable => "unavailable",
            Self::Conflict => "conflict",
            Self::Busy => "busy",
            Self::MissingKey => "missing_key",
            Self::DuplicateKey => "duplicate_key",
            Self::NoFile => "no_file",
            Self::NoData => "no_data",
            Self::WrongValue => "wrong_value",
            Self::Io => "io",
            Self::OutOfMemory => "out_of_memory",
            Self::DiskFull => "disk_full",
            Self::Corrupt => "corrupt",
            Self::CannotOpen => "cannot_open",
            Self::ReadOnly => "read_only",
            Self::AccessDenied => "access_denied",
            Self::Refused => "refused",
            Self::Protocol => "protocol",
        }
    }

    /// Whether it ends the run as failed at its first appearance: the operations after it would meet
    /// the same, or what was asked is no longer what is measured. The others are counted, and whoever
    /// asked judges how many are too many.
    #[must_use]
    pub const fn is_fatal(self) -> bool {
        matches!(
            self,
            Self::DiskFull
                | Self::Corrupt
                | Self::CannotOpen
                | Self::AccessDenied
                | Self::Refused
                | Self::Protocol
        )
    }

    /// Whether the connection is of no use after it, until it is made anew.
    #[must_use]
    pub const fn breaks_connection(self) -> bool {
        matches!(
            self,
            Self::Connect
                | Self::ConnectionLost
                | Self::Timeout
                | Self::Unavailable
                | Self::Protocol
        )
    }
}

/// An operation that did not succeed, as each kind of store has it.
pub trait OperationFailed {
    /// As what it is counted.
    fn kind(&self) -> ErrorKind;

    /// What the store said.
    fn message(&self) -> &str;
}
