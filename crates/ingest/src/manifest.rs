//! What is known of packed data: counted as they were packed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use memchr::memchr;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::line::{self, Field, Line};
use crate::{DATA, MANIFEST};

/// The version of the manifest's format.
const FORMAT: u32 = 1;

/// How the text that was packed says its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// The line protocol: the one that dyno's own loader reads, and TSBS's for `QuestDB`.
    Ilp,
    /// TSBS's for `CrateDB`: a header of the tables up to an empty line, then a row a line with tabs.
    Cratedb,
    /// TSBS's for `TimescaleDB`: the same header, then a line of tags and a line of values for each row.
    Timescaledb,
}

impl Format {
    /// By the name that it has on a command line.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "ilp" => Some(Self::Ilp),
            "cratedb" => Some(Self::Cratedb),
            "timescaledb" => Some(Self::Timescaledb),
            _ => None,
        }
    }
}

/// What a table's rows have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Table {
    /// How many there are.
    pub rows: u64,
    /// Their values, without tags and times.
    pub metrics: u64,
    /// The names of their tags, in the order in which they first appeared. Of the line protocol alone.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The names and types of their fields, likewise: `int`, `float`, `bool` or `text`.
    #[serde(default)]
    pub fields: Vec<(String, String)>,
}

/// What is known of packed data.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Manifest {
    format: u32,
    /// How they are written.
    pub text: Format,
    /// From what they were made, in the words of whoever asked.
    pub about: Value,
    /// Of the text.
    pub bytes: u64,
    /// Of the file.
    pub packed_bytes: u64,
    /// The SHA-256 of the text.
    pub sha256: String,
    /// Of all tables.
    pub rows: u64,
    /// Of all tables.
    pub metrics: u64,
    /// By name.
    pub tables: BTreeMap<String, Table>,
}

impl Manifest {
    /// Of no data.
    #[must_use]
    pub fn nothing() -> Self {
        Counter::new(Format::Ilp).manifest(Value::Null, (0, 0), String::new())
    }

    /// Reads the one of a folder.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let path = folder.join(MANIFEST);
        let text = std::fs::read_to_string(&path).map_err(|error| {
            format!(
                "{}: cannot be read ({error}), expected packed data",
                path.display()
            )
        })?;
        let manifest: Self = serde_json::from_str(&text).map_err(|error| {
            format!(
                "{}: is no manifest of packed data ({error})",
                path.display()
            )
        })?;
        if manifest.format != FORMAT {
            return Err(format!(
                "{}: format {} is not known to this version, expected {FORMAT}",
                path.display(),
                manifest.format
            ));
        }
        let size = std::fs::metadata(folder.join(DATA)).map_or(0, |data| data.len());
        if size != manifest.packed_bytes {
            return Err(format!(
                "{}: has {size} bytes, {} were packed: remove the folder, and it is made anew",
                folder.join(DATA).display(),
                manifest.packed_bytes
            ));
        }
        Ok(manifest)
    }
}

/// The text that was packed.
pub fn unpack(folder: &Path) -> io::Result<impl Read + use<>> {
    zstd::stream::read::Decoder::new(File::open(folder.join(DATA))?)
}

/// Counts rows as their text goes by.
#[derive(Debug)]
pub struct Counter {
    text: Format,
    tables: BTreeMap<String, Table>,
    /// Whether the header is over, of formats that have one.
    in_rows: bool,
    lines: u64,
}

impl Counter {
    /// Nothing yet.
    #[must_use]
    pub fn new(text: Format) -> Self {
        Self {
            text,
            tables: BTreeMap::new(),
            in_rows: text == Format::Ilp,
            lines: 0,
        }
    }

    /// Counts a line, without its end; says what is wrong with one that does not belong there.
    pub fn line(&mut self, line: &[u8]) -> Result<(), String> {
        self.lines += 1;
        self.one(line).map_err(|wrong| {
            let shown = String::from_utf8_lossy(&line[..line.len().min(80)]).into_owned();
            format!("line {} of the data {wrong}: {shown}", self.lines)
        })
    }

    fn one(&mut self, line: &[u8]) -> Result<(), &'static str> {
        if !self.in_rows {
            self.in_rows = line.is_empty();
            return Ok(());
        }
        match self.text {
            Format::Ilp => self.ilp(line),
            Format::Cratedb => {
                let mut parts = line.split(|&byte| byte == b'\t');
                let name = parts
                    .next()
                    .filter(|name| !name.is_empty())
                    .ok_or("has no table")?;
                // The tags, the time, then the values.
                let values = parts.count().checked_sub(2).filter(|&values| values > 0);
                self.row(name, values.ok_or("has no values")? as u64);
                Ok(())
            }
            Format::Timescaledb if line.starts_with(b"tags,") => Ok(()),
            Format::Timescaledb => {
                let comma = memchr(b',', line).ok_or("has no values")?;
                let commas = memchr::memchr_iter(b',', &line[comma + 1..]).count();
                self.row(&line[..comma], commas as u64);
                Ok(())
            }
        }
    }

    fn row(&mut self, name: &[u8], metrics: u64) {
        let table = self.table(name);
        table.rows += 1;
        table.metrics += metrics;
    }

    fn table(&mut self, name: &[u8]) -> &mut Table {
        self.tables
            .entry(line::plain(name).into_owned())
            .or_default()
    }

    fn ilp(&mut self, text: &[u8]) -> Result<(), &'static str> {
        let parsed = Line::parse(text)?;
        let table = self.table(parsed.table);
        table.rows += 1;
        for (number, (name, _)) in parsed.each_tag().enumerate() {
            if table
                .tags
                .get(number)
                .is_none_or(|known| known.as_bytes() != name)
            {
                let name = line::plain(name);
                if !table.tags.iter().any(|known| *known == name) {
                    table.tags.push(name.into_owned());
                }
            }
        }
        for (number, (name, value)) in parsed.each_field().enumerate() {
            table.metrics += 1;
            let kind = match line::field(value)? {
                Field::Int(_) => "int",
                Field::Float(_) => "float",
                Field::Bool(_) => "bool",
                Field::Text(_) => "text",
            };
            let place = match table.fields.get(number) {
                Some((known, _)) if known.as_bytes() == name => Some(number),
                _ => {
                    let name = line::plain(name);
                    table.fields.iter().position(|(known, _)| *known == name)
                }
            };
            match place {
                None => table
                    .fields
                    .push((line::plain(name).into_owned(), kind.to_owned())),
                // A whole number among others is one of them.
                Some(place) if table.fields[place].1 == "int" && kind == "float" => {
                    kind.clone_into(&mut table.fields[place].1);
                }
                Some(place)
                    if table.fields[place].1 == kind
                        || (table.fields[place].1 == "float" && kind == "int") => {}
                Some(_) => return Err("has a field of another type than before"),
            }
        }
        Ok(())
    }

    /// What was counted.
    #[must_use]
    pub fn manifest(
        self,
        about: Value,
        (bytes, packed_bytes): (u64, u64),
        sha256: String,
    ) -> Manifest {
        Manifest {
            format: FORMAT,
            text: self.text,
            about,
            bytes,
            packed_bytes,
            sha256,
            rows: self.tables.values().map(|table| table.rows).sum(),
            metrics: self.tables.values().map(|table| table.metrics).sum(),
            tables: self.tables,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: Format, lines: &str) -> Result<Manifest, String> {
        let mut counter = Counter::new(text);
        for line in lines.lines() {
            counter.line(line.as_bytes())?;
        }
        Ok(counter.manifest(Value::Null, (0, 0), String::new()))
    }

    #[test]
    fn rows_and_values_of_each_format_are_counted_by_table() {
        let header = "tags,hostname string,region string\ncpu,user,system\nmem,free\n\n";
        for (text, lines) in [
            (
                Format::Ilp,
                "cpu,hostname=a,region=b user=1i,system=2i 5\nmem,hostname=a,region=b free=1.5 5\ncpu,hostname=b user=1i,system=3i 5".to_owned(),
            ),
            (
                Format::Cratedb,
                format!("{header}cpu\t{{\"hostname\":\"a\"}}\t5\t1\t2\nmem\t{{}}\t5\t1.5\ncpu\t{{}}\t5\t1\t3"),
            ),
            (
                Format::Timescaledb,
                format!("{header}tags,hostname=a\ncpu,5,1,2\ntags,hostname=a\nmem,5,1.5\ntags,hostname=b\ncpu,5,1,3"),
            ),
        ] {
            let manifest = counted(text, &lines).unwrap();
            assert_eq!((manifest.rows, manifest.metrics), (3, 5), "{text:?}");
            assert_eq!((manifest.tables["cpu"].rows, manifest.tables["cpu"].metrics), (2, 4));
            assert_eq!(manifest.tables["mem"].rows, 1);
        }
    }

    #[test]
    fn columns_are_those_of_all_rows_and_a_whole_number_among_others_is_one_of_them() {
        let manifest = counted(
            Format::Ilp,
            "t,a=1 x=1i 5\nt,b=1 x=1.5,y=t 6\nt,a=1 y=f,x=2i 7",
        )
        .unwrap();
        let table = &manifest.tables["t"];
        assert_eq!(table.tags, ["a", "b"]);
        let pairs: Vec<_> = table
            .fields
            .iter()
            .map(|(name, kind)| (name.as_str(), kind.as_str()))
            .collect();
        assert_eq!(pairs, [("x", "float"), ("y", "bool")]);
    }

    #[test]
    fn what_does_not_belong_is_told_with_its_line() {
        let wrong = counted(Format::Ilp, "t x=1i 5\nt x=1i").unwrap_err();
        assert_eq!(wrong, "line 2 of the data has no time: t x=1i");
        let wrong = counted(Format::Ilp, "t x=1i 5\nt x=\"a\" 5").unwrap_err();
        assert!(wrong.contains("of another type"), "{wrong}");
        let wrong = counted(Format::Cratedb, "tags,a string\n\ncpu\t{}\t5").unwrap_err();
        assert!(
            wrong.starts_with("line 3 of the data has no values"),
            "{wrong}"
        );
    }
}
