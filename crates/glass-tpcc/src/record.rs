//! Rows as records of the engine: numbers at fixed places, then texts of one length, then how far each other text reaches,
//! then these texts, and what is kept free for the last of them to grow. Numbers have the lowest byte first; of those that may
//! be missing the lowest of all says that it is.
//!
//! Numbers come first so that those that a transaction changes together stand together.

use dyno_sql::{Error, ErrorKind, Result, Value};
use dyno_tpcc::population::{Holds, Table};

/// What a column takes of a record's fixed part, in bytes, in the pass of its kind.
const fn width(holds: Holds, pass: usize) -> usize {
    match (pass, holds) {
        (0, Holds::Number | Holds::NumberOrNull) => 4,
        (0, Holds::Large | Holds::LargeOrNull) => 8,
        (1, Holds::Fixed(length)) => length as usize,
        (2, Holds::Text(_)) => 2,
        _ => 0,
    }
}

const PASSES: usize = 3;

/// Where a column of a table's records is; where the texts are, for a number beyond the last.
const fn place(table: Table, column: usize) -> usize {
    let columns = table.columns();
    let (mut at, mut pass) = (0, 0);
    while pass < PASSES {
        let mut other = 0;
        while other < columns.len() {
            let width = width(columns[other].1, pass);
            if other == column && width > 0 {
                return at;
            }
            at += width;
            other += 1;
        }
        pass += 1;
    }
    at
}

/// How long the part of a table's records is that all of them have.
#[must_use]
pub const fn fixed_length(table: Table) -> usize {
    place(table, usize::MAX)
}

/// The number of the column of that name; does not compile where there is none.
const fn number(table: Table, name: &str) -> usize {
    let columns = table.columns();
    let mut column = 0;
    loop {
        let (other, wanted) = (columns[column].0.as_bytes(), name.as_bytes());
        let mut same = 0;
        while same < other.len() && same < wanted.len() && other[same] == wanted[same] {
            same += 1;
        }
        if same == other.len() && same == wanted.len() {
            return column;
        }
        column += 1;
    }
}

/// Where the column of that name is.
#[must_use]
pub const fn at(table: Table, name: &str) -> usize {
    place(table, number(table, name))
}

/// Where a text is.
#[derive(Clone, Copy, Debug)]
pub struct TextAt {
    /// Where it is said how far it reaches.
    end: usize,
    /// Where that is said of the text before it; `None` of the first.
    start: Option<usize>,
    /// From where on this is counted.
    base: usize,
}

/// Where the text of the column of that number is.
const fn text_of(table: Table, column: usize) -> TextAt {
    let columns = table.columns();
    let (mut start, mut other) = (None, 0);
    while other < column {
        if matches!(columns[other].1, Holds::Text(_)) {
            start = Some(place(table, other));
        }
        other += 1;
    }
    TextAt {
        end: place(table, column),
        start,
        base: fixed_length(table),
    }
}

/// Where the text of the column of that name is.
#[must_use]
pub const fn text_at(table: Table, name: &str) -> TextAt {
    text_of(table, number(table, name))
}

// Records are what this module made of them, whose bytes the engine keeps as they are: their places are there.

fn bytes<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&record[at..at + N]);
    bytes
}

/// A number of four bytes.
#[inline]
#[must_use]
pub fn int(record: &[u8], at: usize) -> i64 {
    i32::from_le_bytes(bytes(record, at)).into()
}

/// A number of four bytes that may be missing.
#[inline]
#[must_use]
pub fn int_or_null(record: &[u8], at: usize) -> Option<i64> {
    Some(int(record, at)).filter(|number| *number != i64::from(i32::MIN))
}

/// A number of eight bytes.
#[inline]
#[must_use]
pub fn large(record: &[u8], at: usize) -> i64 {
    i64::from_le_bytes(bytes(record, at))
}

/// A number of eight bytes that may be missing.
#[inline]
#[must_use]
pub fn large_or_null(record: &[u8], at: usize) -> Option<i64> {
    Some(large(record, at)).filter(|number| *number != i64::MIN)
}

/// A text of one length.
#[inline]
#[must_use]
pub fn fixed(record: &[u8], at: usize, length: usize) -> &str {
    // Only text goes in.
    std::str::from_utf8(&record[at..at + length]).unwrap_or_default()
}

/// A text of any length.
#[inline]
#[must_use]
pub fn text(record: &[u8], at: TextAt) -> &str {
    let reaches = |place| usize::from(u16::from_le_bytes(bytes(record, place)));
    let start = at.base + at.start.map_or(0, reaches);
    std::str::from_utf8(&record[start..at.base + reaches(at.end)]).unwrap_or_default()
}

/// A number as a column of four bytes has it.
#[inline]
pub fn narrow(number: i64) -> Result<i32> {
    i32::try_from(number).map_err(|_| {
        Error::new(
            ErrorKind::WrongValue,
            format!("{number} does not fit its column"),
        )
    })
}

/// Puts bytes into a record.
#[inline]
pub fn put<const N: usize>(record: &mut [u8], at: usize, bytes: [u8; N]) {
    record[at..at + N].copy_from_slice(&bytes);
}

/// Puts a number into four bytes.
#[inline]
pub fn put_int(record: &mut [u8], at: usize, number: i64) -> Result<()> {
    put(record, at, narrow(number)?.to_le_bytes());
    Ok(())
}

/// Says of a number of four bytes that it is missing.
#[inline]
pub fn put_no_int(record: &mut [u8], at: usize) {
    put(record, at, i32::MIN.to_le_bytes());
}

/// Puts a number into eight bytes.
#[inline]
pub fn put_large(record: &mut [u8], at: usize, number: i64) {
    put(record, at, number.to_le_bytes());
}

/// Says of a number of eight bytes that it is missing.
#[inline]
pub fn put_no_large(record: &mut [u8], at: usize) {
    put_large(record, at, i64::MIN);
}

/// Puts a text of one length into its place.
#[inline]
pub fn put_fixed(record: &mut [u8], at: usize, length: usize, text: &str) -> Result<()> {
    if text.len() != length {
        return Err(wrong(Value::Text(text)));
    }
    record[at..at + length].copy_from_slice(text.as_bytes());
    Ok(())
}

#[cold]
fn wrong(value: Value<'_>) -> Error {
    Error::new(
        ErrorKind::WrongValue,
        format!("{value:?} does not fit its column"),
    )
}

/// Makes a record of a row's values, in the order of the table's columns.
pub fn encode(table: Table, values: &[Value<'_>], record: &mut Vec<u8>) -> Result<()> {
    let base = fixed_length(table);
    record.clear();
    record.resize(base, 0);
    for (column, (_, holds)) in table.columns().iter().enumerate() {
        let at = place(table, column);
        match (holds, values.get(column).copied().unwrap_or(Value::Null)) {
            (Holds::Number | Holds::NumberOrNull, Value::Int(number)) => {
                put_int(record, at, number)?;
            }
            (Holds::NumberOrNull, Value::Null) => put_no_int(record, at),
            (Holds::Large | Holds::LargeOrNull, Value::Int(number)) => {
                put_large(record, at, number);
            }
            (Holds::LargeOrNull, Value::Null) => put_no_large(record, at),
            (Holds::Fixed(length), Value::Text(text)) => {
                put_fixed(record, at, usize::from(*length), text)?;
            }
            (Holds::Text(most), Value::Text(text)) if text.len() <= usize::from(*most) => {
                record.extend_from_slice(text.as_bytes());
                let end =
                    u16::try_from(record.len() - base).map_err(|_| wrong(Value::Text(text)))?;
                put(record, at, end.to_le_bytes());
            }
            (_, value) => return Err(wrong(value)),
        }
    }
    // A customer's data grow with payments: with room for the longest the record stays where it is.
    if let (Table::Customer, Some((_, Holds::Text(most))), Some(Value::Text(last))) =
        (table, table.columns().last(), values.last())
    {
        record.resize(record.len() + usize::from(*most) - last.len(), 0);
    }
    Ok(())
}

/// Replaces a record's last text, which the table must end with: gives the whole new record, which is no shorter.
pub fn with_last_text(record: &[u8], at: TextAt, text: &str, into: &mut Vec<u8>) -> Result<()> {
    let start = at
        .start
        .map_or(0, |place| u16::from_le_bytes(bytes(record, place)));
    let length = u16::try_from(text.len())
        .ok()
        .and_then(|length| start.checked_add(length));
    let end = length.ok_or_else(|| wrong(Value::Text(text)))?;
    into.clear();
    into.extend_from_slice(&record[..at.base + usize::from(start)]);
    into.extend_from_slice(text.as_bytes());
    into.resize(into.len().max(record.len()), 0);
    put(into, at.end, end.to_le_bytes());
    Ok(())
}

/// Shows a record's values, in the order of the table's columns.
pub fn decode(
    table: Table,
    record: &[u8],
    each: &mut dyn FnMut(&[Value<'_>]) -> Result<()>,
) -> Result<()> {
    let columns = table.columns().iter().enumerate();
    let values: Vec<Value<'_>> = columns
        .map(|(column, (_, holds))| {
            let at = place(table, column);
            match holds {
                Holds::Number => Value::Int(int(record, at)),
                Holds::NumberOrNull => int_or_null(record, at).map_or(Value::Null, Value::Int),
                Holds::Large => Value::Int(large(record, at)),
                Holds::LargeOrNull => large_or_null(record, at).map_or(Value::Null, Value::Int),
                Holds::Fixed(length) => Value::Text(fixed(record, at, usize::from(*length))),
                Holds::Text(_) => Value::Text(text(record, text_of(table, column))),
            }
        })
        .collect();
    each(&values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_tpcc::{Config, population};

    #[test]
    fn records_give_back_every_row_that_is_loaded() {
        let config = Config {
            items: 100,
            customers_per_district: 30,
            ..Config::new(1, 3)
        };
        let mut record = Vec::new();
        let mut rows = 0;
        for unit in 0..population::units(&config) {
            population::fill(&config, unit, |table, row| {
                encode(table, row, &mut record)?;
                rows += 1;
                decode(table, &record, &mut |again| {
                    assert_eq!(again, row, "{table:?}");
                    Ok(())
                })
            })
            .unwrap();
        }
        assert!(rows > 4_000, "{rows}");
    }

    #[test]
    fn what_does_not_fit_its_column_is_refused() {
        let mut record = Vec::new();
        let row = |number, name: &'static str| {
            [
                Value::Int(number),
                Value::Int(1),
                Value::Text(name),
                Value::Int(1),
                Value::Text(""),
            ]
        };
        assert!(encode(Table::Item, &row(1, "name"), &mut record).is_ok());
        assert!(encode(Table::Item, &row(1 << 40, "name"), &mut record).is_err());
        assert!(
            encode(
                Table::Item,
                &row(1, "a name of more than 24 letters"),
                &mut record
            )
            .is_err()
        );
        assert!(encode(Table::Item, &row(1, "name")[..4], &mut record).is_err());
        assert!(
            encode(
                Table::NewOrder,
                &[Value::Int(1), Value::Null, Value::Int(1)],
                &mut record
            )
            .is_err()
        );
    }

    #[test]
    fn what_transactions_change_together_stands_together() {
        let stock = |name| at(Table::Stock, name);
        assert_eq!(stock("s_ytd"), stock("s_quantity") + 4);
        assert_eq!(stock("s_order_cnt"), stock("s_ytd") + 8);
        assert_eq!(stock("s_remote_cnt"), stock("s_order_cnt") + 4);
        let customer = |name| at(Table::Customer, name);
        assert_eq!(customer("c_ytd_payment"), customer("c_balance") + 8);
        assert_eq!(customer("c_payment_cnt"), customer("c_ytd_payment") + 8);
        assert_eq!(customer("c_delivery_cnt"), customer("c_payment_cnt") + 4);
    }

    #[test]
    fn a_last_text_is_replaced_by_one_of_another_length() {
        let (mut record, mut longer) = (Vec::new(), Vec::new());
        let row = |data| {
            [
                Value::Int(7),
                Value::Int(1),
                Value::Text("name"),
                Value::Int(2),
                Value::Text(data),
            ]
        };
        encode(Table::Item, &row("short"), &mut record).unwrap();
        with_last_text(
            &record,
            text_at(Table::Item, "i_data"),
            "and much longer",
            &mut longer,
        )
        .unwrap();
        encode(Table::Item, &row("and much longer"), &mut record).unwrap();
        assert_eq!(longer, record);
        // What is longer than it has to be stays so.
        let kept = record.len();
        with_last_text(
            &longer,
            text_at(Table::Item, "i_data"),
            "short",
            &mut record,
        )
        .unwrap();
        assert_eq!(record.len(), kept);
        assert_eq!(text(&record, text_at(Table::Item, "i_data")), "short");
    }

    #[test]
    fn a_customers_record_has_room_for_the_longest_data() {
        let config = Config {
            items: 100,
            customers_per_district: 30,
            ..Config::new(1, 3)
        };
        let (mut record, mut longest) = (Vec::new(), Vec::new());
        let mut customers = 0;
        for unit in 0..population::units(&config) {
            population::fill(&config, unit, |table, row| {
                if table == Table::Customer {
                    encode(table, row, &mut record)?;
                    let data = "x".repeat(500);
                    with_last_text(&record, text_at(table, "c_data"), &data, &mut longest)?;
                    assert_eq!(longest.len(), record.len());
                    customers += 1;
                }
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(customers, 300);
    }
}
