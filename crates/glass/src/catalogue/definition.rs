//! Tables and indexes as records.
//!
//! Little endian. A table: 1, number (2), first page (8), name. An index: 2, number (2), root (8), table (2), how many fields its keys have
//! (1), for each its type (1) and length (2), name.

use crate::keys::{Field, Shape};
use crate::{Error, IndexId, PageId, Result, TableId};

/// What a record of the catalogue says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Definition {
    /// There is a table.
    Table {
        /// Its number.
        id: TableId,
        /// The first page of its heap.
        first: PageId,
        /// Its name.
        name: String,
    },
    /// There is an index.
    Index {
        /// Its number.
        id: IndexId,
        /// Its root.
        root: PageId,
        /// Whose records it finds.
        table: TableId,
        /// Its keys.
        shape: Shape,
        /// Its name.
        name: String,
    },
}

const TABLE: u8 = 1;
const INDEX: u8 = 2;

/// The longest name, in bytes: a definition has to fit into a page.
const LONGEST_NAME: usize = 255;

impl Definition {
    /// As a record. [`Error::Refused`] where the name is none or too long, or the key has too many fields.
    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let (Self::Table { name, .. } | Self::Index { name, .. }) = self;
        if name.is_empty() || name.len() > LONGEST_NAME {
            return Err(Error::Refused(format!(
                "a name of {} bytes: 1 to {LONGEST_NAME} are allowed",
                name.len()
            )));
        }
        let mut record = Vec::new();
        match self {
            Self::Table { id, first, .. } => {
                record.push(TABLE);
                record.extend(id.0.to_le_bytes());
                record.extend(first.0.to_le_bytes());
            }
            Self::Index {
                id,
                root,
                table,
                shape,
                ..
            } => {
                record.push(INDEX);
                record.extend(id.0.to_le_bytes());
                record.extend(root.0.to_le_bytes());
                record.extend(table.0.to_le_bytes());
                let count = u8::try_from(shape.fields().len())
                    .map_err(|_| Error::Refused("a key of more than 255 fields".into()))?;
                record.push(count);
                for field in shape.fields() {
                    let (kind, length) = match *field {
                        Field::Int => (0, 0),
                        Field::Long => (1, 0),
                        Field::Text(length) => (2, length),
                    };
                    record.push(kind);
                    record.extend(length.to_le_bytes());
                }
            }
        }
        record.extend(name.as_bytes());
        Ok(record)
    }

    /// What a record says.
    pub(crate) fn decode(record: &[u8]) -> Result<Self> {
        Reader(record)
            .definition()
            .ok_or_else(|| Error::Corrupt(None, "a record of the catalogue says nothing".into()))
    }
}

/// What is left of a record.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const LENGTH: usize>(&mut self) -> Option<[u8; LENGTH]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn definition(mut self) -> Option<Definition> {
        let [kind] = self.take()?;
        let id = u16::from_le_bytes(self.take()?);
        let page = PageId(u64::from_le_bytes(self.take()?));
        match kind {
            TABLE => Some(Definition::Table {
                id: TableId(id),
                first: page,
                name: self.name()?,
            }),
            INDEX => Some(Definition::Index {
                id: IndexId(id),
                root: page,
                table: TableId(u16::from_le_bytes(self.take()?)),
                shape: self.shape()?,
                name: self.name()?,
            }),
            _ => None,
        }
    }

    fn shape(&mut self) -> Option<Shape> {
        let [count] = self.take()?;
        let fields = (0..count)
            .map(|_| self.field())
            .collect::<Option<Vec<_>>>()?;
        Some(Shape::new(&fields))
    }

    fn field(&mut self) -> Option<Field> {
        let [kind] = self.take()?;
        let length = u16::from_le_bytes(self.take()?);
        match kind {
            0 => Some(Field::Int),
            1 => Some(Field::Long),
            2 => Some(Field::Text(length)),
            _ => None,
        }
    }

    fn name(self) -> Option<String> {
        String::from_utf8(self.0.into())
            .ok()
            .filter(|name| !name.is_empty())
    }
}
