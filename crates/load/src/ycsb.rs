//! What YCSB 0.17.0 calls Zipfian, draw for draw: its `ScrambledZipfianGenerator` as its
//! `CoreWorkload` uses it. For comparison with what others measured; [`crate::Zipf`] is the law itself.
//!
//! Ranks come from the approximation of J. Gray et al., "Quickly generating billion-record synthetic
//! databases", SIGMOD 1994, and are hashed onto the keys. Known faults, kept:
//!
//! - Ranks are drawn from 10^10 + 1 items whatever the size of the data set, and hashed onto the keys,
//!   so the law is not Zipf's over the keys. Of 1000 keys the most popular gets 4 % of the operations
//!   instead of 13 %; 71 % come from ranks beyond the thousandth, and fall on all keys about evenly.
//! - The hash lets ranks collide. The first n ranks reach between 46 % and 86 % of n keys, depending on
//!   n (1000: 63 %, 100,000: 69 %); only the long tail of the 10^10 ranks reaches them all.
//! - The exponent is 0.99 and cannot be changed.
//! - The data set is taken to be larger by one key than it is, and by twice the expected inserts; what
//!   does not exist is drawn again.
//!
//! YCSB itself counts keys and operations in 32 bits signed; beyond them this goes on without overflow.

use crate::Random;

/// `ZipfianGenerator.ZIPFIAN_CONSTANT`.
const THETA: f64 = 0.99;

/// `ScrambledZipfianGenerator.ITEM_COUNT`, which it takes as the last item, from 0 on.
const ITEMS: u64 = 10_000_000_000 + 1;

/// `ScrambledZipfianGenerator.ZETAN`: the sum of k^-0.99 over `ITEM_COUNT` ranks.
const ZETAN: f64 = 26.469_028_201_783_02;

/// After so many keys that do not exist, a hash is taken modulo those that do. YCSB would go on, for
/// ever where the few keys of a data set that is to grow a lot are no rank's hash.
const REDRAWS: u32 = 1 << 20;

/// Gray's approximation of Zipf's law.
#[derive(Clone, Debug)]
struct Gray {
    items: f64,
    zetan: f64,
    alpha: f64,
    eta: f64,
    /// Where the second item ends, in units of the first one's weight.
    second: f64,
}

impl Gray {
    /// Items 0 to `items` - 1, whose weights k^-0.99 sum to `zetan`. Each term stands as YCSB has it:
    /// rounding is part of the sequence.
    fn new(items: u64, zetan: f64) -> Self {
        let items = items as f64;
        let zeta2 = 1.0 + 1.0 / 2f64.powf(THETA);
        Self {
            items,
            zetan,
            alpha: 1.0 / (1.0 - THETA),
            eta: (1.0 - (2.0 / items).powf(1.0 - THETA)) / (1.0 - zeta2 / zetan),
            second: 1.0 + 0.5f64.powf(THETA),
        }
    }

    /// The item that a number in `[0, 1)` stands for.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // above 0, and at most `items`
    #[allow(clippy::suboptimal_flops)] // a fused product would round otherwise than Java
    fn item(&self, uniform: f64) -> u64 {
        let weight = uniform * self.zetan;
        if weight < 1.0 {
            return 0;
        }
        if weight < self.second {
            return 1;
        }
        (self.items * (self.eta * uniform - self.eta + 1.0).powf(self.alpha)) as u64
    }
}

/// The keys of a data set as YCSB's `zipfian` request distribution chooses them.
#[derive(Clone, Debug)]
pub(crate) struct YcsbZipf {
    ranks: Gray,
    /// How many keys YCSB takes the data set to have in the end.
    modulus: u64,
}

impl YcsbZipf {
    /// For a data set of `records` to which `operations`, of which this share inserts, will be applied.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // not below 0, and saturating
    pub(crate) fn new(records: u64, operations: u64, inserts: f64) -> Self {
        // Twice the inserts is YCSB's allowance. What it hands on as the size is taken for the last
        // key, hence one more.
        let expected = (operations as f64 * inserts * 2.0) as u64;
        Self::over(records.saturating_add(expected).saturating_add(1))
    }

    fn over(modulus: u64) -> Self {
        Self {
            ranks: Gray::new(ITEMS, ZETAN),
            modulus,
        }
    }

    /// A key below `limit`.
    #[inline]
    pub(crate) fn sample(&self, limit: u64, rng: &mut Random) -> u64 {
        self.key(limit, || rng.next_f64())
    }

    /// The key below `limit` (at least 1) that these numbers in `[0, 1)` lead to.
    #[inline]
    fn key(&self, limit: u64, mut uniform: impl FnMut() -> f64) -> u64 {
        for _ in 0..REDRAWS {
            let key = self.scrambled(uniform());
            if key < limit {
                return key;
            }
        }
        self.scrambled(uniform()) % limit
    }

    #[inline]
    fn scrambled(&self, uniform: f64) -> u64 {
        hash(self.ranks.item(uniform)) % self.modulus
    }
}

/// `Utils.fnvhash64`: the 64-bit hash FNV-1a of the eight bytes, the lowest first, without its sign.
#[inline]
fn hash(value: u64) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in value.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash.cast_signed().unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// What YCSB itself drew: see the README beside the file.
    const GOLDEN: &str = include_str!("../tests/golden/ycsb-0.17.0.txt");

    /// A section's parameters by name, and its lines.
    struct Section {
        parameters: HashMap<&'static str, &'static str>,
        lines: Vec<&'static str>,
    }

    impl Section {
        fn number(&self, name: &str) -> u64 {
            self.parameters[name].parse().unwrap()
        }

        fn bits(&self, name: &str) -> f64 {
            f64::from_bits(u64::from_str_radix(self.parameters[name], 16).unwrap())
        }
    }

    /// The sections of this name, in the order of the file.
    fn sections(name: &str) -> Vec<Section> {
        let mut found: Vec<Section> = Vec::new();
        let mut wanted = false;
        for line in GOLDEN.lines() {
            if let Some(title) = line.strip_prefix('[') {
                let mut words = title.trim_end_matches(']').split(' ');
                wanted = words.next() == Some(name);
                if wanted {
                    let parameters = words.map(|word| word.split_once('=').unwrap()).collect();
                    let lines = Vec::new();
                    found.push(Section { parameters, lines });
                }
            } else if wanted {
                found.last_mut().unwrap().lines.push(line);
            }
        }
        found
    }

    /// The uniform numbers of a line, and the integers that follow.
    fn draw(line: &str) -> (Vec<f64>, Vec<u64>) {
        let mut words = line.split(' ');
        let uniform =
            |digits| u64::from_str_radix(digits, 16).unwrap() as f64 / (1u64 << 53) as f64;
        let uniforms = words.next().unwrap().split(',').map(uniform).collect();
        (uniforms, words.map(|word| word.parse().unwrap()).collect())
    }

    #[test]
    fn the_hash_is_that_of_ycsb() {
        let lines = &sections("hash")[0].lines;
        assert_eq!(lines.len(), 25);
        for line in lines {
            let (value, hashed) = line.split_once(' ').unwrap();
            assert_eq!(
                hash(value.parse().unwrap()),
                hashed.parse().unwrap(),
                "{value}"
            );
        }
    }

    #[test]
    fn ranks_are_those_of_ycsb_draw_for_draw() {
        let section = &sections("zipfian")[0];
        let items = section.number("items");
        let zetan = (1..=items).fold(0.0, |sum, k| sum + 1.0 / (k as f64).powf(THETA));
        assert_eq!(zetan.to_bits(), section.bits("zetan").to_bits());
        let gray = Gray::new(items, zetan);
        assert_eq!(gray.eta.to_bits(), section.bits("eta").to_bits());
        assert_eq!(section.lines.len(), 1000);
        for line in &section.lines {
            let (uniforms, numbers) = draw(line);
            assert_eq!(vec![gray.item(uniforms[0])], numbers, "{line}");
        }
    }

    #[test]
    fn scrambled_keys_are_those_of_ycsb_draw_for_draw() {
        let sections = sections("scrambled");
        assert_eq!(sections.len(), 3);
        for section in sections {
            let generator = YcsbZipf::over(section.number("items"));
            for (ours, name) in [
                (generator.ranks.zetan, "zetan"),
                (generator.ranks.alpha, "alpha"),
                (generator.ranks.eta, "eta"),
            ] {
                assert_eq!(ours.to_bits(), section.bits(name).to_bits(), "{name}");
            }
            assert_eq!(section.lines.len(), 1000);
            for line in section.lines {
                let (uniforms, numbers) = draw(line);
                assert_eq!(vec![generator.scrambled(uniforms[0])], numbers, "{line}");
            }
        }
    }

    /// With the allowance for inserts and the keys drawn again because they do not exist yet.
    #[test]
    fn a_workload_chooses_the_keys_of_ycsb_draw_for_draw_while_inserts_go_on() {
        let sections = sections("workload");
        assert_eq!(sections.len(), 3);
        for section in sections {
            let inserts = section.parameters["inserts"].parse().unwrap();
            let (records, operations) = (section.number("records"), section.number("operations"));
            let generator = YcsbZipf::new(records, operations, inserts);
            assert_eq!(section.lines.len(), 1000);
            for line in section.lines {
                let (uniforms, numbers) = draw(line);
                let mut left = uniforms.into_iter();
                let key = generator.key(numbers[1], || left.next().unwrap());
                assert_eq!((key, left.next()), (numbers[0], None), "{line}");
            }
        }
    }

    #[test]
    fn a_data_set_that_is_to_grow_a_lot_still_gives_keys_that_exist() {
        let generator = YcsbZipf::new(1, u64::MAX, 1.0);
        assert_eq!(generator.sample(1, &mut Random::new(1, 0)), 0);
    }

    /// Backs the figures in the head of this file.
    #[test]
    fn the_first_ranks_of_ycsb_do_not_reach_all_keys() {
        for (keys, reached) in [(1000, 0.631), (10_000, 0.519), (100_000, 0.688)] {
            let mut seen = vec![false; keys];
            // Without inserts the keys are taken to be one more.
            for place in (0..keys).map(|rank| hash(rank as u64) % (keys as u64 + 1)) {
                if let Some(seen) = seen.get_mut(usize::try_from(place).unwrap()) {
                    *seen = true;
                }
            }
            let share = seen.iter().filter(|&&seen| seen).count() as f64 / keys as f64;
            assert!((share - reached).abs() < 0.001, "{keys}: {share}");
        }
    }
}
