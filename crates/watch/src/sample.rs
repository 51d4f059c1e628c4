//! Samples on their way to the file.

use std::io::Write;

/// The samples of one tick, which all carry its time.
#[derive(Debug, Default)]
pub struct Samples {
    text: Vec<u8>,
    /// How lines of the machine as a whole begin.
    of_machine: Vec<u8>,
    /// How lines begin: the time, then a source and a subject.
    begin: Vec<u8>,
    time_end: usize,
}

/// Takes the values of one source and subject.
#[derive(Debug)]
pub struct SamplesOf<'s> {
    text: &'s mut Vec<u8>,
    begin: &'s [u8],
}

impl SamplesOf<'_> {
    /// Adds a value, if there is one.
    pub fn add(&mut self, metric: &str, value: Option<f64>) {
        let Some(value) = value.filter(|value| value.is_finite()) else {
            return;
        };
        self.text.extend_from_slice(self.begin);
        self.text.extend_from_slice(metric.as_bytes());
        self.text.push(b',');
        push_value(self.text, value);
        self.text.push(b'\n');
    }
}

/// The first line of the file.
pub const HEADER: &str = "time_ns,source,subject,metric,value\n";

impl Samples {
    /// Begins a tick at this time of day, in ns since the epoch.
    pub fn begin(&mut self, time_ns: u64) {
        self.text.clear();
        self.begin.clear();
        push_digits(&mut self.begin, time_ns, 1);
        self.begin.push(b',');
        self.time_end = self.begin.len();
        self.of_machine.clone_from(&self.begin);
        self.of_machine.extend_from_slice(b"machine,machine,");
    }

    /// For values of this source and subject.
    pub fn of(&mut self, source: &str, subject: &str) -> SamplesOf<'_> {
        self.begin.truncate(self.time_end);
        for name in [source, subject] {
            self.begin.extend_from_slice(name.as_bytes());
            self.begin.push(b',');
        }
        SamplesOf {
            text: &mut self.text,
            begin: &self.begin,
        }
    }

    /// Adds a value of the machine as a whole, if there is one.
    pub fn add_machine(&mut self, metric: &str, value: Option<f64>) {
        let mut of_machine = SamplesOf {
            text: &mut self.text,
            begin: &self.of_machine,
        };
        of_machine.add(metric, value);
    }

    /// The tick's lines.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    #[cfg(test)]
    pub fn string(&self) -> String {
        String::from_utf8(self.text.clone()).unwrap()
    }
}

/// Writes a value with up to six decimals. A sample has hundreds, and all their digits would be most of its cost.
fn push_value(text: &mut Vec<u8>, value: f64) {
    const MILLIONTHS: u64 = 1_000_000;
    // Most are whole, and of these most are nothing.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    // what is negative or too large becomes another value
    let whole = value as u64;
    #[allow(clippy::float_cmp)] // the same value, or not
    if whole as f64 == value && whole < 1 << 53 {
        push_digits(text, whole, 1);
        return;
    }
    let scaled = (value.abs() * MILLIONTHS as f64).round();
    // From 9e9 on nobody asks for a fraction.
    if scaled >= (1_u64 << 53) as f64 {
        // Writing to memory cannot fail.
        let _ = write!(text, "{value:.0}");
        return;
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    // whole, at least 0 and below 2^53
    let scaled = scaled as u64;
    if value < 0.0 && scaled > 0 {
        text.push(b'-');
    }
    push_digits(text, scaled / MILLIONTHS, 1);
    let mut rest = scaled % MILLIONTHS;
    if rest > 0 {
        let mut places = 6;
        while rest.is_multiple_of(10) {
            rest /= 10;
            places -= 1;
        }
        text.push(b'.');
        push_digits(text, rest, places);
    }
}

/// Writes a number with at least so many digits.
fn push_digits(text: &mut Vec<u8>, mut number: u64, least: usize) {
    let mut digits = [b'0'; 20];
    let mut begin = digits.len();
    while number > 0 || digits.len() - begin < least {
        begin -= 1;
        digits[begin] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    text.extend_from_slice(&digits[begin..]);
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
    use proptest::prelude::*;

    fn written(value: f64) -> String {
        let mut text = Vec::new();
        push_value(&mut text, value);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn values_are_written_to_the_millionth() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.5, "1.5"),
            (-2.25, "-2.25"),
            (100.0 / 3.0, "33.333333"),
            (0.000_01, "0.00001"),
            (1e-9, "0"),
            (-1e-9, "0"),
            (0.999_999_9, "1"),
            (25_276_502_016.0, "25276502016"),
            (1e22, "10000000000000000000000"),
        ] {
            assert_eq!(written(value), expected);
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(size in -7_f64..15.0, sign: bool) {
            let value = 10_f64.powf(size) * if sign { 1.0 } else { -1.0 };
            let read: f64 = written(value).parse().unwrap();
            prop_assert!((read - value).abs() <= 0.51e-6 + value.abs() * 1e-10, "{} for {value}", written(value));
        }

        #[test]
        fn any_value_is_a_number(value in proptest::num::f64::NORMAL) {
            prop_assert!(written(value).parse::<f64>().is_ok());
        }
    }

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
    fn each_line_has_its_own_time_source_and_subject() {
        let mut samples = Samples::default();
        for time_ns in [5, 1_790_000_000_000_000_001] {
            samples.begin(time_ns);
            for (source, subject) in [
                ("a", "bc"),
                ("a", "bc"),
                ("ab", "c"),
                ("a", "b"),
                ("b", "b"),
            ] {
                samples.of(source, subject).add("m", Some(1.0));
                samples.add_machine("m", None);
            }
            let expected = ["a,bc", "a,bc", "ab,c", "a,b", "b,b"];
            let expected = expected.map(|names| format!("{time_ns},{names},m,1\n"));
            assert_eq!(samples.string(), expected.concat());
        }
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
            samples.string(),
            "5,machine,machine,vm.cs,1.5\n5,machine,machine,vm.bo,0\n"
        );
    }
}
