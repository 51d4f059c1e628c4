//! Samples on their way to the file.

use std::fmt::Write;

/// The samples of one tick, which all carry its time.
#[derive(Debug, Default)]
pub struct Samples {
    text: String,
    /// The time, as each line begins with it.
    time: String,
}

/// The first line of the file.
pub const HEADER: &str = "time_ns,source,subject,metric,value\n";

impl Samples {
    /// Begins a tick at this time of day, in ns since the epoch.
    pub fn begin(&mut self, time_ns: u64) {
        self.text.clear();
        self.time.clear();
        // Writing to a string cannot fail, here and below.
        let _ = write!(self.time, "{time_ns},");
    }

    /// Adds a value, if there is one.
    pub fn add(&mut self, source: &str, subject: &str, metric: &str, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return;
        };
        self.text.push_str(&self.time);
        for part in [source, subject, metric] {
            self.text.push_str(part);
            self.text.push(',');
        }
        if value == 0.0 {
            self.text.push('0');
        } else {
            let _ = write!(self.text, "{value}");
        }
        self.text.push('\n');
    }

    /// Adds a value of the machine as a whole.
    pub fn add_machine(&mut self, metric: &str, value: Option<f64>) {
        self.add("machine", "machine", metric, value);
    }

    /// The tick's lines.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Counters that only grow, as they were at the tick before.
#[derive(Clone, Copy, Debug)]
pub struct Growth<const N: usize>([Option<u64>; N]);

impl<const N: usize> Default for Growth<N> {
    fn default() -> Self {
        Self([None; N])
    }
}

impl<const N: usize> Growth<N> {
    /// By how much each grew since this was last called; none where it is not known, now or then, or
    /// went backwards.
    pub fn next(&mut self, now: [Option<u64>; N]) -> [Option<f64>; N] {
        let before = std::mem::replace(&mut self.0, now);
        std::array::from_fn(|place| Some(now[place]?.checked_sub(before[place]?)? as f64))
    }
}

/// A quotient; none where there is nothing to divide by.
pub fn per(value: Option<f64>, divisor: f64) -> Option<f64> {
    value.filter(|_| divisor > 0.0).map(|value| value / divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_goes_backwards_and_an_interval_of_no_length_give_nothing() {
        let mut growth = Growth::default();
        assert_eq!(growth.next([Some(10), None]), [None, None]);
        assert_eq!(growth.next([Some(30), Some(5)]), [Some(20.0), None]);
        assert_eq!(growth.next([Some(10), Some(5)]), [None, Some(0.0)]);
        assert_eq!(growth.next([Some(11), None]), [Some(1.0), None]);
        assert_eq!(per(Some(20.0), 2.0), Some(10.0));
        assert_eq!(per(Some(20.0), 0.0), None);
    }

    #[test]
    fn a_value_that_is_not_known_is_no_line() {
        let mut samples = Samples::default();
        samples.begin(5);
        samples.add_machine("vm.cs", Some(1.5));
        samples.add_machine("vm.in", None);
        samples.add_machine("vm.bi", Some(f64::NAN));
        samples.add_machine("vm.bo", Some(0.0));
        assert_eq!(
            samples.text(),
            "5,machine,machine,vm.cs,1.5\n5,machine,machine,vm.bo,0\n"
        );
    }
}
