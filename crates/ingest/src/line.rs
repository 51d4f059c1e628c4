//! A row as a line: `table,tag=value,tag=value field=1i,field=2.5 1451606400000000000`, the line protocol that
//! `InfluxDB` began and `QuestDB` took over.
//!
//! Within names and tag values a backslash stands before a comma, an equals sign or a space that belongs to them;
//! text of fields stands in double quotes, with a backslash before a quote or a backslash.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

/// Where the parts of a line lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The table's name, as it is written.
    pub table: &'a [u8],
    /// All tags, as they are written; empty where there are none.
    pub tags: &'a [u8],
    /// All fields, likewise.
    pub fields: &'a [u8],
    /// The time in ns since the epoch.
    pub time_ns: i64,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field<'a> {
    /// A whole number, `12i`.
    Int(&'a str),
    /// A number, `12` or `1.5`.
    Float(&'a str),
    /// `t`, `true` and so on.
    Bool(bool),
    /// Text in quotes.
    Text(Cow<'a, str>),
}

impl<'a> Line<'a> {
    /// Takes a line apart, without its end; says what is wrong with one that is none.
    pub fn parse(line: &'a [u8]) -> Result<Self, &'static str> {
        let head_end = end_of_word(line, b' ').ok_or("has no fields")?;
        let (head, rest) = (&line[..head_end], &line[head_end + 1..]);
        let fields_end = end_of_fields(rest).ok_or("has no time")?;
        let (fields, time) = (&rest[..fields_end], &rest[fields_end + 1..]);
        if fields.is_empty() {
            return Err("has no fields");
        }
        let time_ns = std::str::from_utf8(time)
            .ok()
            .and_then(|text| text.parse().ok())
            .ok_or("its time is no whole number of ns")?;
        let (table, tags) = match end_of_word(head, b',') {
            Some(end) => (&head[..end], &head[end + 1..]),
            None => (head, &head[head.len()..]),
        };
        if table.is_empty() {
            return Err("has no table");
        }
        Ok(Self {
            table,
            tags,
            fields,
            time_ns,
        })
    }

    /// The tags' names and values, as they are written.
    pub fn each_tag(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        Pairs {
            rest: self.tags,
            quoted: false,
        }
    }

    /// The fields' names and values, as they are written.
    pub fn each_field(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        Pairs {
            rest: self.fields,
            quoted: true,
        }
    }
}

/// The table of a line that is known to be one, and the value of its first tag, without taking all of it apart:
/// whose the row is decides who carries it. Empty where there is no tag.
#[must_use]
pub fn table_and_owner(line: &[u8]) -> (&[u8], &[u8]) {
    let end = end_of_word(line, b' ').unwrap_or(line.len());
    let head = &line[..end];
    let Some(comma) = end_of_word(head, b',') else {
        return (head, &head[end..]);
    };
    let tags = &head[comma + 1..];
    let tag = &tags[..end_of_word(tags, b',').unwrap_or(tags.len())];
    let value = end_of_word(tag, b'=').map_or(tag.len(), |equals| equals + 1);
    (&head[..comma], &tag[value..])
}

/// The time of a line, in ns; None where there is none.
#[must_use]
pub fn time_of(line: &[u8]) -> Option<i64> {
    let space = memchr::memrchr(b' ', line)?;
    std::str::from_utf8(&line[space + 1..]).ok()?.parse().ok()
}

struct Pairs<'a> {
    rest: &'a [u8],
    /// Whether values may be text in quotes.
    quoted: bool,
}

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let end = if self.quoted {
            end_of_value(self.rest)
        } else {
            end_of_word(self.rest, b',').unwrap_or(self.rest.len())
        };
        let pair = &self.rest[..end];
        self.rest = &self.rest[(end + 1).min(self.rest.len())..];
        let equals = end_of_word(pair, b'=').unwrap_or(pair.len());
        Some((&pair[..equals], &pair[(equals + 1).min(pair.len())..]))
    }
}

/// Where a word ends: the first such byte that no backslash stands before.
fn end_of_word(text: &[u8], end: u8) -> Option<usize> {
    let mut from = 0;
    loop {
        let found = from + memchr2(end, b'\\', &text[from..])?;
        if text[found] == end {
            return Some(found);
        }
        from = (found + 2).min(text.len());
    }
}

/// Where a field's value ends that begins with its name: at a comma outside of quotes.
fn end_of_value(text: &[u8]) -> usize {
    let mut quoted = false;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            b'"' => quoted = !quoted,
            b',' if !quoted => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// Where the fields end: at a space outside of quotes.
fn end_of_fields(text: &[u8]) -> Option<usize> {
    if memchr(b'"', text).is_none() {
        return end_of_word(text, b' ');
    }
    let mut quoted = false;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\\' => at += 1,
            b'"' => quoted = !quoted,
            b' ' if !quoted => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

/// A name or a tag's value as it is meant. What is no text is shown with its bytes replaced.
#[must_use]
pub fn plain(word: &[u8]) -> Cow<'_, str> {
    if memchr(b'\\', word).is_none() {
        return String::from_utf8_lossy(word);
    }
    let mut meant = Vec::with_capacity(word.len());
    let mut bytes = word.iter().copied();
    while let Some(byte) = bytes.next() {
        meant.push(if byte == b'\\' {
            bytes.next().unwrap_or(byte)
        } else {
            byte
        });
    }
    Cow::Owned(String::from_utf8_lossy(&meant).into_owned())
}

/// Writes a name or a tag's value so that it is read as it is meant.
pub fn put_word(into: &mut Vec<u8>, word: &str) {
    for byte in word.bytes() {
        if matches!(byte, b',' | b'=' | b' ' | b'\\') {
            into.push(b'\\');
        }
        into.push(byte);
    }
}

/// Writes text as a field's value.
pub fn put_text(into: &mut Vec<u8>, text: &str) {
    into.push(b'"');
    for byte in text.bytes() {
        if matches!(byte, b'"' | b'\\') {
            into.push(b'\\');
        }
        into.push(byte);
    }
    into.push(b'"');
}

/// What a field's value is; says what is wrong with one that is none.
pub fn field(value: &[u8]) -> Result<Field<'_>, &'static str> {
    let text = std::str::from_utf8(value).map_err(|_| "a field is no text in UTF-8")?;
    match value {
        b"t" | b"T" | b"true" | b"True" | b"TRUE" => return Ok(Field::Bool(true)),
        b"f" | b"F" | b"false" | b"False" | b"FALSE" => return Ok(Field::Bool(false)),
        [b'"', inner @ .., b'"'] => return Ok(Field::Text(plain(inner))),
        _ => {}
    }
    if let Some(number) = text.strip_suffix('i') {
        return number
            .parse::<i64>()
            .map(|_| Field::Int(number))
            .map_err(|_| "a field is no whole number");
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Field::Float(text)),
        _ => Err("a field is no number"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CPU: &[u8] = b"cpu,hostname=host_0,region=eu\\ west usage_user=58i,load=2.5,up=t,note=\"a, \\\"b\\\" c\" 1451606400000000000";

    #[test]
    fn a_line_is_taken_apart_and_what_is_escaped_is_read_as_meant() {
        let line = Line::parse(CPU).unwrap();
        assert_eq!(
            (line.table, line.time_ns),
            (b"cpu".as_slice(), 1_451_606_400_000_000_000)
        );
        let tags: Vec<_> = line
            .each_tag()
            .map(|(name, value)| (plain(name), plain(value)))
            .collect();
        assert_eq!(
            tags,
            [
                ("hostname".into(), "host_0".into()),
                ("region".into(), "eu west".into())
            ]
        );
        let fields: Vec<_> = line
            .each_field()
            .map(|(_, value)| field(value).unwrap())
            .collect();
        assert_eq!(
            fields,
            [
                Field::Int("58"),
                Field::Float("2.5"),
                Field::Bool(true),
                Field::Text("a, \"b\" c".into())
            ]
        );
        assert_eq!(
            table_and_owner(CPU),
            (b"cpu".as_slice(), b"host_0".as_slice())
        );
        assert_eq!(time_of(CPU), Some(1_451_606_400_000_000_000));
    }

    #[test]
    fn what_is_no_line_is_told() {
        for (text, wrong) in [
            ("cpu", "has no fields"),
            ("cpu,a=b", "has no fields"),
            ("cpu,a=b x=1i", "has no time"),
            ("cpu,a=b x=1i soon", "its time is no whole number of ns"),
            (" x=1i 5", "has no table"),
            ("cpu  5", "has no fields"),
        ] {
            assert_eq!(Line::parse(text.as_bytes()), Err(wrong), "{text}");
        }
        for wrong in ["1.5i", "x", "\"open", "inf", ""] {
            assert!(field(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    proptest! {
        /// Whatever a name, a tag or a text holds but an end of line, it comes back as it was.
        #[test]
        fn what_was_written_is_read(
            table in "[^\\r\\n\0]{1,12}",
            tags in prop::collection::vec(("[^\\r\\n\0]{1,8}", "[^\\r\\n\0]{1,8}"), 0..4),
            numbers in prop::collection::vec(("[^\\r\\n\0\"]{1,8}", any::<i64>()), 1..4),
            text in "[^\\r\\n\0]{0,12}",
            time in any::<i64>(),
        ) {
            let mut line = Vec::new();
            put_word(&mut line, &table);
            for (name, value) in &tags {
                line.push(b',');
                put_word(&mut line, name);
                line.push(b'=');
                put_word(&mut line, value);
            }
            line.push(b' ');
            for (name, value) in &numbers {
                put_word(&mut line, name);
                line.extend_from_slice(format!("={value}i,").as_bytes());
            }
            line.extend_from_slice(b"text=");
            put_text(&mut line, &text);
            line.extend_from_slice(format!(" {time}").as_bytes());
            let read = Line::parse(&line).unwrap();
            prop_assert_eq!(plain(read.table), table.as_str());
            prop_assert_eq!(read.time_ns, time);
            prop_assert_eq!(time_of(&line), Some(time));
            let found: Vec<_> = read.each_tag().map(|(name, value)| (plain(name).into_owned(), plain(value).into_owned())).collect();
            prop_assert_eq!(&found, &tags);
            let (_, owner) = table_and_owner(&line);
            prop_assert_eq!(plain(owner), tags.first().map_or("", |(_, value)| value.as_str()));
            let fields: Vec<_> = read.each_field().map(|(name, value)| (plain(name), field(value).unwrap())).collect();
            prop_assert_eq!(fields.len(), numbers.len() + 1);
            for ((name, value), (known, number)) in fields.iter().zip(&numbers) {
                prop_assert_eq!(name, known.as_str());
                let number = number.to_string();
                prop_assert_eq!(value, &Field::Int(&number));
            }
            prop_assert_eq!(&fields[numbers.len()].1, &Field::Text(text.as_str().into()));
        }

        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(line) = Line::parse(&bytes) {
                for (_, value) in line.each_field().chain(line.each_tag()) {
                    let _ = field(value);
                }
            }
            let _ = table_and_owner(&bytes);
        }
    }
}
