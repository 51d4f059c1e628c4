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

    /// How many places of tables it has, though some may have no rows.
    #[must_use]
    pub fn tables(&self) -> usize {
        self.0.len()
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
    /// Of these, those that are there already: each stands right behind its first.
    pub again: Counts,
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

    /// Rows of a table that are not among those that were taken, each once; `left` are their places among the rows of
    /// that table. A row is taken if it was at any time that it came.
    #[must_use]
    pub fn doubtful(&self, table: usize, left: &[usize]) -> Vec<&[u8]> {
        let rows: Vec<&[u8]> = self
            .lines()
            .filter(|&(_, of)| of == table)
            .map(|(line, _)| line)
            .collect();
        let mut found = Vec::new();
        let mut begin = 0;
        while begin < rows.len() {
            let same = rows[begin..]
                .iter()
                .take_while(|row| **row == rows[begin])
                .count();
            if (begin..begin + same).all(|place| left.binary_search(&place).is_ok()) {
                found.push(rows[begin]);
            }
            begin += same;
        }
        found
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_in_doubt_where_no_time_that_it_came_was_taken() {
        let mut batch = Batch::default();
        for (line, table) in [
            ("a", 0),
            ("x", 1),
            ("b", 0),
            ("b", 0),
            ("y", 1),
            ("c", 0),
            ("c", 0),
        ] {
            batch.push(line.as_bytes(), table);
        }
        let doubtful = |table, left: &[usize]| {
            let found = batch.doubtful(table, left);
            found
                .into_iter()
                .map(|row| String::from_utf8_lossy(row).into_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(doubtful(0, &[0, 1, 2, 3, 4]), ["a", "b", "c"]);
        assert_eq!(doubtful(0, &[2, 3, 4]), ["c"]);
        assert_eq!(doubtful(0, &[4]), [""; 0]);
        assert_eq!(doubtful(1, &[1]), ["y"]);
    }
}
