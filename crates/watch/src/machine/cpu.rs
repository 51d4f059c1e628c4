//! How the CPUs' time was spent, as mpstat tells it.

use crate::sample::{Growth, Samples, per};
use crate::text::{lines, number, words};

/// The fields of a `cpu` line of `/proc/stat`, in its order. Old kernels end it earlier.
const FIELDS: usize = 10;

const CPU: [&str; FIELDS] = [
    "cpu.usr",
    "cpu.nice",
    "cpu.sys",
    "cpu.idle",
    "cpu.iowait",
    "cpu.irq",
    "cpu.soft",
    "cpu.steal",
    "cpu.guest",
    "cpu.gnice",
];

/// The same of one CPU. Names of their own: whoever sums up `cpu.idle` means the machine.
const PER_CPU: [&str; FIELDS] = [
    "percpu.usr",
    "percpu.nice",
    "percpu.sys",
    "percpu.idle",
    "percpu.iowait",
    "percpu.irq",
    "percpu.soft",
    "percpu.steal",
    "percpu.guest",
    "percpu.gnice",
];

/// What the shares are shares of. Samples that are close together have few ticks each, now more and now less: their
/// shares are to be weighted by these for a mean that is that of the whole.
const TICKS: &str = "stat.ticks";

const GUEST: usize = 8;

/// All ticks that passed: guests' are within others. None where none is known.
fn whole(grown: [Option<f64>; FIELDS]) -> Option<f64> {
    let known = grown[..GUEST].iter().flatten();
    known.copied().reduce(|sum, ticks| sum + ticks)
}

/// A `cpu` line: whose it is, and its counters.
fn parse(line: &[u8]) -> Option<(&[u8], [Option<u64>; FIELDS])> {
    let mut words = words(line.strip_prefix(b"cpu")?);
    let id = if line.get(3).is_some_and(u8::is_ascii_digit) {
        words.next()?
    } else {
        b""
    };
    let mut times = [None; FIELDS];
    for (time, word) in times.iter_mut().zip(words) {
        *time = number(word);
    }
    Some((id, times))
}

/// Shares of all time that passed, in percent. The kernel counts guest within user, and `guest_nice`
/// within nice; sysstat tells them apart. A share whose counter went backwards (idle and iowait can) is
/// left out, and counts as nothing in the whole.
fn shares(grown: [Option<f64>; FIELDS]) -> [Option<f64>; FIELDS] {
    let whole = whole(grown).unwrap_or(0.0);
    std::array::from_fn(|place| {
        let guest = match place {
            0 | 1 => grown[GUEST + place].unwrap_or(0.0),
            _ => 0.0,
        };
        per(
            grown[place].map(|time| 100.0 * (time - guest).max(0.0)),
            whole,
        )
    })
}

/// All CPUs together, and each of them where that is wanted.
#[derive(Debug)]
pub struct Cpus {
    all: Growth<FIELDS>,
    each: Option<Vec<Cpu>>,
}

#[derive(Debug)]
struct Cpu {
    /// `cpu0`.
    subject: String,
    times: Growth<FIELDS>,
}

impl Cpus {
    pub fn new(per_cpu: bool) -> Self {
        Self {
            all: Growth::default(),
            each: per_cpu.then(Vec::new),
        }
    }

    /// Adds the shares since the tick before, of all together if `all` says so.
    pub fn sample(&mut self, stat: &[u8], all: bool, seconds: f64, samples: &mut Samples) {
        let mut seen = 0;
        for (id, times) in lines(stat).map_while(parse) {
            if id.is_empty() {
                if all {
                    let grown = self.all.next(times);
                    for (metric, share) in CPU.into_iter().zip(shares(grown)) {
                        samples.add_machine(metric, share);
                    }
                    samples.add_machine(TICKS, per(whole(grown), seconds));
                }
                if self.each.is_none() {
                    return;
                }
                continue;
            }
            let Some(each) = &mut self.each else { return };
            let place = place_of(each, seen, id);
            let cpu = &mut each[place];
            let grown = cpu.times.next(times);
            let mut of_cpu = samples.of("machine", &cpu.subject);
            for (metric, share) in PER_CPU.into_iter().zip(shares(grown)) {
                of_cpu.add(metric, share);
            }
            let ticks = per(whole(grown), seconds);
            of_cpu.add(TICKS, ticks);
            seen = place + 1;
        }
    }
}

/// Where a CPU's counters stand; its line nearly always is where it was.
fn place_of(each: &mut Vec<Cpu>, guess: usize, id: &[u8]) -> usize {
    let is_it = |cpu: &Cpu| cpu.subject.as_bytes()[3..] == *id;
    if each.get(guess).is_some_and(is_it) {
        return guess;
    }
    each.iter().position(is_it).unwrap_or_else(|| {
        each.push(Cpu {
            subject: format!("cpu{}", String::from_utf8_lossy(id)),
            times: Growth::default(),
        });
        each.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after(before: &str, after: &str) -> [Option<f64>; FIELDS] {
        let mut growth = Growth::default();
        growth.next(parse(before.as_bytes()).unwrap().1);
        shares(growth.next(parse(after.as_bytes()).unwrap().1))
    }

    #[test]
    fn cpu_shares_leave_guests_out_of_user_time_and_sum_to_the_whole() {
        let shares = after(
            "cpu  0 0 0 0 0 0 0 0 0 0",
            "cpu  40 10 20 100 10 5 5 10 20 5",
        );
        assert_eq!(
            shares,
            [10.0, 2.5, 10.0, 50.0, 5.0, 2.5, 2.5, 5.0, 10.0, 2.5].map(Some),
            "user 40 of which guest 20, nice 10 of which guest 5, of 200"
        );
    }

    #[test]
    fn a_cpu_counter_that_went_backwards_is_left_out_alone() {
        let shares = after("cpu  0 0 0 0 50 0 0 0 0 0", "cpu  25 0 0 75 49 0 0 0 0 0");
        assert_eq!(shares[4], None);
        assert_eq!((shares[0], shares[3]), (Some(25.0), Some(75.0)));
        let same = "cpu  25 0 0 75 49 0 0 0 0 0";
        assert_eq!(after(same, same), [None; FIELDS]);
    }

    #[test]
    fn a_kernel_before_steal_and_guests_still_has_the_rest() {
        // As Linux 2.6.9 had it: seven fields.
        let shares = after("cpu  0 0 0 0 0 0 0", "cpu  20 0 20 50 10 0 0");
        assert_eq!(shares[..5], [20.0, 0.0, 20.0, 50.0, 10.0].map(Some));
        assert_eq!(shares[7..], [None; 3]);
    }

    fn sampled(cpus: &mut Cpus, stat: &str) -> String {
        let mut samples = Samples::default();
        samples.begin(1);
        cpus.sample(stat.as_bytes(), true, 2.0, &mut samples);
        samples.string()
    }

    #[test]
    fn each_cpu_keeps_its_own_counters_when_one_goes_offline_and_comes_back() {
        let mut cpus = Cpus::new(true);
        sampled(
            &mut cpus,
            "cpu  0 0 0 0\ncpu0 0 0 0 0\ncpu1 0 0 0 0\ncpu2 0 0 0 0\nintr 1\n",
        );
        let text = sampled(
            &mut cpus,
            "cpu  4 0 0 4\ncpu0 1 0 0 3\ncpu2 3 0 0 1\nintr 1\n",
        );
        assert!(text.contains("1,machine,machine,cpu.usr,50\n"), "{text}");
        assert!(text.contains("1,machine,cpu0,percpu.usr,25\n"), "{text}");
        assert!(text.contains("1,machine,cpu2,percpu.usr,75\n"), "{text}");
        assert!(text.contains("1,machine,machine,stat.ticks,4\n"), "{text}");
        assert!(text.contains("1,machine,cpu2,stat.ticks,2\n"), "{text}");
        assert!(!text.contains("cpu1"), "{text}");
        let text = sampled(
            &mut cpus,
            "cpu  5 0 0 5\ncpu0 1 0 0 3\ncpu1 1 0 0 1\ncpu2 3 0 0 1\n",
        );
        assert!(text.contains("1,machine,cpu1,percpu.usr,50\n"), "{text}");
    }

    #[test]
    fn cpus_are_not_told_apart_unless_asked() {
        let mut cpus = Cpus::new(false);
        sampled(&mut cpus, "cpu  0 0 0 0\ncpu0 0 0 0 0\n");
        assert!(!sampled(&mut cpus, "cpu  1 0 0 1\ncpu0 1 0 0 1\n").contains("percpu"));
    }

    proptest! {
        #[test]
        fn shares_sum_to_the_whole_whatever_was_counted(grown in proptest::array::uniform8(0_u32..1_000_000)) {
            let grown: Vec<_> = grown.into_iter().map(|time| Some(f64::from(time))).chain([None; 2]).collect();
            let shares = shares(grown.try_into().unwrap());
            let sum: f64 = shares.iter().flatten().sum();
            prop_assert!(sum == 0.0 || (sum - 100.0).abs() < 1e-6);
        }

        #[test]
        fn any_text_is_taken(text in "((cpu[0-9 ]{0,4}[ 0-9x]{0,30})?\n){0,5}", bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
            let mut cpus = Cpus::new(true);
            sampled(&mut cpus, &text);
            cpus.sample(&bytes, true, 1.0, &mut Samples::default());
        }
    }
}
