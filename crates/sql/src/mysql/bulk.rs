//! Many rows at once: inserts of several rows each, prepared.

use std::collections::VecDeque;

use super::exchange::Exchange;
use super::packets::status;
use super::statement::Statement;
use crate::Value;
use crate::error::{Error, ErrorKind, Result};

/// So many rows an insert: a round trip and a transaction are shared by enough of them, and the statement
/// to prepare stays short.
const ROWS: usize = 256;

/// The protocol counts parameters in two bytes.
const PARAMETERS: usize = 0xFFFF;

/// An insert has fewer rows where it would be larger.
const BYTES: usize = 4 * 1024 * 1024;

/// So many prepared inserts are kept: a full one and one of what is left over, for a few tables.
const KEPT: usize = 16;

/// The inserts that were prepared, the one used last in front.
#[derive(Default)]
pub struct Inserts(VecDeque<Insert>);

struct Insert {
    table: String,
    columns: Vec<String>,
    rows: usize,
    statement: Statement,
}

impl Insert {
    fn is(&self, table: &str, columns: &[&str], rows: usize) -> bool {
        self.rows == rows && self.table == table && self.columns == columns
    }
}

impl Inserts {
    /// Forgets them, with the connection that they were prepared on.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    fn of(
        &mut self,
        exchange: &mut Exchange,
        table: &str,
        columns: &[&str],
        rows: usize,
    ) -> Result<&mut Statement> {
        let at = self.0.iter().position(|one| one.is(table, columns, rows));
        let insert = match at.and_then(|at| self.0.remove(at)) {
            Some(insert) => insert,
            None => Insert {
                table: table.to_owned(),
                columns: columns.iter().map(|&column| column.to_owned()).collect(),
                rows,
                statement: exchange.prepare(&sql(table, columns, rows))?,
            },
        };
        self.0.truncate(KEPT - 1);
        self.0.push_front(insert);
        Ok(&mut self.0[0].statement)
    }

    /// As [`crate::Connection::insert_rows`].
    pub fn insert(
        &mut self,
        exchange: &mut Exchange,
        table: &str,
        columns: &[&str],
        values: &[Value<'_>],
    ) -> Result<()> {
        let width = columns.len();
        if width == 0 || !values.len().is_multiple_of(width) {
            return Err(Error::new(
                ErrorKind::Refused,
                format!("{} values are no rows of {width} columns", values.len()),
            ));
        }
        let parts = Parts {
            values,
            width,
            limit: BYTES.min(exchange.wire.limit),
        };
        let several = parts.clone().nth(1).is_some();
        // The server knows best whether a transaction is open, also after an error ended one.
        let alone = several && {
            exchange.run("DO 0", |_| ())?;
            exchange.status & (status::AUTOCOMMIT | status::IN_TRANSACTION) == status::AUTOCOMMIT
        };
        if alone {
            exchange.run("START TRANSACTION", |_| ())?;
        }
        let added = parts.into_iter().try_for_each(|part| {
            let statement = self.of(exchange, table, columns, part.len() / width)?;
            let added = exchange.execute(statement, part);
            if added.is_err() {
                statement.forget_types();
            }
            added.map(|_| ())
        });
        match added {
            Ok(()) if alone => exchange.run("COMMIT", |_| ()),
            Err(error) if alone => {
                exchange.notice(&error);
                // Where the connection broke, the server rolls back by itself. What went wrong first is
                // what counts.
                if exchange.ready().is_ok()
                    && let Err(another) = exchange.run("ROLLBACK", |_| ())
                {
                    exchange.notice(&another);
                }
                Err(error)
            }
            added => added,
        }
    }
}

/// The rows, cut into what one insert takes.
#[derive(Clone)]
struct Parts<'s, 'v> {
    values: &'s [Value<'v>],
    width: usize,
    /// In bytes, for an insert of more than one row.
    limit: usize,
}

impl<'s, 'v> Iterator for Parts<'s, 'v> {
    type Item = &'s [Value<'v>];

    /// As many as are usual or are left; half of them, and so on, where that is too large, so that the
    /// same few numbers of rows come again and again.
    fn next(&mut self) -> Option<Self::Item> {
        if self.values.is_empty() {
            return None;
        }
        let most = ROWS.min(PARAMETERS / self.width).max(1);
        let mut rows = most.min(self.values.len() / self.width);
        while rows > 1 && Statement::size(&self.values[..rows * self.width]) > self.limit {
            rows = rows.next_power_of_two() / 2;
        }
        let (part, rest) = self.values.split_at(rows * self.width);
        self.values = rest;
        Some(part)
    }
}

fn sql(table: &str, columns: &[&str], rows: usize) -> String {
    let names: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let row = format!("({})", vec!["?"; columns.len()].join(","));
    format!(
        "INSERT INTO {}({}) VALUES {}",
        quoted(table),
        names.join(","),
        vec![row; rows].join(",")
    )
}

/// A name, whatever stands in it.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_quoted_and_rows_repeated() {
        assert_eq!(
            sql("a`b", &["key", "field0"], 2),
            "INSERT INTO `a``b`(`key`,`field0`) VALUES (?,?),(?,?)"
        );
    }

    proptest! {
        #[test]
        fn parts_are_the_whole_and_none_is_too_large(
            (width, rows) in prop_oneof![(1usize..8, 0usize..700), (100usize..400, 0usize..300)],
            length in 0usize..3000,
            limit in 1000usize..100_000,
        ) {
            let text = "x".repeat(length);
            let values = vec![Value::Text(&text); width * rows];
            let parts = Parts { values: &values, width, limit };
            let mut total = 0;
            for part in parts {
                total += part.len();
                prop_assert!(part.len() <= PARAMETERS);
                prop_assert!(part.len() % width == 0);
                prop_assert!(part.len() == width || Statement::size(part) <= limit);
            }
            prop_assert_eq!(total, values.len());
        }
    }
}
