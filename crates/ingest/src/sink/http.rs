//! As much of HTTP/1.1 as loading takes: one request at a time over a connection that stays open
//! (<https://www.rfc-editor.org/rfc/rfc9112>).

use std::io::{Read, Write};

use dyno_sql::{Address, Error, ErrorKind, Interrupter, Limits, Result, Stream};
use memchr::memmem;

/// A longer head or body is none that a store gives to a load.
const LONGEST: usize = 64 << 20;
const CHUNK: usize = 16 << 10;

/// A connection.
pub struct Http {
    stream: Stream,
    host: String,
    /// What came and was not yet looked at.
    input: Vec<u8>,
    /// The head of the request under way.
    head: Vec<u8>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Vec<u8>,
}

impl Http {
    /// Connects.
    pub fn connect(address: &Address, limits: Limits, interrupter: &Interrupter) -> Result<Self> {
        let mut stream = Stream::connect(address, limits)?;
        interrupter.watch(&stream)?;
        stream.limit(limits.read, limits.write)?;
        Ok(Self {
            stream,
            host: address.to_string(),
            input: Vec::new(),
            head: Vec::new(),
        })
    }

    /// Posts a body and reads the answer to its end.
    pub fn post(&mut self, path: &str, kind: &str, body: &[u8]) -> Result<Answer> {
        self.head.clear();
        write!(
            self.head,
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            self.host,
            body.len()
        )?;
        self.stream.write_all(&self.head)?;
        self.stream.write_all(body)?;
        self.answer()
    }

    fn answer(&mut self) -> Result<Answer> {
        let end = self.until(b"\r\n\r\n", 0)?;
        let head = String::from_utf8_lossy(&self.input[..end]).into_owned();
        self.input.drain(..end + 4);
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1."))
            .and_then(|rest| rest.get(2..5))
            .and_then(|status| status.parse().ok())
            .ok_or_else(|| protocol("the answer is no HTTP"))?;
        let (mut length, mut chunked, mut closes) = (None, false, false);
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            let value = value.trim();
            match name.to_ascii_lowercase().as_str() {
                "content-length" => {
                    length = Some(
                        value
                            .parse()
                            .map_err(|_| protocol("a length is no number"))?,
                    );
                }
                "transfer-encoding" => chunked = value.eq_ignore_ascii_case("chunked"),
                "connection" => closes = value.eq_ignore_ascii_case("close"),
                _ => {}
            }
        }
        let body = match (status, chunked, length) {
            (204 | 304, ..) => Vec::new(),
            (_, true, _) => self.chunks()?,
            (_, false, Some(length)) => self.exactly(length)?,
            (_, false, None) if closes => self.rest()?,
            (_, false, None) => return Err(protocol("an answer does not say how long it is")),
        };
        Ok(Answer { status, body })
    }

    fn chunks(&mut self) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let end = self.until(b"\r\n", 0)?;
            let size = std::str::from_utf8(&self.input[..end])
                .ok()
                .map(|line| line.split(';').next().unwrap_or(line).trim())
                .and_then(|size| usize::from_str_radix(size, 16).ok())
                .ok_or_else(|| protocol("a chunk does not say how long it is"))?;
            self.input.drain(..end + 2);
            let chunk = self.exactly(size)?;
            // The end of a chunk, and of all after the last one.
            self.exactly(2)?;
            if size == 0 {
                return Ok(body);
            }
            body.extend_from_slice(&chunk);
            if body.len() > LONGEST {
                return Err(protocol("an answer is too long"));
            }
        }
    }

    fn exactly(&mut self, length: usize) -> Result<Vec<u8>> {
        if length > LONGEST {
            return Err(protocol("an answer is too long"));
        }
        while self.input.len() < length {
            self.more()?;
        }
        Ok(self.input.drain(..length).collect())
    }

    fn rest(&mut self) -> Result<Vec<u8>> {
        loop {
            match self.more() {
                Ok(()) if self.input.len() > LONGEST => {
                    return Err(protocol("an answer is too long"));
                }
                Ok(()) => {}
                Err(error) if error.kind == ErrorKind::ConnectionLost => {
                    return Ok(std::mem::take(&mut self.input));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn until(&mut self, end: &[u8], from: usize) -> Result<usize> {
        loop {
            if let Some(found) = memmem::find(&self.input[from..], end) {
                return Ok(from + found);
            }
            if self.input.len() > LONGEST {
                return Err(protocol("an answer is too long"));
            }
            self.more()?;
        }
    }

    fn more(&mut self) -> Result<()> {
        let held = self.input.len();
        self.input.resize(held + CHUNK, 0);
        let read = self.stream.read(&mut self.input[held..]);
        self.input
            .truncate(held + read.as_ref().copied().unwrap_or(0));
        match read? {
            0 => Err(Error::new(
                ErrorKind::ConnectionLost,
                "the server closed the connection before it had answered",
            )),
            _ => Ok(()),
        }
    }
}

impl Answer {
    /// An error of a request that was not done, with what the server says of it.
    pub fn refused(&self, what: &str) -> Error {
        let said = String::from_utf8_lossy(&self.body[..self.body.len().min(600)])
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let kind = match self.status {
            401 | 403 => ErrorKind::AccessDenied,
            // It is there and takes no more for now.
            429 | 502 | 503 | 504 => ErrorKind::Unavailable,
            _ => ErrorKind::Refused,
        };
        Error::new(kind, format!("{what}: status {}: {said}", self.status))
    }
}

fn protocol(wrong: &str) -> Error {
    Error::new(ErrorKind::Protocol, wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::net::UnixStream;
    use std::thread;

    /// What is made of an answer that comes in pieces of a size.
    fn answer_to(said: Vec<u8>, size: usize) -> Result<Answer> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut http = Http {
            stream: Stream::from(ours),
            host: "here".to_owned(),
            input: Vec::new(),
            head: Vec::new(),
        };
        let server = thread::spawn(move || {
            let mut asked = [0; 4096];
            let _ = theirs.read(&mut asked);
            for piece in said.chunks(size) {
                if theirs.write_all(piece).is_err() {
                    return;
                }
            }
        });
        let answer = http.post("/write", "text/plain", b"row");
        drop(http);
        server.join().unwrap();
        answer
    }

    #[test]
    fn each_way_of_saying_how_long_a_body_is_is_understood() {
        for (said, status, body) in [
            ("HTTP/1.1 204 OK\r\nServer: q\r\n\r\n", 204, ""),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
                200,
                "hello",
            ),
            (
                "HTTP/1.1 400 Bad request\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n!\r\n00\r\n\r\n",
                400,
                "hello!",
            ),
            (
                "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nall",
                200,
                "all",
            ),
        ] {
            for size in [1, 3, 1000] {
                let answer = answer_to(said.as_bytes().to_vec(), size).unwrap();
                assert_eq!(
                    (answer.status, answer.body.as_slice()),
                    (status, body.as_bytes())
                );
            }
        }
    }

    #[test]
    fn an_answer_that_breaks_off_is_no_answer() {
        for (said, kind) in [
            ("", ErrorKind::ConnectionLost),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel",
                ErrorKind::ConnectionLost,
            ),
            ("HTTP/1.1 200 OK\r\n\r\n", ErrorKind::Protocol),
            ("SSH-2.0\r\n\r\n", ErrorKind::Protocol),
            (
                "HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n",
                ErrorKind::Protocol,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                ErrorKind::Protocol,
            ),
        ] {
            assert_eq!(
                answer_to(said.as_bytes().to_vec(), 100).unwrap_err().kind,
                kind,
                "{said}"
            );
        }
    }

    proptest! {
        #[test]
        fn nothing_that_comes_makes_it_panic(said in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut bytes = b"HTTP/1.1 200 OK\r\n".to_vec();
            bytes.extend(said);
            let _ = answer_to(bytes, 64);
        }
    }
}
