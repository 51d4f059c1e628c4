//! Entering a server: the start of a session, with whatever proof of identity the server asks for.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use crate::Server;
use crate::error::{Error, ErrorKind, Result};
use crate::stream::{Address, Interrupter, Stream};

use super::built;
use super::message::{Reader, unexpected};
use super::refusal::Refusal;
use super::wire::Wire;

/// A longer answer to a log-in is none of this protocol. Servers that cannot start a process for the
/// session say so in an older one: the letter `E` and then nothing but text.
const LONGEST: usize = 30_000;

/// A session just begun.
pub struct Entered {
    pub wire: Wire,
    /// The server's version as it says it itself.
    pub version: String,
}

/// Connects and logs in, within the limit on connecting.
pub fn enter(server: &Server, interrupter: &Interrupter) -> Result<Entered> {
    let stream = Stream::connect(&server.address, server.limits)?;
    interrupter.watch(&stream)?;
    let mut login = Login {
        server,
        wire: Wire::new(stream),
        scram: None,
        version: String::new(),
    };
    match login.log_in() {
        Ok(()) => {
            let limits = server.limits;
            login.wire.limit(limits.read, limits.write)?;
            Ok(Entered {
                wire: login.wire,
                version: login.version,
            })
        }
        Err(error) => {
            // If the log-in was interrupted, that is the cause of whatever went wrong.
            interrupter.watch(&login.wire.stream)?;
            Err(login.failed(error))
        }
    }
}

struct Login<'s> {
    server: &'s Server,
    wire: Wire,
    scram: Option<ScramSha256>,
    version: String,
}

impl<'s> Login<'s> {
    fn log_in(&mut self) -> Result<()> {
        let parameters = [
            ("user", self.server.user.as_str()),
            ("database", &self.server.database),
            ("client_encoding", "UTF8"),
            ("application_name", "dyno"),
        ];
        built(frontend::startup_message(parameters, &mut self.wire.output))?;
        self.wire.send()?;
        loop {
            let (tag, range) = self.wire.receive_any()?;
            let body = self.wire.body(range);
            match tag {
                b'R' => {
                    let mut body = Reader(body);
                    let asked = body.u32()?;
                    let more = body.0.to_vec();
                    self.prove(asked, &more)?;
                }
                b'S' => {
                    let mut body = Reader(body);
                    if body.text()? == b"server_version" {
                        self.version = String::from_utf8_lossy(body.text()?).into_owned();
                    }
                }
                b'E' => return Err(Refusal::read(body)?.error),
                // The key to cancel requests with, which nobody does; notices.
                b'K' | b'N' => {}
                b'Z' => return Ok(()),
                _ => return Err(unexpected(tag)),
            }
        }
    }

    /// Gives the proof that the server asks for
    /// (<https://www.postgresql.org/docs/15/protocol-message-formats.html>, `Authentication`).
    fn prove(&mut self, asked: u32, more: &[u8]) -> Result<()> {
        match asked {
            // It has been given; by SCRAM the server must have given its own, too.
            0 if self.scram.is_none() => return Ok(()),
            3 => {
                let password = self.password()?;
                built(frontend::password_message(password, &mut self.wire.output))?;
            }
            5 => {
                let salt = more.try_into().map_err(|_| unexpected(b'R'))?;
                let hash = md5_hash(self.server.user.as_bytes(), self.password()?, salt);
                built(frontend::password_message(
                    hash.as_bytes(),
                    &mut self.wire.output,
                ))?;
            }
            10 => self.begin_scram(more)?,
            11 => {
                let scram = self.scram.as_mut().ok_or_else(|| unexpected(b'R'))?;
                scram.update(more).map_err(not_scram)?;
                built(frontend::sasl_response(
                    scram.message(),
                    &mut self.wire.output,
                ))?;
            }
            12 => {
                let mut scram = self.scram.take().ok_or_else(|| unexpected(b'R'))?;
                return scram.finish(more).map_err(not_scram);
            }
            2 | 6 | 7 | 9 => {
                return Err(denied("by Kerberos, GSSAPI, SSPI or SCM"));
            }
            _ => return Err(unexpected(b'R')),
        }
        self.wire.send()
    }

    fn begin_scram(&mut self, mechanisms: &[u8]) -> Result<()> {
        if !mechanisms
            .split(|byte| *byte == 0)
            .any(|name| name == SCRAM_SHA_256.as_bytes())
        {
            let mechanisms = String::from_utf8_lossy(mechanisms).replace('\0', " ");
            return Err(denied(&format!("by {}", mechanisms.trim())));
        }
        let scram = ScramSha256::new(self.password()?, ChannelBinding::unsupported());
        built(frontend::sasl_initial_response(
            SCRAM_SHA_256,
            scram.message(),
            &mut self.wire.output,
        ))?;
        self.scram = Some(scram);
        Ok(())
    }

    fn password(&self) -> Result<&'s [u8]> {
        self.server
            .password
            .as_deref()
            .map(str::as_bytes)
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::AccessDenied,
                    "the server asks for a password and none was given",
                )
            })
    }

    /// The error of a log-in: of a kind that says that there is no connection.
    fn failed(&self, error: Error) -> Error {
        let mut error = self.older_words().unwrap_or(error);
        if !error.kind.is_fatal() && error.kind != ErrorKind::Unavailable {
            error.kind = ErrorKind::Connect;
        }
        // No line of that file lets the account in this way.
        let is_tcp = matches!(self.server.address, Address::Tcp(..));
        let hint = if is_tcp && error.message.contains("pg_hba.conf") {
            "; where it asks for TLS: dyno speaks none, so a line of type host is needed"
        } else {
            ""
        };
        let Server {
            address,
            user,
            database,
            ..
        } = self.server;
        error.message = format!(
            "entering {address}, database {database}, as {user}: {}{hint}",
            error.message
        );
        error
    }

    /// What a server says that cannot start a process for the session.
    fn older_words(&self) -> Option<Error> {
        let (header, _) = self.wire.input.held().split_first_chunk::<5>()?;
        let &[b'E', length @ ..] = header else {
            return None;
        };
        if u32::from_be_bytes(length) as usize <= LONGEST {
            return None;
        }
        let text = String::from_utf8_lossy(&self.wire.input.held()[1..]);
        Some(Error::new(
            ErrorKind::Unavailable,
            text.trim_matches(['\0', '\n']),
        ))
    }
}

fn denied(way: &str) -> Error {
    Error::new(
        ErrorKind::AccessDenied,
        format!(
            "the server wants the account to prove itself {way}; dyno can by SCRAM-SHA-256, md5 or password"
        ),
    )
}

/// What the server says cannot come from one that knows the password.
fn not_scram(error: std::io::Error) -> Error {
    Error::new(
        ErrorKind::Protocol,
        format!("the server's part of SCRAM-SHA-256 is wrong: {error}"),
    )
}
