//! What people at terminals type in: the inputs of transactions, drawn as the specification says.

use dyno_load::Random;

use crate::random::{Constants, LastName, between, chance, stream};
use crate::{Config, DISTRICTS, Kind, MAX_LINES, Mix};

/// A customer of a district, as they name themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buyer {
    /// By their number.
    Number(i64),
    /// By their last name, which others may have too.
    Name(LastName),
}

/// One line of a new order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// What is ordered; an unused number where the order is to be rolled back (2.4.1.5).
    pub item: i64,
    /// Where it comes from.
    pub supply_warehouse: i64,
    /// In `[1, 10]`.
    pub quantity: i64,
}

/// The input of New-Order (2.4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewOrder {
    /// The terminal's warehouse.
    pub warehouse: i64,
    /// One of its districts.
    pub district: i64,
    /// One of its customers.
    pub customer: i64,
    lines: [Line; MAX_LINES],
    count: usize,
}

impl NewOrder {
    /// A new order of these lines, of which there are at most [`MAX_LINES`].
    #[must_use]
    pub fn new(warehouse: i64, district: i64, customer: i64, lines: &[Line]) -> Self {
        let count = lines.len().min(MAX_LINES);
        let mut order = Self {
            warehouse,
            district,
            customer,
            lines: [Line::default(); MAX_LINES],
            count,
        };
        order.lines[..count].copy_from_slice(&lines[..count]);
        order
    }

    /// What is ordered.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines[..self.count]
    }

    /// Whether all of it comes from the terminal's warehouse.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.lines()
            .iter()
            .all(|line| line.supply_warehouse == self.warehouse)
    }
}

/// The input of Payment (2.5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payment {
    /// The terminal's warehouse.
    pub warehouse: i64,
    /// One of its districts.
    pub district: i64,
    /// The warehouse of the customer.
    pub customer_warehouse: i64,
    /// The district of the customer.
    pub customer_district: i64,
    /// Who pays.
    pub customer: Buyer,
    /// In cents.
    pub amount: i64,
}

/// The input of Order-Status (2.6.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderStatus {
    /// The terminal's warehouse.
    pub warehouse: i64,
    /// One of its districts.
    pub district: i64,
    /// Who asks.
    pub customer: Buyer,
}

/// The input of Delivery (2.7.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The terminal's warehouse.
    pub warehouse: i64,
    /// Who carries the orders.
    pub carrier: i64,
}

/// The input of Stock-Level (2.8.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockLevel {
    /// The terminal's warehouse.
    pub warehouse: i64,
    /// The terminal's district.
    pub district: i64,
    /// Stocks below it are counted.
    pub threshold: i64,
}

/// The input of a transaction.
// Each terminal has one, used again and again: no place is wasted, and none is to be found on the heap.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Of New-Order.
    NewOrder(NewOrder),
    /// Of Payment.
    Payment(Payment),
    /// Of Order-Status.
    OrderStatus(OrderStatus),
    /// Of Delivery.
    Delivery(Delivery),
    /// Of Stock-Level.
    StockLevel(StockLevel),
}

impl Input {
    /// Which transaction it is for.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::NewOrder(_) => Kind::NewOrder,
            Self::Payment(_) => Kind::Payment,
            Self::OrderStatus(_) => Kind::OrderStatus,
            Self::Delivery(_) => Kind::Delivery,
            Self::StockLevel(_) => Kind::StockLevel,
        }
    }
}

const INPUTS: u64 = 0x696e_7075_7473;

/// What one terminal is told to do, one transaction after the other.
#[derive(Clone, Debug)]
pub struct Inputs {
    rng: Random,
    constants: Constants,
    mix: Mix,
    rollbacks: f64,
    warehouses: i64,
    items: i64,
    /// Of this terminal, for good (2.4.1.1).
    warehouse: i64,
    /// Of its Stock-Level transactions, for good (2.8.1.1).
    district: i64,
}

impl Inputs {
    /// The inputs of client number `client`, from 0; warehouses are dealt out in turn, then districts.
    #[must_use]
    pub fn new(config: &Config, client: u64) -> Self {
        let warehouses = u64::from(config.warehouses.max(1));
        Self {
            rng: stream(config.seed, INPUTS, client),
            constants: Constants::new(config),
            mix: config.mix,
            rollbacks: config.rollbacks,
            warehouses: warehouses.cast_signed(),
            items: i64::from(config.items),
            warehouse: (client % warehouses).cast_signed() + 1,
            district: (client / warehouses % DISTRICTS.unsigned_abs()).cast_signed() + 1,
        }
    }

    /// The next transaction's input; its kind is drawn by weight (5.2.4.1).
    pub fn draw(&mut self) -> Input {
        let mut left = self.rng.below(100);
        for (kind, weight) in self.mix.weights() {
            if left < *weight {
                return self.of_kind(*kind);
            }
            left -= weight;
        }
        // The weights sum to 100.
        self.of_kind(Kind::NewOrder)
    }

    /// The next input of that kind.
    pub fn of_kind(&mut self, kind: Kind) -> Input {
        match kind {
            Kind::NewOrder => Input::NewOrder(self.new_order()),
            Kind::Payment => Input::Payment(self.payment()),
            Kind::OrderStatus => Input::OrderStatus(OrderStatus {
                warehouse: self.warehouse,
                district: self.any_district(),
                customer: self.buyer(),
            }),
            Kind::Delivery => Input::Delivery(Delivery {
                warehouse: self.warehouse,
                carrier: between(&mut self.rng, 1, 10),
            }),
            Kind::StockLevel => Input::StockLevel(StockLevel {
                warehouse: self.warehouse,
                district: self.district,
                threshold: between(&mut self.rng, 10, 20),
            }),
        }
    }

    fn new_order(&mut self) -> NewOrder {
        let standard = self.mix == Mix::Standard;
        let mut order = NewOrder {
            warehouse: self.warehouse,
            district: self.any_district(),
            customer: self.constants.customer.sample(&mut self.rng),
            lines: [Line::default(); MAX_LINES],
            count: 10,
        };
        let mut unused = false;
        if standard {
            order.count = usize::try_from(between(&mut self.rng, 5, 15)).unwrap_or(10);
            // Drawn whatever the share, so that all else that is asked is the same.
            unused = self.rng.next_f64() < self.rollbacks;
        }
        for line in &mut order.lines[..order.count] {
            let remote = standard && chance(&mut self.rng, 1);
            *line = Line {
                item: self.constants.item.sample(&mut self.rng),
                supply_warehouse: if remote {
                    other_warehouse(&mut self.rng, self.warehouse, self.warehouses)
                } else {
                    self.warehouse
                },
                quantity: between(&mut self.rng, 1, 10),
            };
        }
        let mut known = order.count;
        if unused {
            known -= 1;
            order.lines[known].item = self.items + 1;
        }
        // All terminals take the rows of stocks in one order, so that they do not wait for each other in a
        // circle; the order of lines is free (2.3.1), but the unused item is the last (2.4.1.5).
        order.lines[..known].sort_unstable_by_key(|line| (line.supply_warehouse, line.item));
        order
    }

    fn payment(&mut self) -> Payment {
        let district = self.any_district();
        let mut payment = Payment {
            warehouse: self.warehouse,
            district,
            customer_warehouse: self.warehouse,
            customer_district: district,
            customer: Buyer::Number(0),
            amount: between(&mut self.rng, 100, 500_000),
        };
        if self.mix == Mix::LookingGlass {
            payment.customer = self.numbered();
            return payment;
        }
        if chance(&mut self.rng, 15) {
            payment.customer_warehouse =
                other_warehouse(&mut self.rng, self.warehouse, self.warehouses);
            payment.customer_district = self.any_district();
        }
        payment.customer = self.buyer();
        payment
    }

    fn any_district(&mut self) -> i64 {
        between(&mut self.rng, 1, DISTRICTS)
    }

    /// 60 % by last name (2.5.1.2, 2.6.1.2).
    fn buyer(&mut self) -> Buyer {
        if chance(&mut self.rng, 60) {
            let number = self.constants.last_name_run.sample(&mut self.rng);
            Buyer::Name(LastName::new(number))
        } else {
            self.numbered()
        }
    }

    fn numbered(&mut self) -> Buyer {
        Buyer::Number(self.constants.customer.sample(&mut self.rng))
    }
}

/// Any but the terminal's own, unless it is the only one (2.4.1.5, 2.5.1.2).
fn other_warehouse(rng: &mut Random, home: i64, warehouses: i64) -> i64 {
    if warehouses == 1 {
        return home;
    }
    let other = between(rng, 1, warehouses - 1);
    if other < home { other } else { other + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn share(count: u32, of: u32) -> f64 {
        f64::from(count) / f64::from(of)
    }

    /// Whether a share of so many draws is within five standard deviations of what is expected.
    fn is_near(count: u32, of: u32, expected: f64) -> bool {
        let deviation = (expected * (1.0 - expected) / f64::from(of)).sqrt();
        (share(count, of) - expected).abs() <= 5.0 * deviation
    }

    #[test]
    fn transactions_come_in_their_proportions() {
        for mix in [Mix::Standard, Mix::LookingGlass] {
            let config = Config {
                mix,
                ..Config::new(3, 1)
            };
            let mut inputs = Inputs::new(&config, 0);
            let kinds: Vec<Kind> = (0..50_000).map(|_| inputs.draw().kind()).collect();
            let mut all = 0;
            for (kind, weight) in mix.weights() {
                let count = u32::try_from(kinds.iter().filter(|k| *k == kind).count()).unwrap();
                let expected = f64::from(u32::try_from(*weight).unwrap()) / 100.0;
                assert!(is_near(count, 50_000, expected), "{kind:?} {count}");
                all += count;
            }
            assert_eq!(all, 50_000);
        }
    }

    #[test]
    fn new_orders_have_the_specifications_shares() {
        let mut inputs = Inputs::new(&Config::new(4, 1), 1);
        let (mut lines, mut remote, mut unused, mut sizes) = (0, 0, 0, [0; 16]);
        for _ in 0..30_000 {
            let order = inputs.new_order();
            sizes[order.lines().len()] += 1;
            unused += u32::from(order.lines().iter().any(|line| line.item > 100_000));
            for line in order.lines() {
                lines += 1;
                remote += u32::from(line.supply_warehouse != 2);
            }
        }
        assert!(is_near(unused, 30_000, 0.01), "{unused}");
        assert!(is_near(remote, lines, 0.01), "{remote}");
        assert!(
            sizes[5..=15]
                .iter()
                .all(|size| is_near(*size, 30_000, 1.0 / 11.0)),
            "{sizes:?}"
        );
    }

    #[test]
    fn as_many_new_orders_are_to_be_rolled_back_as_is_asked_and_all_else_stays() {
        let orders = |rollbacks| {
            let config = Config {
                rollbacks,
                ..Config::new(1, 1)
            };
            let mut inputs = Inputs::new(&config, 0);
            (0..10_000).map(|_| inputs.new_order()).collect::<Vec<_>>()
        };
        let unused = |order: &&NewOrder| order.lines().iter().any(|line| line.item > 100_000);
        let [none, some] = [0.0, 0.3].map(orders);
        assert_eq!(none.iter().filter(unused).count(), 0);
        let count = u32::try_from(some.iter().filter(unused).count()).unwrap();
        assert!(is_near(count, 10_000, 0.3), "{count}");
        let others = none.iter().zip(&some).filter(|(none, some)| none != some);
        assert_eq!(others.count(), usize::try_from(count).unwrap());
    }

    #[test]
    fn payments_have_the_specifications_shares() {
        let mut inputs = Inputs::new(&Config::new(4, 1), 1);
        let (mut remote, mut named, mut elsewhere) = (0, 0, 0);
        for _ in 0..30_000 {
            let payment = inputs.payment();
            named += u32::from(matches!(payment.customer, Buyer::Name(_)));
            if payment.customer_warehouse == 2 {
                assert_eq!(payment.customer_district, payment.district);
            } else {
                remote += 1;
                elsewhere += u32::from(payment.customer_district != payment.district);
            }
        }
        assert!(is_near(named, 30_000, 0.6), "{named}");
        assert!(is_near(remote, 30_000, 0.15), "{remote}");
        // The district of a remote customer is drawn anew (2.5.1.2).
        assert!(is_near(elsewhere, remote, 0.9), "{elsewhere}");
    }

    #[test]
    fn terminals_are_dealt_out_over_warehouses_and_then_districts() {
        let config = Config::new(3, 1);
        let at = |client| {
            let inputs = Inputs::new(&config, client);
            (inputs.warehouse, inputs.district)
        };
        let homes = [0, 1, 2, 3, 29, 30].map(at);
        assert_eq!(homes, [(1, 1), (2, 1), (3, 1), (1, 2), (3, 10), (1, 1)]);
    }

    #[test]
    fn a_seed_asks_the_same_again_and_another_client_asks_otherwise() {
        let config = Config::new(2, 9);
        let take = |client| {
            let mut inputs = Inputs::new(&config, client);
            (0..200).map(|_| inputs.draw()).collect::<Vec<_>>()
        };
        assert_eq!(take(0), take(0));
        assert_ne!(take(0), take(2));
    }

    fn check_new_order(order: &NewOrder, config: &Config, home: i64) {
        let (warehouses, items) = (i64::from(config.warehouses), i64::from(config.items));
        assert_eq!(order.warehouse, home);
        assert!((1..=10).contains(&order.district));
        assert!((1..=config.customers()).contains(&order.customer));
        let lines = order.lines();
        let (last, rest) = lines.split_last().unwrap();
        assert!(rest.iter().all(|line| (1..=items).contains(&line.item)));
        for line in lines {
            assert!((1..=10).contains(&line.quantity));
            assert!((1..=warehouses).contains(&line.supply_warehouse));
        }
        if config.mix == Mix::LookingGlass {
            assert!(lines.len() == 10 && last.item <= items && order.is_local());
        } else {
            assert!((5..=15).contains(&lines.len()) && (1..=items + 1).contains(&last.item));
        }
    }

    fn check_buyer(buyer: Buyer, config: &Config) {
        match buyer {
            Buyer::Number(number) => assert!((1..=config.customers()).contains(&number)),
            Buyer::Name(name) => {
                assert_eq!(config.mix, Mix::Standard);
                let names = config.customers().min(1000);
                assert!((0..names).any(|number| LastName::new(number) == name));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn every_input_lies_within_the_specifications_ranges(
            seed: u64, client in 0u64..100, warehouses in 1u32..20, items in 100u32..=100_000,
            customers in 30u32..=3000, looking_glass: bool,
        ) {
            let mix = if looking_glass { Mix::LookingGlass } else { Mix::Standard };
            let config = Config {
                warehouses, items, customers_per_district: customers, mix, ..Config::new(1, seed)
            };
            let home = (client % u64::from(warehouses)).cast_signed() + 1;
            let mut inputs = Inputs::new(&config, client);
            for _ in 0..200 {
                match inputs.draw() {
                    Input::NewOrder(order) => check_new_order(&order, &config, home),
                    Input::Payment(payment) => {
                        prop_assert_eq!(payment.warehouse, home);
                        prop_assert!((1..=10).contains(&payment.district));
                        prop_assert!((1..=10).contains(&payment.customer_district));
                        prop_assert!((1..=i64::from(warehouses)).contains(&payment.customer_warehouse));
                        prop_assert!((100..=500_000).contains(&payment.amount));
                        check_buyer(payment.customer, &config);
                    }
                    Input::OrderStatus(status) => {
                        prop_assert_eq!(status.warehouse, home);
                        prop_assert!((1..=10).contains(&status.district));
                        check_buyer(status.customer, &config);
                    }
                    Input::Delivery(delivery) => {
                        prop_assert_eq!(delivery.warehouse, home);
                        prop_assert!((1..=10).contains(&delivery.carrier));
                    }
                    Input::StockLevel(level) => {
                        prop_assert_eq!(level.warehouse, home);
                        prop_assert!((1..=10).contains(&level.district));
                        prop_assert!((10..=20).contains(&level.threshold));
                    }
                }
            }
        }

        #[test]
        fn another_warehouse_is_never_the_own_one(seed: u64, warehouses in 2i64..50, home in 0i64..50) {
            let home = home % warehouses + 1;
            let other = other_warehouse(&mut Random::new(seed, 0), home, warehouses);
            prop_assert!(other != home && (1..=warehouses).contains(&other));
        }
    }
}
