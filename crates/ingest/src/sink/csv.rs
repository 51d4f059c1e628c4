//! Files of comma-separated values, one for each table and worker: what an embedded store copies in by itself.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dyno_sql::{Error, ErrorKind, Interrupter, Result};

use super::row::{Cell, Cells, put_date_time};
use super::{Known, Sink};
use crate::batch::{Batch, Counts};
use crate::job::Columns;

/// The files of a worker.
pub struct Csv {
    tables: Arc<[Known]>,
    files: Vec<BufWriter<File>>,
    interrupter: Interrupter,
    line: String,
}

impl Csv {
    /// Makes them, with a line of names each; the folder is made if need be.
    pub fn create(
        folder: &Path,
        columns: &Columns,
        tables: &Arc<[Known]>,
        worker: usize,
    ) -> Result<Self> {
        std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        let files = tables
            .iter()
            .map(|(name, table)| {
                let path = folder.join(format!("{name}-{worker}.csv"));
                let mut file = File::create(&path)
                    .map(BufWriter::new)
                    .map_err(|error| failed(&path, &error))?;
                let fields = table.fields.iter().map(|(field, _)| field);
                let names: Vec<&str> = std::iter::once(&columns.time)
                    .chain(&table.tags)
                    .chain(fields)
                    .map(String::as_str)
                    .collect();
                writeln!(file, "{}", names.join(",")).map_err(|error| failed(&path, &error))?;
                Ok(file)
            })
            .collect::<Result<_>>()?;
        Ok(Self {
            tables: Arc::clone(tables),
            files,
            interrupter: Interrupter::default(),
            line: String::new(),
        })
    }
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::StorageFull => ErrorKind::DiskFull,
        _ => ErrorKind::Io,
    };
    Error::new(kind, format!("{}: {error}", path.display()))
}

fn put(line: &mut String, cell: &Cell<'_>) {
    match cell {
        Cell::Null => {}
        Cell::Number(digits) => line.push_str(digits),
        Cell::Bool(value) => line.push_str(if *value { "true" } else { "false" }),
        Cell::Text(text) if text.contains([',', '"', '\n', '\r']) || text.is_empty() => {
            line.push('"');
            line.push_str(&text.replace('"', "\"\""));
            line.push('"');
        }
        Cell::Text(text) => line.push_str(text),
    }
}

impl Sink for Csv {
    fn send(&mut self, batch: &Batch, done: &mut Counts) -> Result<()> {
        for (text, table) in batch.lines() {
            let cells = Cells::of(text, &self.tables[table])?;
            self.line.clear();
            put_date_time(&mut self.line, cells.time_ns);
            for cell in cells.tags.iter().chain(&cells.fields) {
                self.line.push(',');
                put(&mut self.line, cell);
            }
            self.line.push('\n');
            self.files[table]
                .write_all(self.line.as_bytes())
                .map_err(|error| failed(&PathBuf::from(&self.tables[table].0), &error))?;
            done.add(table, 1);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        for (file, (name, _)) in self.files.iter_mut().zip(self.tables.iter()) {
            file.flush()
                .map_err(|error| failed(&PathBuf::from(name), &error))?;
        }
        Ok(())
    }

    fn reconnect(&mut self) -> Result<()> {
        Ok(())
    }

    fn interrupter(&self) -> Interrupter {
        self.interrupter.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_cut_a_value_is_quoted_and_nothing_is_no_empty_text() {
        let mut line = String::new();
        for cell in [
            Cell::Null,
            Cell::Text("".into()),
            Cell::Text("a,\"b\"".into()),
            Cell::Text("plain".into()),
            Cell::Number("1.5"),
            Cell::Bool(true),
        ] {
            put(&mut line, &cell);
            line.push(';');
        }
        assert_eq!(line, ";\"\";\"a,\"\"b\"\"\";plain;1.5;true;");
    }
}
