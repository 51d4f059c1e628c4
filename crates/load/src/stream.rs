//! One client's sequence of requests.

use crate::chooser::Keys;
use crate::{Chooser, KeySpace, Mix, Operation, Random};

/// What a stream is made of, the same for all clients.
#[derive(Clone, Debug)]
pub struct Workload {
    /// The operations and their proportions.
    pub mix: Mix,
    /// The law of the keys.
    pub chooser: Chooser,
    /// Rows of the loaded data set, at least 1.
    pub records: u64,
    /// Fields of a row, at least 1.
    pub field_count: u32,
    /// Whether reads and scans take one field each, which has to be chosen.
    pub reads_one_field: bool,
    /// Whether updates write one field each.
    pub writes_one_field: bool,
    /// The longest scan, in rows, at least 1.
    pub max_scan_length: u32,
    /// How many operations this driver is to apply, over all its clients, where that is known: laws
    /// that provide for inserts go by it.
    pub operations: Option<u64>,
    /// What the whole sequence follows from.
    pub seed: u64,
}

/// One request, before keys and values are made of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation's place among those of the mix.
    pub index: usize,
    /// What is asked.
    pub operation: Operation,
    /// The number of the key; an insert gets its own from the key space, and has 0 here.
    pub key: u64,
    /// The field that is read or written where not all are; 0 where all are.
    pub field: u32,
    /// Rows to scan, in `[1, max_scan_length]`.
    pub scan_length: u32,
}

/// An endless sequence of requests: a function of the workload, its seed and the client's number, as
/// long as the key space does not grow. Inserts of other clients shift which keys are chosen, since
/// they shift which keys exist.
#[derive(Clone, Debug)]
pub struct Stream {
    mix: Mix,
    keys: Keys,
    field_count: u32,
    reads_one_field: bool,
    writes_one_field: bool,
    max_scan_length: u32,
    rng: Random,
}

impl Stream {
    /// The stream of client number `client`, from 0. Where several drivers share a workload and its seed,
    /// each client of each has a number of its own, else they ask the same.
    #[must_use]
    pub fn new(workload: &Workload, client: u64) -> Self {
        Self {
            mix: workload.mix.clone(),
            keys: Keys::new(workload),
            field_count: workload.field_count.max(1),
            reads_one_field: workload.reads_one_field,
            writes_one_field: workload.writes_one_field,
            max_scan_length: workload.max_scan_length.max(1),
            rng: Random::new(workload.seed, client),
        }
    }

    /// The next request, with a key that exists in `space` at this moment.
    // Handed over in memory, a request's parts would be read back before they have arrived there: that costs
    // a twentieth of the whole loop.
    #[inline(always)]
    #[allow(clippy::inline_always)]
    #[allow(clippy::cast_possible_truncation)] // bounded by 32-bit numbers
    pub fn next(&mut self, space: &KeySpace) -> Request {
        let (index, operation) = self.mix.sample(&mut self.rng);
        let mut request = Request {
            index,
            operation,
            key: 0,
            field: 0,
            scan_length: 0,
        };
        if operation != Operation::Insert {
            request.key = self.keys.choose(space, &mut self.rng);
            let chooses = match operation {
                Operation::Read | Operation::Scan => self.reads_one_field,
                _ => self.reads_one_field || self.writes_one_field,
            };
            if chooses {
                request.field = self.rng.below(u64::from(self.field_count)) as u32;
            }
        }
        if operation == Operation::Scan {
            request.scan_length = self.rng.below(u64::from(self.max_scan_length)) as u32 + 1;
        }
        request
    }

    /// The generator behind the sequence, for the values that go with a request.
    pub fn rng(&mut self) -> &mut Random {
        &mut self.rng
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Driver;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn workload(chooser: Chooser, shares: [f64; 5]) -> Workload {
        Workload {
            mix: Mix::new(shares).unwrap(),
            chooser,
            records: 1000,
            field_count: 10,
            reads_one_field: true,
            writes_one_field: true,
            max_scan_length: 100,
            operations: None,
            seed: 42,
        }
    }

    fn take(workload: &Workload, client: u64, count: usize) -> Vec<Request> {
        let space = KeySpace::new(workload.records, 1, Driver::ALONE);
        let mut stream = Stream::new(workload, client);
        (0..count).map(|_| stream.next(&space)).collect()
    }

    #[test]
    fn the_same_seed_asks_the_same_and_another_asks_otherwise() {
        let a = workload(Chooser::Zipfian(0.99), [0.5, 0.3, 0.0, 0.1, 0.1]);
        let b = Workload {
            seed: 43,
            ..a.clone()
        };
        assert_eq!(take(&a, 0, 1000), take(&a, 0, 1000));
        assert_ne!(take(&a, 0, 1000), take(&b, 0, 1000));
        assert_ne!(take(&a, 0, 1000), take(&a, 1, 1000));
    }

    #[test]
    fn all_clients_share_their_favourite_keys_and_another_seed_has_others() {
        let favourite = |workload: &Workload, client| {
            let mut counts = vec![0; 1000];
            for request in take(workload, client, 20_000) {
                counts[usize::try_from(request.key).unwrap()] += 1;
            }
            (0..1000).max_by_key(|&key| counts[key]).unwrap()
        };
        let a = workload(Chooser::Zipfian(0.99), [1.0, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(favourite(&a, 0), favourite(&a, 1));
        assert_ne!(
            favourite(&a, 0),
            favourite(
                &Workload {
                    seed: 43,
                    ..a.clone()
                },
                0
            )
        );
    }

    #[test]
    fn latest_favours_the_newest_key_while_inserts_go_on() {
        let workload = workload(Chooser::Latest(0.99), [0.9, 0.0, 0.1, 0.0, 0.0]);
        let space = KeySpace::new(workload.records, 1, Driver::ALONE);
        let mut slot = space.slot(0);
        let mut stream = Stream::new(&workload, 0);
        let (mut reads, mut newest, mut inserts) = (0.0, 0.0, 0);
        for _ in 0..50_000 {
            let request = stream.next(&space);
            if request.operation == Operation::Insert {
                assert_eq!(slot.take(), 1000 + inserts);
                slot.acknowledge();
                inserts += 1;
            } else {
                assert!(request.key < 1000 + inserts);
                reads += 1.0;
                newest += f64::from(u8::from(request.key == space.limit() - 1));
            }
        }
        // The share of rank 1 is 1 / sum of k^-0.99: 0.129 for 1000 keys, 0.104 for 6000.
        assert!(
            (0.100..0.130).contains(&(newest / reads)),
            "{}",
            newest / reads
        );
        assert!((4500..5500).contains(&inserts));
    }

    fn share() -> impl Strategy<Value = f64> {
        prop_oneof![Just(0.0), Just(1.0), 0.0f64..1.0]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn every_choice_lies_within_its_bounds(
            records in 1u64..100_000, law in 0..8usize, theta in 0.01f64..3.0, seed: u64,
            share in share(), other_share in share(), operations: Option<u16>,
            driver in (1u64..5, 0u64..4).prop_map(|(of, number)| Driver { number: number % of, of }),
            field_count in 1u32..100, max_scan_length in 1u32..1000,
        ) {
            let chooser = [
                Chooser::Zipfian(theta),
                Chooser::ClusteredZipfian(theta),
                Chooser::YcsbZipfian,
                Chooser::Uniform,
                Chooser::Latest(theta),
                Chooser::Hotspot { keys: share, operations: other_share },
                Chooser::Exponential { percentile: 0.01 + 99.9 * share, keys: 0.01 + other_share },
                Chooser::Sequential,
            ][law];
            let operations = operations.map(u64::from);
            let workload = Workload {
                mix: Mix::new([0.4, 0.2, 0.1, 0.2, 0.1]).unwrap(),
                chooser, records, field_count, max_scan_length, operations, seed,
                reads_one_field: true, writes_one_field: true,
            };
            let space = KeySpace::new(records, 1, driver);
            let mut slot = space.slot(0);
            let mut inserted = HashSet::new();
            let mut stream = Stream::new(&workload, 0);
            for _ in 0..500 {
                let request = stream.next(&space);
                match request.operation {
                    Operation::Insert => {
                        inserted.insert(slot.take());
                        slot.acknowledge();
                    }
                    operation => {
                        prop_assert!(request.key < records || inserted.contains(&request.key));
                        prop_assert!(request.field < field_count);
                        let scans = operation == Operation::Scan;
                        prop_assert_eq!(scans, (1..=max_scan_length).contains(&request.scan_length));
                    }
                }
            }
        }
    }
}
