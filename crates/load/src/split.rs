//! Shares a number of operations between clients exactly.

/// What client number `client` (of `clients`, from 0) does of `total`; the shares sum to `total` and
/// differ by at most one.
#[must_use]
pub const fn share(total: u64, clients: u64, client: u64) -> u64 {
    total / clients + (client < total % clients) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shares_sum_to_the_whole_and_differ_by_at_most_one(total: u64, clients in 1u64..5000) {
            let shares: Vec<u64> = (0..clients).map(|client| share(total, clients, client)).collect();
            prop_assert_eq!(shares.iter().sum::<u64>(), total);
            prop_assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
        }
    }
}
