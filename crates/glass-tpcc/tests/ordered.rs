//! TPC-C on ordered maps, of the standard library's own.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeMap;

use common::{assert_same_as_sqlite, assert_same_rows, small};
use dyno_glass_tpcc::ordered::{
    Access, Direction, Loader, Map, Maps, OrderedStore, Rows, Visit, first_history,
};
use dyno_sql::{Error, ErrorKind, Result};
use dyno_tpcc::{Config, Inputs, Kind, Store as _};

type Bytes = Vec<u8>;

/// Maps in memory, with what a transaction found before it changed it.
#[derive(Default)]
struct Trees {
    maps: [BTreeMap<Bytes, Bytes>; Map::ALL.len()],
    undo: Vec<(Map, Bytes, Option<Bytes>)>,
    transacts: bool,
    history: u64,
}

impl Trees {
    fn write(&mut self, map: Map, key: &[u8], value: Option<&[u8]>) -> bool {
        let tree = &mut self.maps[map.number()];
        let before = match value {
            Some(value) => tree.insert(key.to_vec(), value.to_vec()),
            None => tree.remove(key),
        };
        let there = before.is_some();
        self.undo.push((map, key.to_vec(), before));
        there
    }
}

impl Maps for Trees {
    fn begin(&mut self) -> Result<()> {
        self.undo.clear();
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.begin()
    }

    fn rollback(&mut self) -> Result<()> {
        if !self.transacts {
            return Err(Error::new(ErrorKind::Refused, "nothing is undone"));
        }
        for (map, key, before) in std::mem::take(&mut self.undo).into_iter().rev() {
            let tree = &mut self.maps[map.number()];
            match before {
                Some(value) => tree.insert(key, value),
                None => tree.remove(&key),
            };
        }
        Ok(())
    }

    fn get(&mut self, map: Map, key: &[u8], _: Access) -> Result<Option<&[u8]>> {
        Ok(self.maps[map.number()].get(key).map(Vec::as_slice))
    }

    fn put(&mut self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        assert!(self.write(map, key, Some(value)), "{map:?}: {key:?}");
        Ok(())
    }

    fn insert(&mut self, map: Map, key: &[u8], value: &[u8]) -> Result<()> {
        assert!(!self.write(map, key, Some(value)), "{map:?}: {key:?}");
        Ok(())
    }

    fn remove(&mut self, map: Map, key: &[u8]) -> Result<bool> {
        Ok(self.write(map, key, None))
    }

    fn scan(
        &mut self,
        map: Map,
        (from, to): (&[u8], &[u8]),
        _: Access,
        direction: Direction,
        each: Visit<'_>,
    ) -> Result<()> {
        let mut range = self.maps[map.number()].range(from.to_vec()..=to.to_vec());
        while let Some((key, value)) = match direction {
            Direction::Forwards => range.next(),
            Direction::Backwards => range.next_back(),
        } {
            if each(key, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn next_history(&mut self) -> u64 {
        self.history += 1;
        self.history
    }
}

fn loaded(config: &Config, transacts: bool) -> OrderedStore<Trees> {
    let mut store = OrderedStore::new(Trees {
        transacts,
        ..Trees::default()
    });
    let loader = Loader::new(config);
    while loader.load_next(&mut store).unwrap().is_some() {}
    store
}

#[test]
fn the_full_mix_on_ordered_maps_comes_to_the_same_as_on_sqlite() {
    let config = Config {
        rollbacks: 0.05,
        ..small()
    };
    let mut store = loaded(&config, true);
    let mut sqlite = assert_same_as_sqlite(&config, 1_000, &mut store);
    let last = store.maps().history;
    assert_eq!(first_history(store.maps()).unwrap(), last + 1);
    let trees = std::mem::take(store.maps());
    assert_same_rows(&config, &mut Rows(trees), &mut sqlite);
}

#[test]
fn after_a_failure_that_was_not_undone_nothing_more_is_taken() {
    let config = small();
    let mut store = loaded(&config, false);
    let mut inputs = Inputs::new(&config, 0);
    store.maps().maps[Map::CustomerName.number()].clear();
    store.maps().maps[4].clear();
    let mut rows = dyno_tpcc::Rows::default();
    let failed = dyno_tpcc::perform(&mut store, &inputs.of_kind(Kind::Payment), 0, &mut rows);
    assert_eq!(failed.unwrap_err().kind, ErrorKind::MissingKey);
    assert_eq!(
        store.begin(Kind::Payment).unwrap_err().kind,
        ErrorKind::Refused
    );
}
