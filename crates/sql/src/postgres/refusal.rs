//! The server's errors, and as what they count.

use crate::error::{Error, ErrorKind, Result};

use super::message::Reader;

/// How much of a statement stands in an error's message, in characters.
const SHOWN: usize = 300;

/// An error that the server reported.
#[derive(Debug)]
pub struct Refusal {
    /// As what it counts, and in the server's own words.
    pub error: Error,
    /// Whether the server has ended the session with it.
    pub ends_session: bool,
}

impl Refusal {
    /// Reads an `ErrorResponse`.
    pub fn read(body: &[u8]) -> Result<Self> {
        let mut body = Reader(body);
        let [
            mut severity,
            mut code,
            mut message,
            mut detail,
            mut hint,
            mut place,
        ] = [""; 6].map(String::from);
        loop {
            let field = match body.u8()? {
                0 => break,
                // `S` may be in the server's language; `V` never is.
                b'V' => &mut severity,
                b'C' => &mut code,
                b'M' => &mut message,
                b'D' => &mut detail,
                b'H' => &mut hint,
                b'W' => &mut place,
                _ => {
                    body.text()?;
                    continue;
                }
            };
            *field = String::from_utf8_lossy(body.text()?).into_owned();
        }
        let ends_session = matches!(severity.as_str(), "FATAL" | "PANIC");
        let mut text = format!("{message} (SQLSTATE {code})");
        for more in [detail, hint, place].iter().filter(|more| !more.is_empty()) {
            text.push_str(": ");
            text.push_str(more);
        }
        Ok(Self {
            error: Error::new(kind(&code, ends_session), text),
            ends_session,
        })
    }
}

/// As what an error counts (<https://www.postgresql.org/docs/15/errcodes-appendix.html>).
fn kind(code: &str, ends_session: bool) -> ErrorKind {
    let kind = match code {
        "08P01" => ErrorKind::Protocol,
        // Idle for too long, within a transaction or not.
        "25P03" | "57P05" => ErrorKind::ConnectionLost,
        "25006" => ErrorKind::ReadOnly,
        "42501" => ErrorKind::AccessDenied,
        "23505" => ErrorKind::DuplicateKey,
        "53100" => ErrorKind::DiskFull,
        "53200" => ErrorKind::OutOfMemory,
        "53300" | "57P01" | "57P02" | "57P03" => ErrorKind::Unavailable,
        // A lock that was not to be had, or not in time; a statement that took too long.
        "55P03" | "55006" | "57014" => ErrorKind::Busy,
        "XX001" | "XX002" => ErrorKind::Corrupt,
        _ => match code.get(..2) {
            Some("08") => ErrorKind::ConnectionLost,
            Some("28") => ErrorKind::AccessDenied,
            Some("40") => ErrorKind::Conflict,
            Some("58") => ErrorKind::Io,
            _ => ErrorKind::Refused,
        },
    };
    if ends_session && !kind.breaks_connection() && !kind.is_fatal() {
        // Whatever it was: whoever goes on must connect anew.
        return ErrorKind::ConnectionLost;
    }
    kind
}

/// The error with what was attempted.
pub fn attempting(mut error: Error, sql: &str) -> Error {
    error.message.push_str("; attempted: ");
    error.message.extend(sql.chars().take(SHOWN));
    if sql.chars().nth(SHOWN).is_some() {
        error.message.push_str(" ...");
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn response(fields: &[(char, &str)]) -> Vec<u8> {
        let mut body = Vec::new();
        for (field, text) in fields {
            body.extend(format!("{field}{text}\0").bytes());
        }
        body.push(0);
        body
    }

    #[test]
    fn an_error_says_the_servers_words_its_code_and_what_was_attempted() {
        let body = response(&[
            ('S', "FEHLER"),
            ('V', "ERROR"),
            ('C', "23505"),
            ('M', "duplicate key"),
            ('D', "Key (id)=(1) already exists."),
            ('F', "nbtinsert.c"),
        ]);
        let refusal = Refusal::read(&body).unwrap();
        assert!(!refusal.ends_session);
        assert_eq!(
            attempting(refusal.error, "INSERT 1"),
            Error::new(
                ErrorKind::DuplicateKey,
                "duplicate key (SQLSTATE 23505): Key (id)=(1) already exists.; attempted: INSERT 1"
            )
        );
    }

    #[test]
    fn a_long_statement_is_shown_in_part() {
        let sql = "ä".repeat(SHOWN + 1);
        let shown = attempting(Error::new(ErrorKind::Busy, "no"), &sql).message;
        assert_eq!(shown, format!("no; attempted: {} ...", "ä".repeat(SHOWN)));
    }

    #[test]
    fn codes_count_as_what_they_mean() {
        use ErrorKind as E;
        for (code, expected) in [
            ("28P01", E::AccessDenied),
            ("28000", E::AccessDenied),
            ("42501", E::AccessDenied),
            ("3D000", E::Refused),
            ("42P01", E::Refused),
            ("26000", E::Refused),
            ("22003", E::Refused),
            ("23505", E::DuplicateKey),
            ("23502", E::Refused),
            ("40001", E::Conflict),
            ("40P01", E::Conflict),
            ("55P03", E::Busy),
            ("57014", E::Busy),
            ("53100", E::DiskFull),
            ("53200", E::OutOfMemory),
            ("53300", E::Unavailable),
            ("57P01", E::Unavailable),
            ("57P02", E::Unavailable),
            ("57P03", E::Unavailable),
            ("57P05", E::ConnectionLost),
            ("08006", E::ConnectionLost),
            ("08P01", E::Protocol),
            ("25006", E::ReadOnly),
            ("XX000", E::Refused),
            ("XX001", E::Corrupt),
            ("XX002", E::Corrupt),
            ("58030", E::Io),
            ("58P01", E::Io),
            ("", E::Refused),
            ("ä", E::Refused),
        ] {
            assert_eq!(kind(code, false), expected, "{code}");
        }
    }

    #[test]
    fn an_error_that_ends_the_session_breaks_the_connection_or_the_run() {
        for code in [
            "40001", "58030", "53200", "55P03", "57P01", "53100", "XX000",
        ] {
            let kind = kind(code, true);
            assert!(kind.breaks_connection() || kind.is_fatal(), "{code}");
        }
        assert_eq!(kind("53100", true), ErrorKind::DiskFull);
        assert_eq!(kind("40001", true), ErrorKind::ConnectionLost);
    }

    proptest! {
        #[test]
        fn arbitrary_errors_never_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Refusal::read(&body);
        }
    }
}
