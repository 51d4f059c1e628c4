//! The invariants of a whole store, looked at.

use std::collections::BTreeSet;

use super::Engine;
use crate::assembly::Assembly;
use crate::catalogue::{CATALOGUE, Index, Table};
use crate::heap;
use crate::pages::Pages;
use crate::{Error, PageId, Result, Rid};

/// What a store was found to have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// Records of tables.
    pub records: u64,
    /// Entries of indexes.
    pub entries: u64,
    /// Pages that these are in, and the catalogue.
    pub used: u64,
    /// Pages that are free.
    pub free: u64,
    /// Pages that were neither used nor free, and are free now. There are some where a transaction that took pages for what was
    /// then not to be had no end, or one of its own making.
    pub lost: u64,
}

/// Pages that were seen.
#[derive(Default)]
struct Seen(BTreeSet<PageId>);

impl Seen {
    fn add(&mut self, page: PageId) -> Result<()> {
        if self.0.insert(page) {
            Ok(())
        } else {
            Err(Error::Corrupt(Some(page), "it is used twice".into()))
        }
    }
}

impl<A: Assembly> Engine<A> {
    /// Looks at every invariant: trees are sorted and whole, each entry has a record of its table, each record has one entry in each
    /// index of its table, no page is used twice, none is free and used. Pages that nobody uses are freed. No session may be
    /// open where only one may be at a time, and no transaction under way elsewhere.
    pub fn verify(&self) -> Result<Verified> {
        let _session = self.session()?;
        let mut found = Verified::default();
        let mut seen = Seen::default();
        let own = self
            .directory
            .table(CATALOGUE)
            .ok_or(Error::Missing("the catalogue"))?;
        self.heap_of(own, &mut seen)?;
        for table in self.directory.tables() {
            let records = self.heap_of(table, &mut seen)?;
            found.records += records.len() as u64;
            for index in self
                .directory
                .indexes()
                .filter(|index| index.table == table.id)
            {
                found.entries += self.compare(index, &records, &mut seen)?;
            }
        }
        found.used = seen.0.len() as u64;
        let census = self.pages.census()?;
        found.free = census.free.len() as u64;
        for page in census.free {
            seen.add(page)?;
        }
        for page in census.all {
            if !seen.0.remove(&page) {
                self.pages.free(page, &*self.log)?;
                found.lost += 1;
            }
        }
        match seen.0.first() {
            Some(page) => Err(Error::Corrupt(
                Some(*page),
                "it is used, but was never taken".into(),
            )),
            None => Ok(found),
        }
    }

    /// The records of a table, sorted.
    fn heap_of(&self, table: &Table<A::Latch>, seen: &mut Seen) -> Result<Vec<Rid>> {
        let heap::Found { pages, records } = table.heap.verify(&self.pages)?;
        pages.into_iter().try_for_each(|page| seen.add(page))?;
        Ok(records)
    }

    /// Whether an index has an entry for each of these records and no others. Gives how many.
    fn compare(&self, index: &Index, records: &[Rid], seen: &mut Seen) -> Result<u64> {
        let mut entries = Vec::with_capacity(records.len());
        let add = |_: &[u8], rid| {
            entries.push(rid);
            Ok(())
        };
        self.tree(index).verify(|page| seen.add(page), add)?;
        entries.sort_unstable();
        if entries != records {
            let missing = records
                .iter()
                .find(|rid| entries.binary_search(rid).is_err());
            let what = match missing {
                Some(rid) => format!(
                    "has no entry for record {} of page {}",
                    rid.slot(),
                    rid.page().0
                ),
                None => "has an entry for no record, or two for one".into(),
            };
            return Err(Error::Corrupt(None, format!("index {} {what}", index.id.0)));
        }
        Ok(entries.len() as u64)
    }
}
