//! How long the people at terminals type and think (5.2.5). The driver does the waiting.

use std::time::Duration;

use dyno_load::Random;

use crate::Kind;

/// How long somebody types in a transaction before it begins (5.2.5.7).
#[must_use]
pub const fn keying_time(kind: Kind) -> Duration {
    Duration::from_secs(match kind {
        Kind::NewOrder => 18,
        Kind::Payment => 3,
        Kind::OrderStatus | Kind::Delivery | Kind::StockLevel => 2,
    })
}

/// How long somebody thinks on average after a transaction (5.2.5.7).
const fn mean_think_time(kind: Kind) -> Duration {
    Duration::from_secs(match kind {
        Kind::NewOrder | Kind::Payment => 12,
        Kind::OrderStatus => 10,
        Kind::Delivery | Kind::StockLevel => 5,
    })
}

/// How long somebody thinks after a transaction: negative exponential, cut at ten times the mean (5.2.5.4).
pub fn think_time(kind: Kind, rng: &mut Random) -> Duration {
    // In (0, 1], so that the logarithm is finite.
    let r = 1.0 - rng.next_f64();
    mean_think_time(kind).mul_f64((-r.ln()).min(10.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_takes_its_mean_and_never_more_than_ten_times_that() {
        let mut rng = Random::new(1, 0);
        for (kind, mean) in Kind::ALL.into_iter().zip([12.0, 12.0, 10.0, 5.0, 5.0]) {
            let times: Vec<f64> = (0..100_000)
                .map(|_| think_time(kind, &mut rng).as_secs_f64())
                .collect();
            // Its standard deviation is the mean, so that of the average of 10^5 is 0.3 % of it.
            let average = times.iter().sum::<f64>() / 100_000.0;
            assert!((average / mean - 1.0).abs() < 0.015, "{kind:?}: {average}");
            let longer = times.iter().filter(|time| **time > mean).count();
            // e^-1 of an exponential law lies above its mean.
            assert!((36_000..37_600).contains(&longer), "{kind:?}: {longer}");
            assert!(times.iter().all(|time| *time <= 10.0 * mean));
        }
    }

    #[test]
    fn typing_takes_as_long_as_the_specification_says() {
        let seconds = Kind::ALL.map(|kind| keying_time(kind).as_secs());
        assert_eq!(seconds, [18, 3, 2, 2, 2]);
    }
}
