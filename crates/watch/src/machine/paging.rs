//! Paging and swapping, as sar -B and vmstat tell it.

use crate::proc_file::{Buffer, ProcFile};
use crate::sample::{Growth, Samples, per};
use crate::text::{keyed, lines};

const METRICS: [&str; 11] = [
    "vm.bi",
    "vm.bo",
    "vm.pgfault",
    "vm.pgmajfault",
    "vm.si",
    "vm.so",
    "vm.pgfree",
    "vm.pgscank",
    "vm.pgscand",
    "vm.pgsteal",
    "vm.refault",
];
const SWAPPED_IN: usize = 4;
const SWAPPED_OUT: usize = 5;
const SCANNED: [usize; 2] = [7, 8];
const STOLEN: usize = 9;
const REFAULTED: usize = 10;

/// Which metric a key of `/proc/vmstat` belongs to. Before Linux 4.8 reclaim was counted by zone
/// (`pgscan_kswapd_normal`), so what begins alike is summed up. Newer ones count it a second time by kind
/// of page (`pgsteal_anon`), which is left out.
fn place_of(key: &[u8]) -> Option<usize> {
    Some(match key {
        b"pgpgin" => 0,
        b"pgpgout" => 1,
        b"pgfault" => 2,
        b"pgmajfault" => 3,
        b"pswpin" => SWAPPED_IN,
        b"pswpout" => SWAPPED_OUT,
        b"pgfree" => 6,
        // One key before Linux 5.9, one of anonymous memory and one of files since.
        b"workingset_refault" | b"workingset_refault_anon" | b"workingset_refault_file" => {
            REFAULTED
        }
        b"pgscan_direct_throttle" | b"pgsteal_anon" | b"pgsteal_file" => return None,
        _ if key.starts_with(b"pgscan_kswapd") => SCANNED[0],
        _ if key.starts_with(b"pgscan_direct") => SCANNED[1],
        _ if key.starts_with(b"pgsteal_") => STOLEN,
        _ => return None,
    })
}

fn parse(text: &[u8]) -> [Option<u64>; METRICS.len()] {
    let mut counters = [None; METRICS.len()];
    for line in lines(text).filter(|line| matches!(line.first(), Some(b'p' | b'w'))) {
        if let Some((key, count)) = keyed(line)
            && let Some(place) = place_of(key)
        {
            counters[place] = Some(counters[place].unwrap_or(0_u64).saturating_add(count));
        }
    }
    counters
}

#[derive(Debug)]
pub struct Paging {
    file: ProcFile,
    counters: Growth<{ METRICS.len() }>,
    page_kib: f64,
}

impl Paging {
    pub fn new(file: ProcFile) -> Self {
        Self {
            file,
            counters: Growth::default(),
            page_kib: crate::process::page_bytes() as f64 / 1024.0,
        }
    }

    pub fn sample(&mut self, seconds: f64, buffer: &mut Buffer, samples: &mut Samples) {
        let counters = match self.file.read(buffer) {
            Ok(text) => parse(text),
            Err(_) => [None; METRICS.len()],
        };
        let grown = self.counters.next(counters);
        for (place, metric) in METRICS.into_iter().enumerate() {
            let unit = match place {
                SWAPPED_IN | SWAPPED_OUT => self.page_kib,
                _ => 1.0,
            };
            samples.add_machine(metric, per(grown[place].map(|count| count * unit), seconds));
        }
        samples.add_machine("vm.vmeff", efficiency(&grown));
    }
}

/// Of the pages scanned, those that were reclaimed, in percent.
fn efficiency(grown: &[Option<f64>; METRICS.len()]) -> Option<f64> {
    let scanned = grown[SCANNED[0]]? + grown[SCANNED[1]]?;
    per(grown[STOLEN].map(|pages| 100.0 * pages), scanned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reclaim_is_counted_once_on_kernels_old_and_new() {
        let new = b"pgpgin 7\npgsteal_kswapd 10\npgsteal_direct 5\npgscan_kswapd 20\npgscan_direct 10\npgscan_direct_throttle 3\npgsteal_anon 6\npgsteal_file 9\nworkingset_nodes 4\nworkingset_refault_anon 1\nworkingset_refault_file 7\n";
        let counters = parse(new);
        assert_eq!(counters[0], Some(7));
        assert_eq!(counters[1], None);
        assert_eq!(counters[7..], [Some(20), Some(10), Some(15), Some(8)]);
        let old = b"pgscan_kswapd_dma 1\npgscan_kswapd_normal 19\npgscan_direct_normal 10\npgsteal_normal 15\nworkingset_refault 3\n";
        assert_eq!(parse(old)[7..], [Some(20), Some(10), Some(15), Some(3)]);
        let grown = counters.map(|count| count.map(|count| count as f64));
        assert_eq!(efficiency(&grown), Some(50.0));
        assert_eq!(efficiency(&[Some(0.0); METRICS.len()]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..200), lines in "(pg(scan_direct|steal_a|fault) [0-9]{0,25}\n){0,9}") {
            let _ = parse(&text);
            let _ = parse(lines.as_bytes());
        }
    }
}
