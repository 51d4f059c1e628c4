//! Who of the workers carries a row.
//!
//! By owner, which is the value of the first tag: of a host all rows go to one worker, in the order in which they come, so
//! that what is in order for each host is in order on each connection. Owners are dealt out in turn as they first appear
//! rather than by a hash, which gives two workers 13 and 7 of twenty hosts, and the busier one is what is measured then.
//!
//! By batch, as TSBS does whatever it is told: a batch of all hosts goes to whoever is free, so that two workers' rows
//! overtake one another within each host too.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// How rows are shared out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// All rows of a host to one worker.
    #[default]
    Host,
    /// Whole batches to whoever is free.
    Batch,
}

/// Whose worker is whose.
#[derive(Debug)]
pub struct Owners {
    workers: usize,
    of: HashMap<Vec<u8>, usize>,
    /// The one before: rows of a host often come together.
    last: (Vec<u8>, usize),
}

impl Owners {
    /// Nobody's yet.
    #[must_use]
    pub fn new(workers: usize) -> Self {
        Self {
            workers: workers.max(1),
            of: HashMap::new(),
            last: (Vec::new(), 0),
        }
    }

    /// The worker who carries what is of that owner.
    pub fn worker(&mut self, owner: &[u8]) -> usize {
        if self.workers == 1 {
            return 0;
        }
        if !self.of.is_empty() && self.last.0 == owner {
            return self.last.1;
        }
        let worker = if let Some(&known) = self.of.get(owner) {
            known
        } else {
            let next = self.of.len() % self.workers;
            self.of.insert(owner.to_vec(), next);
            next
        };
        self.last.0.clear();
        self.last.0.extend_from_slice(owner);
        self.last.1 = worker;
        worker
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn twenty_hosts_are_ten_for_each_of_two_workers() {
        let mut owners = Owners::new(2);
        let mut counts = [0; 2];
        for host in 0..20 {
            counts[owners.worker(format!("host_{host}").as_bytes())] += 1;
        }
        assert_eq!(counts, [10, 10]);
    }

    proptest! {
        #[test]
        fn an_owner_always_has_the_same_worker_and_no_worker_has_two_more_than_another(
            owners in prop::collection::vec("[a-c]{0,3}", 1..60), workers in 1..9usize,
        ) {
            let mut split = Owners::new(workers);
            let mut known: HashMap<&str, usize> = HashMap::new();
            for owner in &owners {
                let worker = split.worker(owner.as_bytes());
                prop_assert!(worker < workers);
                prop_assert_eq!(*known.entry(owner).or_insert(worker), worker);
            }
            let mut of_each = vec![0; workers];
            known.values().for_each(|&worker| of_each[worker] += 1);
            let (least, most) = (of_each.iter().min().unwrap(), of_each.iter().max().unwrap());
            prop_assert!(most - least <= 1, "{of_each:?}");
        }
    }
}
