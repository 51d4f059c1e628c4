//! Samples on their way to the file.

use std::fmt::Write;

/// The samples of one tick, which all carry its time.
#[derive(Debug, Default)]
pub struct Samples {
    text: String,
    time_ns: u64,
}

/// The first line of the file.
pub const HEADER: &str = "time_ns,source,subject,metric,value\n";

impl Samples {
    /// Begins a tick at this time of day, in ns since the epoch.
    pub fn begin(&mut self, time_ns: u64) {
        self.text.clear();
        self.time_ns = time_ns;
    }

    /// Adds a value, if there is one.
    pub fn add(&mut self, source: &str, subject: &str, metric: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                self.text,
                "{},{source},{subject},{metric},{value}",
                self.time_ns
            );
        }
    }

    /// The tick's lines.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// By how much a counter grew; none where it went backwards.
pub fn growth(before: u64, after: u64) -> Option<f64> {
    after.checked_sub(before).map(|growth| growth as f64)
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
        assert_eq!(per(growth(10, 30), 2.0), Some(10.0));
        assert_eq!(per(growth(30, 10), 2.0), None);
        assert_eq!(per(growth(10, 30), 0.0), None);
        let mut samples = Samples::default();
        samples.begin(5);
        samples.add("machine", "machine", "vm.cs", Some(1.5));
        samples.add("machine", "machine", "vm.in", None);
        samples.add("machine", "machine", "vm.bi", Some(f64::NAN));
        assert_eq!(samples.text(), "5,machine,machine,vm.cs,1.5\n");
    }
}
