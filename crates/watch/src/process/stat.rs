//! `/proc/PID/stat`, of processes and of threads.

use crate::text::{number, words};

/// What is used of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stat {
    /// A zombie, or dead.
    pub ended: bool,
    pub parent: u32,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub user_ticks: u64,
    pub system_ticks: u64,
    /// Within user time. Since Linux 2.6.24.
    pub guest_ticks: u64,
    /// The same of its children that ended and were waited for, with theirs.
    pub of_children: OfChildren,
    pub threads: u64,
    /// Clock ticks after boot.
    pub started: u64,
    pub virtual_bytes: u64,
    pub resident_pages: u64,
    /// Clock ticks waited for block I/O.
    pub io_delay_ticks: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfChildren {
    pub minor_faults: u64,
    pub major_faults: u64,
    pub user_ticks: u64,
    pub system_ticks: u64,
    pub guest_ticks: u64,
}

/// Fields 4 to 44 of `proc_pid_stat(5)`.
const FIELDS: usize = 41;
/// The least that any kernel tells: up to the resident pages.
const LEAST: usize = 21;

impl Stat {
    pub fn parse(text: &[u8]) -> Option<Self> {
        // The name may hold anything, closing brackets included; what follows the last does not.
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        let mut words = words(&text[name_end + 1..]);
        let state = words.next()?;
        let mut fields = [0; FIELDS];
        let mut found = 0;
        for (field, word) in fields.iter_mut().zip(words) {
            // Some fields are signed; those that are used never are negative.
            *field = number(word).unwrap_or(0);
            found += 1;
        }
        let at = |field: usize| fields[field - 4];
        (found >= LEAST).then(|| Self {
            ended: matches!(state, b"Z" | b"X" | b"x"),
            parent: u32::try_from(at(4)).unwrap_or(0),
            minor_faults: at(10),
            major_faults: at(12),
            user_ticks: at(14),
            system_ticks: at(15),
            guest_ticks: at(43),
            of_children: OfChildren {
                minor_faults: at(11),
                major_faults: at(13),
                user_ticks: at(16),
                system_ticks: at(17),
                guest_ticks: at(44),
            },
            threads: at(20),
            started: at(22),
            virtual_bytes: at(23),
            resident_pages: at(24),
            io_delay_ticks: at(42),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &[u8] = b"7 (a) b (c)) S 1 7 7 0 -1 4194560 11 111 22 122 33 44 133 144 20 0 5 0 99 1000 66 18446744073709551615 1 1 0 0 0 0 0 4096 1260 0 0 0 17 1 0 0 8 9 10 0 0\n";

    #[test]
    fn a_name_with_brackets_and_spaces_does_not_shift_the_fields() {
        let expected = Stat {
            ended: false,
            parent: 1,
            minor_faults: 11,
            major_faults: 22,
            user_ticks: 33,
            system_ticks: 44,
            guest_ticks: 9,
            of_children: OfChildren {
                minor_faults: 111,
                major_faults: 122,
                user_ticks: 133,
                system_ticks: 144,
                guest_ticks: 10,
            },
            threads: 5,
            started: 99,
            virtual_bytes: 1000,
            resident_pages: 66,
            io_delay_ticks: 8,
        };
        assert_eq!(Stat::parse(TEXT), Some(expected));
        let zombie = String::from_utf8_lossy(TEXT).replace(") S ", ") Z ");
        assert!(Stat::parse(zombie.as_bytes()).unwrap().ended);
    }

    #[test]
    fn a_name_that_is_no_text_is_no_reason_to_lose_a_process() {
        let text = [b"7 (\xff\xfe) S", &TEXT[14..]].concat();
        assert_eq!(Stat::parse(&text), Stat::parse(TEXT));
    }

    #[test]
    fn an_old_kernel_without_guests_and_delays_still_has_the_rest() {
        let text = b"7 (a) S 1 7 7 0 -1 4194560 11 0 22 0 33 44 0 0 20 0 5 0 99 1000 66 18446\n";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.user_ticks, stat.resident_pages), (33, 66));
        assert_eq!((stat.guest_ticks, stat.io_delay_ticks), (0, 0));
        assert_eq!(Stat::parse(b"7 (a) S 1 2"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..99), line in "7 \\(.{0,9}\\) [SZ]( -?[0-9]{1,21}){0,50}") {
            let _ = Stat::parse(&text);
            if let Some(stat) = Stat::parse(line.as_bytes()) {
                prop_assert!(line.contains(") Z") == stat.ended || line.matches(')').count() > 1);
            }
        }
    }
}
