//! Rows that go together, and counts of rows by table.

/// Rows by table, at the tables' places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts(Vec<u64>);

impl Counts {
    /// Adds so many rows of a table.
    pub fn add(&mut self, table: usize, rows: u64) {
        if self.0.len() <= table {
            self.0.resize(table + 1, 0);
        }
        self.0[table] += rows;
    }

    /// Adds those of `other`.
    pub fn add_all(&mut self, other: &Self) {
        for (table, &rows) in other.0.iter().enumerate() {
            self.add(table, rows);
        }
    }

    /// Those of one table.
    #[must_use]
    pub fn of(&self, table: usize) -> u64 {
        self.0.get(table).copied().unwrap_or(0)
    }

    /// Those of all tables.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// What is left of them after `other`.
    #[must_use]
    pub fn without(&self, other: &Self) -> Self {
        Self(
            (0..self.0.len())
                .map(|table| self.of(table).saturating_sub(other.of(table)))
                .collect(),
        )
    }
}

/// Rows that are sent together, of whatever tables.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// Their lines, each with its end.
    pub text: Vec<u8>,
    /// Where each line ends, behind its end, and its table.
    pub ends: Vec<(u32, u16)>,
    /// By table.
    pub counts: Counts,
    /// How many rows had been made when its last one was, over all workers: when it is due follows from that.
    pub made: u64,
}

impl Batch {
    /// Adds a line.
    pub fn push(&mut self, line: &[u8], table: u16) {
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
        // A batch of more than 4 GiB is refused at the door.
        self.ends
            .push((u32::try_from(self.text.len()).unwrap_or(u32::MAX), table));
        self.counts.add(usize::from(table), 1);
    }

    /// How many rows it has.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.ends.len() as u64
    }

    /// Its lines, without their ends, and the place of each one's table.
    pub fn lines(&self) -> impl Iterator<Item = (&[u8], usize)> {
        let mut begin = 0;
        self.ends.iter().map(move |&(end, table)| {
            let line = &self.text[begin..end as usize - 1];
            begin = end as usize;
            (line, usize::from(table))
        })
    }
}
