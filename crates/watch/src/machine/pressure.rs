//! Pressure stall information, where the kernel has it.

use super::Absent;
use crate::proc_file::{Buffer, ProcFile};
use crate::sample::{Growth, Samples, per};
use crate::text::{lines, number};

/// The files of `/proc/pressure`, and the metrics of their lines `some` and `full`. For CPUs of the whole
/// machine `full` is always 0, for interrupts there is no `some`.
const FILES: [(&str, Option<&str>, Option<&str>); 4] = [
    ("cpu", Some("psi.cpu.some"), None),
    ("memory", Some("psi.memory.some"), Some("psi.memory.full")),
    ("io", Some("psi.io.some"), Some("psi.io.full")),
    ("irq", None, Some("psi.irq.full")),
];

#[derive(Debug)]
pub struct Pressures(Vec<Pressure>);

#[derive(Debug)]
struct Pressure {
    file: ProcFile,
    metrics: [Option<&'static str>; 2],
    totals_us: Growth<2>,
}

impl Pressures {
    pub fn open(absent: &mut Absent) -> Self {
        let found = FILES.into_iter().filter_map(|(resource, some, full)| {
            // A kernel that was started with psi=0 has the files and reads none of them.
            let path = format!("/proc/pressure/{resource}");
            let file = ProcFile::open(path)
                .ok()
                .filter(|file| file.read(&mut Buffer::default()).is_ok());
            if file.is_none() {
                absent.push(format!("pressure/{resource}"));
            }
            Some(Pressure {
                file: file?,
                metrics: [some, full],
                totals_us: Growth::default(),
            })
        });
        Self(found.collect())
    }

    pub fn sample(&mut self, seconds: f64, buffer: &mut Buffer, samples: &mut Samples) {
        for pressure in &mut self.0 {
            let totals = match pressure.file.read(buffer) {
                Ok(text) => ["some", "full"].map(|kind| total(text, kind)),
                Err(_) => [None; 2],
            };
            let grown = pressure.totals_us.next(totals);
            for (metric, us) in pressure.metrics.into_iter().zip(grown) {
                if let Some(metric) = metric {
                    // Microseconds per second, as a share.
                    samples.add_machine(metric, per(us.map(|us| us / 1e4), seconds));
                }
            }
        }
    }
}

/// The total in microseconds at the end of a line such as `some avg10=0.00 ... total=42`.
fn total(text: &[u8], kind: &str) -> Option<u64> {
    let line = lines(text).find(|line| line.starts_with(kind.as_bytes()))?;
    let end = line.rsplit(|byte| *byte == b' ').next()?;
    number(end.strip_prefix(b"total=")?.trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pressure_is_read_from_its_own_line() {
        let text = b"some avg10=0.00 avg60=0.00 avg300=0.00 total=42\nfull avg10=1.00 total=7\n";
        assert_eq!(total(text, "some"), Some(42));
        assert_eq!(total(text, "full"), Some(7));
        assert_eq!(total(b"", "some"), None);
        assert_eq!(total(b"full avg10=1.00\n", "full"), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(text in proptest::collection::vec(any::<u8>(), 0..99), line in "some( [a-z0-9.=]{0,12}){0,4}") {
            let _ = total(&text, "some");
            let _ = total(line.as_bytes(), "some");
        }
    }
}
