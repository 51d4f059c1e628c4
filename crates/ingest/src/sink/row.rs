//! A row's values at the places of its table's columns.

use std::borrow::Cow;

use dyno_sql::{Error, ErrorKind, Result};

use super::Known;
use crate::line::{self, Field, Line};

/// A value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Cell<'a> {
    /// None.
    #[default]
    Null,
    /// Digits, as they are written.
    Number(&'a str),
    /// Text as it is meant.
    Text(Cow<'a, str>),
    /// One or the other.
    Bool(bool),
}

/// A row.
#[derive(Debug, Default)]
pub struct Cells<'a> {
    /// In ns since the epoch.
    pub time_ns: i64,
    /// At the places of the tags.
    pub tags: Vec<Cell<'a>>,
    /// At the places of the fields.
    pub fields: Vec<Cell<'a>>,
}

impl<'a> Cells<'a> {
    /// Takes a line apart. An error where it has what its table does not have.
    pub fn of(line: &'a [u8], (name, table): &Known) -> Result<Self> {
        let parsed = Line::parse(line).map_err(|wrong| refused(name, wrong))?;
        let mut cells = Self {
            time_ns: parsed.time_ns,
            tags: vec![Cell::Null; table.tags.len()],
            fields: vec![Cell::Null; table.fields.len()],
        };
        for (number, (tag, value)) in parsed.each_tag().enumerate() {
            let place = place(number, tag, &table.tags, String::as_str)
                .ok_or_else(|| refused(name, "has a tag that its manifest does not know"))?;
            cells.tags[place] = Cell::Text(line::plain(value));
        }
        for (number, (field, value)) in parsed.each_field().enumerate() {
            let place = place(number, field, &table.fields, |(known, _)| known)
                .ok_or_else(|| refused(name, "has a field that its manifest does not know"))?;
            let value = line::field(value).map_err(|wrong| refused(name, wrong))?;
            cells.fields[place] = match value {
                Field::Int(digits) | Field::Float(digits) => Cell::Number(digits),
                Field::Bool(value) => Cell::Bool(value),
                Field::Text(text) => Cell::Text(text),
            };
        }
        Ok(cells)
    }
}

/// Mostly where it is in every other row, too.
fn place<T>(
    number: usize,
    name: &[u8],
    known: &[T],
    as_name: impl Fn(&T) -> &str,
) -> Option<usize> {
    if known
        .get(number)
        .is_some_and(|one| as_name(one).as_bytes() == name)
    {
        return Some(number);
    }
    let name = line::plain(name);
    known.iter().position(|one| as_name(one) == name)
}

fn refused(table: &str, wrong: &str) -> Error {
    Error::new(ErrorKind::Refused, format!("a row of {table} {wrong}"))
}

/// A time in ns as text that every SQL store reads: `2016-01-01 00:00:10.000000+00`. What is below a microsecond is cut
/// off: `PostgreSQL` keeps no more.
pub fn put_time(into: &mut String, time_ns: i64) {
    put_date_time(into, time_ns);
    into.push_str("+00");
}

/// The same without its zone, which is UTC.
pub fn put_date_time(into: &mut String, time_ns: i64) {
    use std::fmt::Write;
    let micros = time_ns.div_euclid(1000);
    let (seconds, micros) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = date(days);
    // Memory is all that it could lack.
    let _ = write!(
        into,
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{micros:06}",
        second / 3600,
        second / 60 % 60,
        second % 60
    );
}

/// The date of a number of days since 1970-01-01: Hinnant, "chrono-Compatible Low-Level Date Algorithms" (2013),
/// `civil_from_days`.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Table;

    fn time(ns: i64) -> String {
        let mut text = String::new();
        put_time(&mut text, ns);
        text
    }

    #[test]
    fn times_are_written_as_dates() {
        assert_eq!(time(0), "1970-01-01 00:00:00.000000+00");
        assert_eq!(
            time(1_451_606_410_000_000_000),
            "2016-01-01 00:00:10.000000+00"
        );
        assert_eq!(
            time(1_456_703_999_123_456_789),
            "2016-02-28 23:59:59.123456+00"
        );
        assert_eq!(
            time(1_456_704_000_000_000_000),
            "2016-02-29 00:00:00.000000+00"
        );
        assert_eq!(time(-1), "1969-12-31 23:59:59.999999+00");
        assert_eq!(
            time(951_868_800_000_000_000),
            "2000-03-01 00:00:00.000000+00"
        );
    }

    #[test]
    fn values_stand_at_the_places_of_their_columns_whatever_a_row_leaves_out() {
        let table = Table {
            tags: vec!["a".into(), "b".into()],
            fields: vec![
                ("x".into(), "int".into()),
                ("y".into(), "bool".into()),
                ("z".into(), "text".into()),
            ],
            ..Table::default()
        };
        let known = ("t".to_owned(), table);
        let cells = Cells::of(b"t,b=2 z=\"q\",x=1i 5", &known).unwrap();
        assert_eq!(cells.tags, [Cell::Null, Cell::Text("2".into())]);
        assert_eq!(
            cells.fields,
            [Cell::Number("1"), Cell::Null, Cell::Text("q".into())]
        );
        assert_eq!(cells.time_ns, 5);
        let wrong = Cells::of(b"t,c=1 x=1i 5", &known).unwrap_err();
        assert_eq!(
            wrong.message,
            "a row of t has a tag that its manifest does not know"
        );
    }
}
