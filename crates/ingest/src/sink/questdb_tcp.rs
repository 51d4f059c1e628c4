//! `QuestDB`, the line protocol over a socket.
//!
//! Nothing is acknowledged: the server reads what comes, and answers a line that it cannot take by closing the socket;
//! why is in its log alone. So what was sent is not known to have arrived, and is never counted as acknowledged. After the
//! last row this end is closed, and the server closes its own once it has read all of it: that much is waited for.

use std::io::{Read, Write};

use dyno_sql::{Error, ErrorKind, Interrupter, Result, Stream};

use super::{Sink, Turns};
use crate::batch::{Batch, Counts};
use crate::job::Places;

/// A socket.
pub struct QuestdbTcp {
    turns: Turns,
    interrupter: Interrupter,
    stream: Stream,
}

impl QuestdbTcp {
    /// Connects.
    pub fn connect(places: &Places, worker: usize) -> Result<Self> {
        let (mut turns, interrupter) = (Turns::new(places, worker), Interrupter::default());
        let stream = open(&mut turns, &interrupter)?;
        Ok(Self {
            turns,
            interrupter,
            stream,
        })
    }
}

fn open(turns: &mut Turns, interrupter: &Interrupter) -> Result<Stream> {
    let limits = turns.places.limits;
    let mut stream = Stream::connect(&turns.take(), limits)?;
    interrupter.watch(&stream)?;
    stream.limit(limits.read, limits.write)?;
    Ok(stream)
}

impl Sink for QuestdbTcp {
    fn send(&mut self, batch: &Batch, _done: &mut Counts) -> Result<()> {
        self.stream.write_all(&batch.text).map_err(|error| {
            let mut error = Error::from(error);
            error
                .message
                .push_str("; the server closes the socket at a line that it cannot take, and says why in its log");
            error
        })
    }

    fn finish(&mut self) -> Result<()> {
        self.stream.finish_writing()?;
        let mut byte = [0];
        match self.stream.read(&mut byte) {
            Ok(0) => Ok(()),
            Ok(_) => Err(Error::new(
                ErrorKind::Protocol,
                "the server answered, where the line protocol has no answers",
            )),
            Err(error) => Err(error.into()),
        }
    }

    fn reconnect(&mut self) -> Result<()> {
        self.stream = open(&mut self.turns, &self.interrupter)?;
        Ok(())
    }

    fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }
}
