//! Who waits for a CPU: runnable and blocked processes, switches, interrupts, run-queue delay.

use super::Absent;
use crate::proc_file::{Buffer, ProcFile};
use crate::sample::{Growth, Samples, per};
use crate::text::{lines, name_of, number, numbers_of, words};

const KEYS: [&str; 4] = ["ctxt", "intr", "procs_running", "procs_blocked"];

/// The numbers of [`KEYS`] in `/proc/stat`.
pub fn read_stat(text: &[u8]) -> [Option<u64>; KEYS.len()] {
    numbers_of(text, &KEYS)
}

#[derive(Debug)]
pub struct Scheduler {
    switches: Growth<2>,
    /// Only kernels with `CONFIG_SCHEDSTATS` have it.
    schedstat: Option<ProcFile>,
    per_cpu: bool,
    cpus: Vec<Queue>,
}

/// The run queue of a CPU.
#[derive(Debug)]
struct Queue {
    subject: String,
    /// Time waited in ns, and time slices.
    counters: Growth<2>,
}

impl Scheduler {
    pub fn open(per_cpu: bool, absent: &mut Absent) -> Self {
        Self {
            switches: Growth::default(),
            schedstat: super::open_long_list("/proc/schedstat", "scheduler/run_delay", absent),
            per_cpu,
            cpus: Vec::new(),
        }
    }

    pub fn sample_stat(
        &mut self,
        stat: &[Option<u64>; KEYS.len()],
        seconds: f64,
        samples: &mut Samples,
    ) {
        let [switches, interrupts, running, blocked] = *stat;
        let grown = self.switches.next([switches, interrupts]);
        samples.add_machine("vm.cs", per(grown[0], seconds));
        samples.add_machine("vm.in", per(grown[1], seconds));
        samples.add_machine("vm.r", running.map(|count| count as f64));
        samples.add_machine("vm.b", blocked.map(|count| count as f64));
    }

    pub fn sample_delays(&mut self, seconds: f64, buffer: &mut Buffer, samples: &mut Samples) {
        if let Some(Ok(text)) = self.schedstat.as_ref().map(|file| file.read(buffer)) {
            self.add_delays(text, seconds, samples);
        }
    }

    fn add_delays(&mut self, text: &[u8], seconds: f64, samples: &mut Samples) {
        let mut sum: [Option<f64>; 2] = [None; 2];
        for (name, delay_ns, slices) in lines(text).filter_map(parse) {
            let known = |queue: &Queue| queue.subject.as_bytes() == name;
            let place = self.cpus.iter().position(known).unwrap_or_else(|| {
                self.cpus.push(Queue {
                    subject: name_of(name),
                    counters: Growth::default(),
                });
                self.cpus.len() - 1
            });
            let queue = &mut self.cpus[place];
            let grown = queue.counters.next([Some(delay_ns), Some(slices)]);
            for (sum, grown) in sum.iter_mut().zip(grown) {
                *sum = grown.map(|grown| sum.unwrap_or(0.0) + grown).or(*sum);
            }
            if self.per_cpu {
                let share = per(grown[0].map(|ns| ns / 1e7), seconds);
                samples
                    .of("machine", &queue.subject)
                    .add("percpu.run_delay", share);
            }
        }
        let [delay_ns, slices] = sum;
        samples.add_machine("sched.run_delay", per(delay_ns.map(|ns| ns / 1e7), seconds));
        samples.add_machine(
            "sched.run_delay_mean",
            per(delay_ns.map(|ns| ns / 1e3), slices.unwrap_or(0.0)),
        );
    }
}

/// The time that tasks waited on this CPU, in ns, and the time slices that they had: the last two numbers of a
/// line that begins with `cpu` (Documentation/scheduler/sched-stats.rst, versions 14 to 17).
fn parse(line: &[u8]) -> Option<(&[u8], u64, u64)> {
    if !line.starts_with(b"cpu") {
        return None;
    }
    let mut words = words(line);
    let name = words.next()?;
    let (mut last, mut before, mut count) = (None, None, 0);
    for word in words {
        before = last;
        last = number(word);
        count += 1;
    }
    (count >= 9).then_some(())?;
    Some((name, before?, last?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // Of a Linux 6.1, shortened.
    const SCHEDSTAT: &str = "version 15\ntimestamp 4295\ncpu0 0 0 0 0 0 0 1000 RUN0 SLICES0\ndomain0 03 1 2 3 4 5 6 7 8 9\ncpu1 0 0 0 0 0 0 1000 500 20\n";

    fn sampled(scheduler: &mut Scheduler, delay: &str, slices: &str) -> String {
        let mut samples = Samples::default();
        samples.begin(1);
        let text = SCHEDSTAT.replace("RUN0", delay).replace("SLICES0", slices);
        scheduler.add_delays(text.as_bytes(), 2.0, &mut samples);
        samples.string()
    }

    #[test]
    fn run_queue_delay_is_a_share_of_time_and_a_mean_per_slice() {
        let mut scheduler = Scheduler::open(true, &mut Vec::new());
        assert_eq!(sampled(&mut scheduler, "0", "0"), "");
        let text = sampled(&mut scheduler, "100000000", "50");
        assert!(
            text.contains("1,machine,cpu0,percpu.run_delay,5\n"),
            "{text}"
        );
        assert!(
            text.contains("1,machine,cpu1,percpu.run_delay,0\n"),
            "{text}"
        );
        assert!(text.contains("machine,sched.run_delay,5\n"), "{text}");
        assert!(
            text.contains("machine,sched.run_delay_mean,2000\n"),
            "{text}"
        );
    }

    #[test]
    fn lines_of_domains_and_of_unknown_form_are_left_out() {
        assert_eq!(parse(b"domain0 03 1 2 3 4 5 6 7 8 9"), None);
        assert_eq!(parse(b"cpu0 1 2 3"), None);
        assert_eq!(parse(b"cpu3 1 2 3 4 5 6 7 8 9"), Some((&b"cpu3"[..], 8, 9)));
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..99), line in "cpu[0-9]?( [0-9]{0,21}){0,12}") {
            let mut scheduler = Scheduler::open(true, &mut Vec::new());
            for text in [&text[..], line.as_bytes()] {
                scheduler.add_delays(text, 1.0, &mut Samples::default());
                let _ = read_stat(text);
            }
        }
    }
}
