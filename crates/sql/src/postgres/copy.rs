//! Rows in the text format of `COPY`: a line a row, a tab between columns
//! (<https://www.postgresql.org/docs/15/sql-copy.html>).

use std::fmt::Write;

use bytes::{BufMut, BytesMut};

use crate::Value;

/// Writes a row.
pub fn put_row(output: &mut BytesMut, values: &[Value<'_>]) {
    for (number, value) in values.iter().enumerate() {
        if number > 0 {
            output.put_u8(b'\t');
        }
        match value {
            Value::Null => output.extend_from_slice(b"\\N"),
            // Memory is all that it could lack, and that would end the program.
            Value::Int(value) => drop(write!(output, "{value}")),
            Value::Text(text) => put_text(output, text.as_bytes()),
        }
    }
    output.put_u8(b'\n');
}

const fn is_special(byte: u8) -> bool {
    matches!(byte, b'\\' | b'\t' | b'\n' | b'\r')
}

fn put_text(output: &mut BytesMut, text: &[u8]) {
    // Without an early end, so that many bytes are looked at in one step.
    let plain = !text
        .iter()
        .fold(false, |found, byte| found | is_special(*byte));
    if plain {
        return output.extend_from_slice(text);
    }
    for &byte in text {
        match byte {
            b'\t' => output.extend_from_slice(b"\\t"),
            b'\n' => output.extend_from_slice(b"\\n"),
            b'\r' => output.extend_from_slice(b"\\r"),
            b'\\' => output.extend_from_slice(b"\\\\"),
            _ => output.put_u8(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(values: &[Value<'_>]) -> String {
        let mut output = BytesMut::new();
        put_row(&mut output, values);
        String::from_utf8(output.to_vec()).unwrap()
    }

    #[test]
    fn rows_are_lines_and_what_would_cut_them_is_escaped() {
        assert_eq!(
            line(&[
                Value::Int(-7),
                Value::Null,
                Value::Text("plain ä"),
                Value::Text("")
            ]),
            "-7\t\\N\tplain ä\t\n"
        );
        assert_eq!(
            line(&[
                Value::Text("\\N"),
                Value::Text("a\tb\nc\rd\\e"),
                Value::Text("\\.")
            ]),
            "\\\\N\ta\\tb\\nc\\rd\\\\e\t\\\\.\n"
        );
    }
}
