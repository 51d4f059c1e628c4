//! Numbers as attributes have them, and as memory wants them.

pub use dyno_wml::Number;

/// A whole number as an index into memory; what does not fit is the largest.
pub fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A float as a count: its fraction cut off, nothing below 0.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the cast saturates
pub const fn count(number: f64) -> u64 {
    number as u64
}
