//! `QuestDB`, the line protocol by HTTP: each request is answered once the rows are in the write-ahead log of their
//! tables (status 204), or with what is wrong with them (400), and then none of its rows is taken.

use dyno_sql::{Interrupter, Result};

use super::http::Http;
use super::{Sink, Turns};
use crate::batch::{Batch, Counts};
use crate::job::Places;

const PATH: &str = "/write?precision=n";

/// A connection.
pub struct QuestdbHttp {
    turns: Turns,
    interrupter: Interrupter,
    http: Http,
}

impl QuestdbHttp {
    /// Connects.
    pub fn connect(places: &Places, worker: usize) -> Result<Self> {
        let (mut turns, interrupter) = (Turns::new(places, worker), Interrupter::default());
        let http = Http::connect(&turns.take(), places.limits, &interrupter)?;
        Ok(Self {
            turns,
            interrupter,
            http,
        })
    }
}

impl Sink for QuestdbHttp {
    fn send(&mut self, batch: &Batch, done: &mut Counts) -> Result<()> {
        let answer = self
            .http
            .post(PATH, "text/plain; charset=utf-8", &batch.text)?;
        if answer.status != 204 && answer.status != 200 {
            return Err(answer.refused("writing rows"));
        }
        *done = batch.counts.clone();
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn reconnect(&mut self) -> Result<()> {
        let limits = self.turns.places.limits;
        self.http = Http::connect(&self.turns.take(), limits, &self.interrupter)?;
        Ok(())
    }

    fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }
}
