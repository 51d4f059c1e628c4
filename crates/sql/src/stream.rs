//! A byte stream to a server, over TCP or a socket file, with limits on how long anything may take.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::{Error, ErrorKind, Result};

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host name or address, and a port.
    Tcp(String, u16),
    /// A socket file.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// How long to wait for a connection, and within an operation for bytes to come or go. Each is above 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// For a connection, up to the end of the log-in.
    pub connect: Duration,
    /// For the next bytes of an answer.
    pub read: Duration,
    /// For a request to be taken.
    pub write: Duration,
}

/// A connected stream. Small requests go out at once (`TCP_NODELAY`).
#[derive(Debug)]
pub struct Stream {
    channel: Channel,
    /// By when all must have been read and written; during the log-in.
    end: Option<Instant>,
}

#[derive(Debug)]
enum Channel {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Connects. `limits.connect` is on this and all that is read and written until [`Self::limit`] together,
    /// however many addresses the host has, and however little a server says at a time.
    pub fn connect(address: &Address, limits: Limits) -> Result<Self> {
        let end = Instant::now() + limits.connect;
        let channel = match address {
            Address::Tcp(host, port) => connect_tcp(host, *port, end).map(Channel::Tcp),
            Address::Unix(path) => {
                let connect = || {
                    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
                    socket.connect_timeout(&SockAddr::unix(path)?, limits.connect)?;
                    Ok(Channel::Unix(OwnedFd::from(socket).into()))
                };
                connect()
            }
        };
        channel
            .map(|channel| Self {
                channel,
                end: Some(end),
            })
            .map_err(|error| {
                Error::new(
                    ErrorKind::Connect,
                    format!("connecting to {address}: {error}; does the server run?"),
                )
            })
    }

    /// Sets the limits on reads and writes, in place of the one on connecting.
    pub fn limit(&mut self, read: Duration, write: Duration) -> io::Result<()> {
        self.end = None;
        self.channel.limit(read, write)
    }

    /// Whether nobody else can read what goes over it.
    pub(crate) const fn is_private(&self) -> bool {
        matches!(self.channel, Channel::Unix(_))
    }

    #[cold]
    fn keep_within(&self, end: Instant) -> io::Result<()> {
        let left = left(end)?;
        self.channel.limit(left, left)
    }

    fn try_clone(&self) -> io::Result<Self> {
        let channel = match &self.channel {
            Channel::Tcp(stream) => stream.try_clone().map(Channel::Tcp),
            Channel::Unix(stream) => stream.try_clone().map(Channel::Unix),
        };
        channel.map(|channel| Self {
            channel,
            end: self.end,
        })
    }

    /// Says that nothing more will be written; what was can still be answered.
    pub fn finish_writing(&self) -> io::Result<()> {
        match &self.channel {
            Channel::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Channel::Unix(stream) => stream.shutdown(Shutdown::Write),
        }
    }

    /// Closes it on both sides, also where an [`Interrupter`] still watches over it.
    pub(crate) fn shutdown(&self) {
        // One that is closed already needs no end.
        let _ = match &self.channel {
            Channel::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Channel::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Channel {
    fn limit(&self, read: Duration, write: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(read))?;
                stream.set_write_timeout(Some(write))
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(read))?;
                stream.set_write_timeout(Some(write))
            }
        }
    }
}

impl From<UnixStream> for Stream {
    fn from(stream: UnixStream) -> Self {
        Self {
            channel: Channel::Unix(stream),
            end: None,
        }
    }
}

/// What is left of a time; an error where nothing is.
fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(left)
}

fn connect_tcp(host: &str, port: u16, end: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
    for (tried, address) in addresses.iter().enumerate() {
        // One that does not answer leaves the others their share.
        let share = left(end)?.div_f64((addresses.len() - tried) as f64);
        match TcpStream::connect_timeout(address, share.max(Duration::from_millis(1))) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(end) = self.end {
            self.keep_within(end)?;
        }
        match &mut self.channel {
            Channel::Tcp(stream) => stream.read(buffer),
            Channel::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    #[inline]
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        if let Some(end) = self.end {
            self.keep_within(end)?;
        }
        match &mut self.channel {
            Channel::Tcp(stream) => stream.write(buffer),
            Channel::Unix(stream) => stream.write(buffer),
        }
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// As what an error of reading or writing a stream counts.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        let kind = match error.kind() {
            // A limit on a socket shows as either.
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ErrorKind::Timeout,
            _ => ErrorKind::ConnectionLost,
        };
        let message = match kind {
            ErrorKind::Timeout => "no answer within the limit".to_owned(),
            _ => format!("the connection broke: {error}"),
        };
        Self::new(kind, message)
    }
}

/// Ends what a connection waits for, from another thread, and keeps it from connecting again.
#[derive(Clone, Debug, Default)]
pub struct Interrupter(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    stopped: bool,
    stream: Option<Stream>,
}

impl Interrupter {
    /// Ends it; whoever waits gets an error of kind `connection_lost`.
    pub fn interrupt(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.stopped = true;
        if let Some(stream) = &state.stream {
            stream.shutdown();
        }
    }

    /// Whether it was ended.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .stopped
    }

    /// Watches over a new stream, in place of the one before. An error where it was interrupted already.
    pub fn watch(&self, stream: &Stream) -> Result<()> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return Err(Error::new(ErrorKind::ConnectionLost, "the run is to end"));
        }
        state.stream = Some(stream.try_clone()?);
        Ok(())
    }
}
