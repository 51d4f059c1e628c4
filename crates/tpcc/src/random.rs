//! The random values of the specification's 2.1.6 and 4.3.2.

use dyno_load::{Random, mix64};

use crate::{CUSTOMERS, Config, ITEMS};

/// A number in `[low, high]`, each as likely as any other (4.3.2.5).
#[inline]
pub fn between(rng: &mut Random, low: i64, high: i64) -> i64 {
    low + below(rng, high - low + 1)
}

/// Whether something happens that happens `percent` times in a hundred.
#[inline]
pub fn chance(rng: &mut Random, percent: i64) -> bool {
    below(rng, 100) < percent
}

#[inline]
fn below(rng: &mut Random, bound: i64) -> i64 {
    rng.below(bound.unsigned_abs()).cast_signed()
}

/// Non-uniform numbers: some are asked for much more often than others (2.1.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NuRand {
    a: i64,
    c: i64,
    low: i64,
    high: i64,
}

impl NuRand {
    /// NURand(a, low, high) with the run-time constant `c`.
    #[must_use]
    pub const fn new(a: i64, c: i64, low: i64, high: i64) -> Self {
        Self { a, c, low, high }
    }

    /// The next number, in `[low, high]`.
    #[inline]
    pub fn sample(&self, rng: &mut Random) -> i64 {
        let both = between(rng, 0, self.a) | between(rng, self.low, self.high);
        (both + self.c) % (self.high - self.low + 1) + self.low
    }
}

/// C-Load of last names (2.1.6.1). A constant, since the runs, whose seeds may be others than that of the
/// load, must keep their distance from it.
const LAST_NAME_C_LOAD: i64 = 123;

/// How far C-Run may lie from C-Load: within these bounds and at neither of these two (2.1.6.1).
const C_DELTA: (i64, i64) = (65, 119);
const C_DELTA_EXCLUDED: [i64; 2] = [96, 112];

const CONSTANTS: u64 = 0x636f_6e73_7461_6e74;

/// The distributions that all terminals share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// Numbers of last names, while loading.
    pub last_name_load: NuRand,
    /// Numbers of last names, in transactions.
    pub last_name_run: NuRand,
    /// Customers of a district.
    pub customer: NuRand,
    /// Items.
    pub item: NuRand,
}

impl Constants {
    /// Those of a configuration: drawn from its seed, the same for all terminals.
    ///
    /// Smaller data sets than the specification's keep about the same ratio of A to the range: A is halved
    /// as often as the range is.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        let mut rng = Random::new(config.seed ^ CONSTANTS, 0);
        let names = config.customers_per_district.min(LAST_NAMES);
        let a_name = scaled(255, LAST_NAMES, names);
        let a_customer = scaled(1023, CUSTOMERS, config.customers_per_district);
        let a_item = scaled(8191, ITEMS, config.items);
        let name = |c| NuRand::new(a_name, c, 0, i64::from(names) - 1);
        Self {
            last_name_load: name(LAST_NAME_C_LOAD),
            last_name_run: name(c_run(&mut rng)),
            customer: NuRand::new(
                a_customer,
                between(&mut rng, 0, a_customer),
                1,
                config.customers(),
            ),
            item: NuRand::new(
                a_item,
                between(&mut rng, 0, a_item),
                1,
                i64::from(config.items),
            ),
        }
    }
}

const fn scaled(a: i64, full: u32, size: u32) -> i64 {
    match full.checked_div(size) {
        Some(ratio) if ratio > 1 => a >> ratio.ilog2(),
        _ => a,
    }
}

fn c_run(rng: &mut Random) -> i64 {
    let delta = loop {
        let delta = between(rng, C_DELTA.0, C_DELTA.1);
        if !C_DELTA_EXCLUDED.contains(&delta) {
            break delta;
        }
    };
    // Both lie within [0, 255], whatever the distance.
    if chance(rng, 50) {
        LAST_NAME_C_LOAD + delta
    } else {
        LAST_NAME_C_LOAD - delta
    }
}

/// How many last names there are.
pub const LAST_NAMES: u32 = 1_000;

const SYLLABLES: [&str; 10] = [
    "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING",
];

/// A customer's last name (4.3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastName {
    /// Three syllables of at most five letters.
    text: [u8; 15],
    length: usize,
}

impl LastName {
    /// The name with that number, in `[0, 999]`.
    #[must_use]
    pub fn new(number: i64) -> Self {
        let mut name = Self {
            text: [0; 15],
            length: 0,
        };
        for divisor in [100, 10, 1] {
            let digit = usize::try_from(number / divisor % 10).unwrap_or_default();
            let syllable = SYLLABLES[digit].as_bytes();
            name.text[name.length..name.length + syllable.len()].copy_from_slice(syllable);
            name.length += syllable.len();
        }
        name
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // Syllables are ASCII.
        std::str::from_utf8(&self.text[..self.length]).unwrap_or_default()
    }
}

const LETTERS: &[u8; 52] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
const ALPHANUMERIC: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const DIGITS: &[u8; 10] = b"0123456789";

fn push(text: &mut String, rng: &mut Random, alphabet: &[u8], length: i64) {
    for _ in 0..length {
        let place = below(rng, alphabet.len().cast_signed() as i64);
        text.push(char::from(
            alphabet[usize::try_from(place).unwrap_or_default()],
        ));
    }
}

/// Appends a random a-string of `[shortest, longest]` characters (4.3.2.2).
pub fn push_a_string(text: &mut String, rng: &mut Random, shortest: i64, longest: i64) {
    let length = between(rng, shortest, longest);
    push(text, rng, ALPHANUMERIC, length);
}

/// Appends so many random letters.
pub fn push_letters(text: &mut String, rng: &mut Random, length: i64) {
    push(text, rng, LETTERS, length);
}

/// Appends a random n-string of that length (4.3.2.2).
pub fn push_digits(text: &mut String, rng: &mut Random, length: i64) {
    push(text, rng, DIGITS, length);
}

/// Appends a zip code (4.3.2.7).
pub fn push_zip(text: &mut String, rng: &mut Random) {
    push_digits(text, rng, 4);
    text.push_str("11111");
}

/// What a tenth of the items and stocks hold in their data.
pub const ORIGINAL: &str = "ORIGINAL";

/// Appends the data of an item or a stock: an a-string of 26 to 50, with [`ORIGINAL`] somewhere in a tenth
/// of them (4.3.3.1).
pub fn push_data(text: &mut String, rng: &mut Random) {
    let length = between(rng, 26, 50);
    if chance(rng, 10) {
        let rest = length - 8;
        let before = between(rng, 0, rest);
        push(text, rng, ALPHANUMERIC, before);
        text.push_str(ORIGINAL);
        push(text, rng, ALPHANUMERIC, rest - before);
    } else {
        push(text, rng, ALPHANUMERIC, length);
    }
}

/// The numbers 1 to `n` in a random order (4.3.2.6), by the shuffle of Fisher and Yates.
pub fn permutation(rng: &mut Random, n: i64) -> Vec<i64> {
    let mut numbers: Vec<i64> = (1..=n).collect();
    for last in (1..numbers.len()).rev() {
        let other = usize::try_from(rng.below(last as u64 + 1)).unwrap_or(last);
        numbers.swap(last, other);
    }
    numbers
}

/// The generator of one purpose: other purposes of the same seed draw other numbers.
pub const fn stream(seed: u64, purpose: u64, number: u64) -> Random {
    Random::new(mix64(seed ^ purpose), number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn last_names_are_those_of_the_specification() {
        assert_eq!(LastName::new(371).as_str(), "PRICALLYOUGHT");
        assert_eq!(LastName::new(40).as_str(), "BARPRESBAR");
        assert_eq!(LastName::new(0).as_str(), "BARBARBAR");
        assert_eq!(LastName::new(999).as_str(), "EINGEINGEING");
        let names: std::collections::HashSet<String> = (0..1000)
            .map(|number| LastName::new(number).as_str().to_owned())
            .collect();
        assert_eq!(names.len(), 1000);
        assert!(names.iter().all(|name| name.len() <= 16));
    }

    /// The exact probability of each number of NURand(a, low, high), by going through all pairs.
    fn law(nurand: &NuRand) -> Vec<f64> {
        let range = usize::try_from(nurand.high - nurand.low + 1).unwrap();
        let mut counts = vec![0.0; range];
        for first in 0..=nurand.a {
            for second in nurand.low..=nurand.high {
                let place = ((first | second) + nurand.c) % (nurand.high - nurand.low + 1);
                counts[usize::try_from(place).unwrap()] += 1.0;
            }
        }
        let pairs = (nurand.a + 1) as f64 * range as f64;
        counts.into_iter().map(|count| count / pairs).collect()
    }

    /// Chi-squared of draws against a law, with classes pooled until each expects 20, in standard
    /// deviations above its mean (chi-squared of k classes has mean k - 1 and variance 2 (k - 1)).
    fn deviation(law: &[f64], draws: u32, mut draw: impl FnMut() -> usize) -> f64 {
        let mut counts = vec![0.0; law.len()];
        for _ in 0..draws {
            counts[draw()] += 1.0;
        }
        let (mut statistic, mut classes, mut expected, mut seen) = (0.0, 0.0_f64, 0.0, 0.0);
        for (share, count) in law.iter().zip(counts) {
            expected += share * f64::from(draws);
            seen += count;
            if expected >= 20.0 {
                statistic += (seen - expected) * (seen - expected) / expected;
                classes += 1.0;
                (expected, seen) = (0.0, 0.0);
            }
        }
        assert!(classes > 10.0);
        (statistic - (classes - 1.0)) / (2.0 * (classes - 1.0)).sqrt()
    }

    fn names_drawn_by(nurand: NuRand) -> impl FnMut() -> usize {
        let mut rng = Random::new(5, 0);
        move || usize::try_from(nurand.sample(&mut rng) - nurand.low).unwrap()
    }

    #[test]
    fn non_uniform_numbers_follow_the_specifications_law() {
        let constants = Constants::new(&Config::new(1, 7));
        for nurand in [constants.last_name_run, constants.customer] {
            let off = deviation(&law(&nurand), 300_000, names_drawn_by(nurand));
            assert!(off < 4.0, "{off} standard deviations");
        }
    }

    #[test]
    fn the_test_of_the_law_sees_another_constant() {
        let law = law(&NuRand::new(255, 10, 0, 999));
        let off = deviation(&law, 300_000, names_drawn_by(NuRand::new(255, 11, 0, 999)));
        assert!(off > 10.0, "{off} standard deviations");
    }

    /// Facts of the distribution: J. T. Leutenegger and D. Dias 1993, "A modeling study of the TPC-C
    /// benchmark", find that 84 % of the accesses go to the hottest 20 % of the items.
    #[test]
    fn a_fifth_of_the_items_takes_most_of_the_accesses() {
        let item = Constants::new(&Config::new(1, 7)).item;
        let mut rng = Random::new(1, 0);
        let mut counts = vec![0u32; 100_000];
        for _ in 0..2_000_000 {
            counts[usize::try_from(item.sample(&mut rng) - 1).unwrap()] += 1;
        }
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let hot: u32 = counts[..20_000].iter().sum();
        let share = f64::from(hot) / 2_000_000.0;
        assert!((0.82..0.86).contains(&share), "{share}");
    }

    #[test]
    fn zip_codes_and_data_have_their_form() {
        let mut rng = Random::new(3, 0);
        let (mut text, mut original) = (String::new(), 0);
        for _ in 0..10_000 {
            text.clear();
            push_zip(&mut text, &mut rng);
            assert!(text.len() == 9 && text.ends_with("11111"));
            text.clear();
            push_data(&mut text, &mut rng);
            assert!((26..=50).contains(&text.len()), "{text}");
            original += u32::from(text.contains(ORIGINAL));
        }
        // 1,000 expected with a standard deviation of 30; 4.3.3.1 allows 5 % in each direction.
        assert!((880..1120).contains(&original), "{original}");
    }

    #[test]
    fn every_number_is_once_in_a_permutation_and_any_may_be_first() {
        let mut rng = Random::new(3, 0);
        let mut first = [0u32; 10];
        for _ in 0..10_000 {
            let mut numbers = permutation(&mut rng, 10);
            first[usize::try_from(numbers[0] - 1).unwrap()] += 1;
            numbers.sort_unstable();
            assert_eq!(numbers, (1..=10).collect::<Vec<_>>());
        }
        // 1,000 expected, standard deviation 30.
        assert!(
            first.iter().all(|count| (850..1150).contains(count)),
            "{first:?}"
        );
    }

    proptest! {
        #[test]
        fn last_names_of_runs_keep_their_distance_from_those_loaded(seed: u64) {
            let constants = Constants::new(&Config::new(1, seed));
            let (load, run) = (constants.last_name_load.c, constants.last_name_run.c);
            let delta = (load - run).abs();
            prop_assert!((0..=255).contains(&run) && (0..=255).contains(&load));
            prop_assert!((65..=119).contains(&delta) && delta != 96 && delta != 112);
            prop_assert!((0..=1023).contains(&constants.customer.c));
            prop_assert!((0..=8191).contains(&constants.item.c));
        }

        #[test]
        fn non_uniform_numbers_of_any_scale_lie_within_their_range(
            seed: u64, items in 100u32..=ITEMS, customers in 30u32..=CUSTOMERS,
        ) {
            let config = Config { items, customers_per_district: customers, ..Config::new(1, seed) };
            let constants = Constants::new(&config);
            let mut rng = Random::new(seed, 0);
            for _ in 0..100 {
                prop_assert!((1..=i64::from(items)).contains(&constants.item.sample(&mut rng)));
                prop_assert!((1..=i64::from(customers)).contains(&constants.customer.sample(&mut rng)));
                let names = 0..i64::from(customers.min(1000));
                prop_assert!(names.contains(&constants.last_name_run.sample(&mut rng)));
                prop_assert!(names.contains(&constants.last_name_load.sample(&mut rng)));
            }
        }
    }
}
