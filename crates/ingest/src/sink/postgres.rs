//! `PostgreSQL`, by `COPY`: one statement for each table of a batch, each a transaction of its own that is acknowledged
//! once it is committed.

use std::sync::Arc;

use dyno_sql::{Connection, Interrupter, Postgres, Result, Server, Value};

use super::row::{Cell, Cells, put_time};
use super::{Known, Sink, quoted, quoted_table};
use crate::batch::{Batch, Counts};
use crate::job::Columns;

/// A connection.
pub struct Copy {
    connection: Postgres,
    tables: Arc<[Known]>,
    /// Each table's name and columns as they stand in a statement.
    names: Vec<(String, Vec<String>)>,
    tags_as_object: bool,
}

impl Copy {
    /// Connects.
    pub fn connect(server: &Server, columns: &Columns, tables: &Arc<[Known]>) -> Result<Self> {
        Ok(Self {
            connection: Postgres::connect(server)?,
            names: tables
                .iter()
                .map(|(name, table)| {
                    let mut names = vec![quoted(&columns.time)];
                    match &columns.tags {
                        Some(object) => names.push(quoted(object)),
                        None => names.extend(table.tags.iter().map(|tag| quoted(tag))),
                    }
                    names.extend(table.fields.iter().map(|(field, _)| quoted(field)));
                    (quoted_table(columns.schema.as_deref(), name), names)
                })
                .collect(),
            tables: Arc::clone(tables),
            tags_as_object: columns.tags.is_some(),
        })
    }

    fn copy(&mut self, batch: &Batch, table: usize) -> Result<()> {
        let known = &self.tables[table];
        let mut texts: Vec<String> = Vec::new();
        let mut rows: Vec<(usize, Option<usize>, Cells<'_>)> = Vec::new();
        let mut last = None;
        for (line, _) in batch.lines().filter(|&(_, of)| of == table) {
            let cells = Cells::of(line, known)?;
            // Rows of one time come together.
            let time = match last {
                Some((time_ns, place)) if time_ns == cells.time_ns => place,
                _ => {
                    let mut text = String::new();
                    put_time(&mut text, cells.time_ns);
                    texts.push(text);
                    texts.len() - 1
                }
            };
            last = Some((cells.time_ns, time));
            let tags = self.tags_as_object.then(|| {
                texts.push(super::cratedb::object(&known.1.tags, &cells.tags).to_string());
                texts.len() - 1
            });
            rows.push((time, tags, cells));
        }
        let mut values: Vec<Value<'_>> = Vec::new();
        for (time, tags, cells) in &rows {
            values.push(Value::Text(&texts[*time]));
            match tags {
                Some(place) => values.push(Value::Text(&texts[*place])),
                None => values.extend(cells.tags.iter().map(value)),
            }
            values.extend(cells.fields.iter().map(value));
        }
        let (name, columns) = &self.names[table];
        let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
        self.connection.insert_rows(name, &columns, &values)
    }
}

fn value<'a>(cell: &'a Cell<'_>) -> Value<'a> {
    match cell {
        Cell::Null => Value::Null,
        Cell::Number(digits) => Value::Text(digits),
        Cell::Text(text) => Value::Text(text),
        Cell::Bool(true) => Value::Text("t"),
        Cell::Bool(false) => Value::Text("f"),
    }
}

impl Sink for Copy {
    fn send(&mut self, batch: &Batch, done: &mut Counts) -> Result<()> {
        for table in 0..self.tables.len() {
            let rows = batch.counts.of(table);
            if rows > 0 && done.of(table) == 0 {
                self.copy(batch, table)?;
                done.add(table, rows);
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn reconnect(&mut self) -> Result<()> {
        self.connection.reconnect()
    }

    fn interrupter(&self) -> Interrupter {
        self.connection.interrupter()
    }

    fn version(&self) -> String {
        self.connection.version().to_owned()
    }
}
