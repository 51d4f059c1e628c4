//! Numbers as attributes have them: constant, or drawn anew each time they are read.

use std::sync::Arc;

use dyno_load::Random;
use dyno_wml::Distribution;

/// What an attribute is.
#[derive(Clone, Debug)]
pub enum Number {
    /// The same each time.
    Constant(u64),
    /// Drawn from the thread's own random numbers.
    Random(Arc<Distribution>),
}

impl Number {
    /// Its value now.
    pub fn sample(&self, random: &mut Random) -> f64 {
        match self {
            Self::Constant(value) => *value as f64,
            Self::Random(distribution) => distribution.sample(random),
        }
    }

    /// Its value now as a whole number; what is below 0 is 0.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // that is what is wanted
    pub fn whole(&self, random: &mut Random) -> u64 {
        match self {
            Self::Constant(value) => *value,
            Self::Random(distribution) => distribution.sample(random) as u64,
        }
    }

    /// Whether it is 0 each time.
    pub const fn is_zero(&self) -> bool {
        matches!(self, Self::Constant(0))
    }

    /// In words.
    pub fn describe(&self) -> String {
        match self {
            Self::Constant(value) => value.to_string(),
            Self::Random(_) => "at random".to_owned(),
        }
    }
}

/// A whole number as an index into memory; what does not fit is the largest.
pub fn index(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A number with the gamma distribution of that shape and mean.
///
/// Marsaglia and Tsang 2000, "A simple method for generating gamma variables"; below shape 1 by the power of a
/// uniform number, as they say.
pub fn gamma(random: &mut Random, shape: f64, mean: f64) -> f64 {
    if shape < 1.0 {
        let power = (1.0 - random.next_f64()).powf(1.0 / shape);
        return standard_gamma(random, shape + 1.0) * power * mean / shape;
    }
    standard_gamma(random, shape) * mean / shape
}

fn standard_gamma(random: &mut Random, shape: f64) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = normal(random);
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 {
            let u = 1.0 - random.next_f64();
            if u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

/// Box and Muller 1958.
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.next_f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.next_f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gamma_numbers_have_their_mean_and_variance() {
        for (shape, mean) in [(0.5, 3.0), (1.0, 20.0), (1.5, 20.0), (7.5, 2.0)] {
            let mut random = Random::new(5, 0);
            let count = 200_000;
            let drawn: Vec<f64> = (0..count).map(|_| gamma(&mut random, shape, mean)).collect();
            let average = drawn.iter().sum::<f64>() / f64::from(count);
            let variance =
                drawn.iter().map(|x| (x - average).powi(2)).sum::<f64>() / f64::from(count);
            assert!((average / mean - 1.0).abs() < 0.02, "{shape} {average}");
            assert!((variance / (mean * mean / shape) - 1.0).abs() < 0.05, "{shape} {variance}");
        }
    }
}
