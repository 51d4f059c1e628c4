//! `CrateDB`, by HTTP with `bulk_args`: one request for each table of a batch. The answer has a count for each row, of which
//! -2 says that it was not taken; a value that cannot be cast fails the whole request.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_sql::{Error, ErrorKind, Interrupter, Result};
use serde::Deserialize;
use serde_json::{Map, Number, Value};

use super::http::Http;
use super::row::{Cell, Cells};
use super::{Known, Sink, Turns, quoted, quoted_table};
use crate::batch::{Batch, Counts};
use crate::job::{Columns, Places};

/// A connection.
pub struct Cratedb {
    turns: Turns,
    interrupter: Interrupter,
    http: Http,
    tables: Arc<[Known]>,
    statements: Vec<String>,
    tags_as_object: bool,
    refused: Refused,
}

/// Of one batch: the rows of each table that were not taken while others of the same request were.
#[derive(Default)]
struct Refused {
    batch: u64,
    rows: BTreeMap<usize, Vec<usize>>,
}

#[derive(Deserialize)]
struct Bulk {
    results: Vec<OfRow>,
}

#[derive(Deserialize)]
struct OfRow {
    rowcount: i64,
    #[serde(default)]
    error: Option<Value>,
}

impl Cratedb {
    /// Connects.
    pub fn connect(
        places: &Places,
        columns: &Columns,
        tables: &Arc<[Known]>,
        worker: usize,
    ) -> Result<Self> {
        let (mut turns, interrupter) = (Turns::new(places, worker), Interrupter::default());
        let http = Http::connect(&turns.take(), places.limits, &interrupter)?;
        Ok(Self {
            turns,
            interrupter,
            http,
            statements: tables
                .iter()
                .map(|known| statement(columns, known))
                .collect(),
            tables: Arc::clone(tables),
            tags_as_object: columns.tags.is_some(),
            refused: Refused::default(),
        })
    }

    fn insert(&mut self, batch: &Batch, table: usize, done: &mut Counts) -> Result<()> {
        let known = &self.tables[table];
        let again = self.refused.rows.get(&table);
        let of_table = batch.lines().filter(|&(_, of)| of == table).enumerate();
        let (mut places, mut rows) = (Vec::new(), Vec::new());
        for (place, (line, _)) in
            of_table.filter(|(place, _)| again.is_none_or(|rows| rows.contains(place)))
        {
            places.push(place);
            let cells = Cells::of(line, known)?;
            // Its times are in ms.
            let mut row = vec![Value::from(cells.time_ns.div_euclid(1_000_000))];
            if self.tags_as_object {
                row.push(object(&known.1.tags, &cells.tags));
            } else {
                row.extend(cells.tags.iter().map(value));
            }
            row.extend(cells.fields.iter().map(value));
            rows.push(Value::from(row));
        }
        let sent = rows.len();
        let body =
            serde_json::json!({"stmt": self.statements[table], "bulk_args": rows}).to_string();
        let answer = self
            .http
            .post("/_sql", "application/json", body.as_bytes())?;
        if answer.status != 200 {
            return Err(answer.refused(&format!("inserting rows of {}", known.0)));
        }
        let bulk: Bulk = serde_json::from_slice(&answer.body).map_err(|error| {
            Error::new(
                ErrorKind::Protocol,
                format!("the answer to a bulk insert: {error}"),
            )
        })?;
        if bulk.results.len() != sent {
            return Err(Error::new(
                ErrorKind::Protocol,
                format!(
                    "{} of {sent} rows of a bulk insert were answered",
                    bulk.results.len()
                ),
            ));
        }
        // 0: a row with this key is there already.
        let left: Vec<usize> = places
            .into_iter()
            .zip(&bulk.results)
            .filter(|(_, row)| row.rowcount < 0)
            .map(|(place, _)| place)
            .collect();
        let taken = sent - left.len();
        done.add(table, taken as u64);
        self.refused.rows.insert(table, left);
        if taken == sent {
            return Ok(());
        }
        let why = bulk
            .results
            .iter()
            .find_map(|row| row.error.as_ref())
            .map_or_else(String::new, |error| format!("; the first: {error}"));
        // A node that is gone has taken its shards with it: other rows of the same request are there.
        Err(Error::new(
            ErrorKind::Unavailable,
            format!(
                "{} of {sent} rows of {} were not taken{why}",
                sent - taken,
                known.0
            ),
        ))
    }
}

fn statement(columns: &Columns, (name, table): &Known) -> String {
    let mut names = vec![quoted(&columns.time)];
    match &columns.tags {
        Some(object) => names.push(quoted(object)),
        None => names.extend(table.tags.iter().map(|tag| quoted(tag))),
    }
    names.extend(table.fields.iter().map(|(field, _)| quoted(field)));
    let table = quoted_table(columns.schema.as_deref(), name);
    let places = vec!["?"; names.len()].join(", ");
    let conflict = if columns.keyed {
        " ON CONFLICT DO NOTHING"
    } else {
        ""
    };
    format!(
        "INSERT INTO {table} ({}) VALUES ({places}){conflict}",
        names.join(", ")
    )
}

/// Tags as one object.
pub fn object(names: &[String], tags: &[Cell<'_>]) -> Value {
    let tags: Map<String, Value> = names
        .iter()
        .zip(tags)
        .filter(|(_, cell)| **cell != Cell::Null)
        .map(|(name, cell)| (name.clone(), value(cell)))
        .collect();
    Value::Object(tags)
}

fn value(cell: &Cell<'_>) -> Value {
    match cell {
        Cell::Null => Value::Null,
        Cell::Text(text) => Value::from(text.as_ref()),
        Cell::Bool(value) => Value::from(*value),
        Cell::Number(digits) => digits
            .parse::<i64>()
            .map(Value::from)
            .ok()
            .or_else(|| {
                digits
                    .parse()
                    .ok()
                    .and_then(Number::from_f64)
                    .map(Value::Number)
            })
            // JSON has no such number, and the store is to refuse what it has no place for.
            .unwrap_or_else(|| Value::from(*digits)),
    }
}

impl Sink for Cratedb {
    fn send(&mut self, batch: &Batch, done: &mut Counts) -> Result<()> {
        if self.refused.batch != batch.made {
            self.refused = Refused {
                batch: batch.made,
                rows: BTreeMap::new(),
            };
        }
        for table in 0..self.tables.len() {
            if done.of(table) < batch.counts.of(table) {
                self.insert(batch, table, done)?;
            }
        }
        Ok(())
    }

    fn left(&self, table: usize) -> Option<&[usize]> {
        self.refused.rows.get(&table).map(Vec::as_slice)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Table;

    #[test]
    fn a_statement_has_a_place_for_each_column() {
        let table = Table {
            tags: vec!["hostname".into(), "region".into()],
            fields: vec![("usage\"user".into(), "int".into())],
            ..Table::default()
        };
        let known = ("cpu".to_owned(), table);
        assert_eq!(
            statement(&Columns::default(), &known),
            "INSERT INTO \"cpu\" (\"timestamp\", \"hostname\", \"region\", \"usage\"\"user\") VALUES (?, ?, ?, ?)"
        );
        let columns = Columns {
            time: "ts".into(),
            tags: Some("tags".into()),
            schema: Some("doc".into()),
            keyed: true,
        };
        assert_eq!(
            statement(&columns, &known),
            "INSERT INTO \"doc\".\"cpu\" (\"ts\", \"tags\", \"usage\"\"user\") VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
        );
    }

    #[test]
    fn numbers_stay_whole_where_they_are() {
        assert_eq!(
            value(&Cell::Number("9007199254740993")).to_string(),
            "9007199254740993"
        );
        assert_eq!(value(&Cell::Number("1.5")).to_string(), "1.5");
        assert_eq!(value(&Cell::Number("1e999")).to_string(), "\"1e999\"");
        assert_eq!(
            object(
                &["a".into(), "b".into()],
                &[Cell::Text("x".into()), Cell::Null]
            )
            .to_string(),
            r#"{"a":"x"}"#
        );
    }
}
