//! The log-in: greeting, answer, and whatever the server asks for then.
//!
//! `mysql_native_password` and `caching_sha2_password` are spoken. The latter has the server ask for the
//! password itself where it has not seen it since its start: it goes in clear text over a socket file,
//! which nobody else can read, and under the server's RSA key over TCP.

use rsa::pkcs8::DecodePublicKey;
use rsa::{Oaep, RsaPublicKey, rand_core::OsRng};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::bytes::{Reader, malformed, put_string};
use super::codes;
use super::packets::{Greeting, ServerError, capability};
use super::wire::Wire;
use crate::Server;
use crate::error::{Error, ErrorKind, Result};

const NATIVE: &str = "mysql_native_password";
const CACHING_SHA2: &str = "caching_sha2_password";

/// `utf8mb4_general_ci`, which both servers have.
const UTF8MB4: u8 = 45;

/// The longest packet that is taken: all that the protocol can have.
const LONGEST: u32 = 1 << 30;

/// What the server must be able to: `MySQL` from 5.7.5 and `MariaDB` from 10.2 are.
const NEEDED: u64 = capability::FOUND_ROWS
    | capability::PROTOCOL_41
    | capability::SECURE_CONNECTION
    | capability::PLUGIN_AUTH
    | capability::LONG_AUTH_DATA
    | capability::DEPRECATE_EOF
    | capability::MULTI_STATEMENTS
    | capability::MULTI_RESULTS
    | capability::STATEMENTS_MULTI_RESULTS;

const WANTED: u64 = capability::MYSQL | capability::TRANSACTIONS | capability::CACHE_METADATA;

/// What is known of the server once one is logged in.
#[derive(Debug)]
pub struct Welcome {
    /// As the server says it itself.
    pub version: String,
    pub mariadb: bool,
    /// Whether columns are described only where they changed.
    pub caches_metadata: bool,
}

/// Logs in, within the stream's limit on connecting.
pub fn log_in(wire: &mut Wire, server: &Server) -> Result<Welcome> {
    let packet = wire.packet()?;
    if packet.first() == Some(&0xFF) {
        return Err(codes::describe(&ServerError::parse(packet)?, false));
    }
    let greeting = Greeting::parse(packet)?;
    let mut log_in = LogIn {
        wire,
        server,
        mariadb: greeting.capabilities & capability::MYSQL == 0,
    };
    let capabilities = log_in.answer(&greeting)?;
    log_in.authenticate(&greeting)?;
    Ok(Welcome {
        version: plain_version(&greeting.version).to_owned(),
        mariadb: log_in.mariadb,
        caches_metadata: capabilities & capability::CACHE_METADATA != 0,
    })
}

/// `MariaDB` puts another version before its own, for clients that expect `MySQL`'s.
fn plain_version(version: &str) -> &str {
    match version.strip_prefix("5.5.5-") {
        Some(plain) if plain.contains("MariaDB") => plain,
        _ => version,
    }
}

struct LogIn<'w> {
    wire: &'w mut Wire,
    server: &'w Server,
    mariadb: bool,
}

/// What the server has to say next.
enum Turn {
    Welcome,
    Switch { plugin: String, nonce: Vec<u8> },
    Data(Vec<u8>),
}

impl LogIn<'_> {
    /// Answers the greeting; gives what both can do.
    fn answer(&mut self, greeting: &Greeting) -> Result<u64> {
        let missing = NEEDED & !greeting.capabilities;
        if missing != 0 {
            return Err(Error::new(
                ErrorKind::Protocol,
                format!(
                    "the server ({}) is older than what dyno speaks to, MySQL 5.7.5 or MariaDB 10.2: it \
                     cannot {missing:#x}",
                    greeting.version
                ),
            ));
        }
        let mut capabilities = greeting.capabilities & (NEEDED | WANTED);
        let database = &self.server.database;
        if !database.is_empty() {
            capabilities |= capability::CONNECT_WITH_DATABASE;
        }
        // Of a plugin that is not spoken here the server will say so itself, if the account needs it.
        let plugin = match &*greeting.plugin {
            CACHING_SHA2 => CACHING_SHA2,
            _ => NATIVE,
        };
        let scramble = scramble(plugin, self.password(), &greeting.nonce);
        let [lower, upper] = [capabilities, capabilities >> 32].map(u64::to_le_bytes);
        let packet = self.wire.reply();
        packet.extend_from_slice(&lower[..4]);
        packet.extend_from_slice(&LONGEST.to_le_bytes());
        packet.push(UTF8MB4);
        packet.extend_from_slice(&[0; 19]);
        packet.extend_from_slice(&upper[..4]);
        packet.extend_from_slice(self.server.user.as_bytes());
        packet.push(0);
        put_string(packet, &scramble);
        if !database.is_empty() {
            packet.extend_from_slice(database.as_bytes());
            packet.push(0);
        }
        packet.extend_from_slice(plugin.as_bytes());
        packet.push(0);
        self.send()?;
        Ok(capabilities)
    }

    fn authenticate(&mut self, greeting: &Greeting) -> Result<()> {
        let mut nonce = greeting.nonce.clone();
        loop {
            match self.turn()? {
                Turn::Welcome => return Ok(()),
                Turn::Switch {
                    plugin,
                    nonce: another,
                } => {
                    if ![NATIVE, CACHING_SHA2].contains(&&*plugin) {
                        return Err(self.unknown(&plugin));
                    }
                    nonce = another;
                    let scramble = scramble(&plugin, self.password(), &nonce);
                    self.reply(&scramble)?;
                }
                // Of the two, only caching_sha2_password has more to say.
                Turn::Data(data) => match &*data {
                    [3] => {}
                    [4] => self.tell_password(&nonce)?,
                    _ => return Err(malformed("the log-in")),
                },
            }
        }
    }

    /// The server has not seen the password lately and wants all of it.
    fn tell_password(&mut self, nonce: &[u8]) -> Result<()> {
        let mut password = self.password().to_vec();
        password.push(0);
        if self.wire.stream.is_private() {
            return self.reply(&password);
        }
        self.reply(&[2])?;
        let Turn::Data(key) = self.turn()? else {
            return Err(malformed("the server's public key"));
        };
        for (byte, pad) in password.iter_mut().zip(nonce.iter().cycle()) {
            *byte ^= pad;
        }
        let secret = std::str::from_utf8(&key)
            .ok()
            .and_then(|key| RsaPublicKey::from_public_key_pem(key).ok())
            .and_then(|key| key.encrypt(&mut OsRng, Oaep::new::<Sha1>(), &password).ok())
            .ok_or_else(|| malformed("the server's public key"))?;
        self.reply(&secret)
    }

    fn turn(&mut self) -> Result<Turn> {
        let packet = self.wire.packet()?;
        match packet.split_first() {
            Some((0, _)) => Ok(Turn::Welcome),
            Some((1, data)) => Ok(Turn::Data(data.to_vec())),
            Some((0xFE, data)) => {
                let mut data = Reader(data);
                // Without a name it is what came before 4.1.
                let plugin = data.until_zero().unwrap_or(b"mysql_old_password");
                Ok(Turn::Switch {
                    plugin: String::from_utf8_lossy(plugin).into_owned(),
                    nonce: data.0.strip_suffix(&[0]).unwrap_or(data.0).to_vec(),
                })
            }
            Some((0xFF, _)) => {
                let error = ServerError::parse(packet)?;
                Err(codes::describe(&error, self.mariadb))
            }
            _ => Err(malformed("the log-in")),
        }
    }

    fn reply(&mut self, data: &[u8]) -> Result<()> {
        self.wire.reply().extend_from_slice(data);
        self.send()
    }

    fn send(&mut self) -> Result<()> {
        self.wire.end()?;
        self.wire.send()
    }

    fn password(&self) -> &[u8] {
        self.server.password.as_deref().unwrap_or("").as_bytes()
    }

    fn unknown(&self, plugin: &str) -> Error {
        Error::new(
            ErrorKind::AccessDenied,
            format!(
                "the account {} logs in by {plugin}, which dyno does not speak; give it \
                 {NATIVE} or {CACHING_SHA2}",
                self.server.user
            ),
        )
    }
}

/// The proof that one knows the password; nothing for an empty one.
fn scramble(plugin: &str, password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        Vec::new()
    } else if plugin == CACHING_SHA2 {
        let hash = Sha256::digest(password);
        let twice = Sha256::digest(hash);
        let mask = Sha256::new()
            .chain_update(twice)
            .chain_update(nonce)
            .finalize();
        xor(&hash, &mask)
    } else {
        let hash = Sha1::digest(password);
        let twice = Sha1::digest(hash);
        let mask = Sha1::new()
            .chain_update(nonce)
            .chain_update(twice)
            .finalize();
        xor(&hash, &mask)
    }
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// The values were reckoned from the definitions with Python's hashlib.
    #[test]
    fn scrambles_are_as_defined() {
        let nonce = b"abcdefghijklmnopqrst";
        assert_eq!(
            hex(&scramble(NATIVE, b"secret", nonce)),
            "8817c50fa779daef010ee7577825b0847df9842e"
        );
        assert_eq!(
            hex(&scramble(CACHING_SHA2, b"secret", nonce)),
            "c76e2898612a4cf042c77fa8c4702c4c64c0c2c557c53c4d75595aaa6abae809"
        );
        assert_eq!(scramble(NATIVE, b"", nonce), b"");
    }

    #[test]
    fn the_version_is_the_servers_own() {
        assert_eq!(
            plain_version("5.5.5-10.11.14-MariaDB-0+deb12u2"),
            "10.11.14-MariaDB-0+deb12u2"
        );
        assert_eq!(plain_version("11.4.2-MariaDB"), "11.4.2-MariaDB");
        assert_eq!(plain_version("9.7.4"), "9.7.4");
        assert_eq!(plain_version("5.5.5-log"), "5.5.5-log");
    }
}
