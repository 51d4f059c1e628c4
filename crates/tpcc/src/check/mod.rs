//! The consistency conditions of 3.3.2: inside the store where it takes SQL, over scans of its tables elsewhere.

mod scan;
mod sql;

use std::fmt::Write as _;

use dyno_sql::{Connection, Error, ErrorKind, Result};

use crate::{Config, DISTRICTS};
pub use scan::Scan;

/// What was found of one condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The condition.
    pub name: String,
    /// Whether it holds.
    pub holds: bool,
    /// What was compared, and the first that differs.
    pub detail: String,
}

/// How much is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Conditions 1 to 4, which the specification demands to be shown (3.3.2).
    Demanded,
    /// All that hold at any time: 1 to 10 and 12. Those from 5 on look at each order and each customer.
    All,
    /// All twelve, for data just loaded: 11 holds only until the first Delivery.
    Loaded,
}

/// Verifies the conditions, from the first on, while nothing else changes the store. An error where it has
/// warehouses beyond those of `config`: nothing would be known of them.
pub fn check<C: Connection>(
    connection: &mut C,
    config: &Config,
    extent: Extent,
) -> Result<Vec<Check>> {
    verify(&mut sql::Asked::new(connection, config), config, extent)
}

/// As [`check`], of a store that takes no SQL: each table is gone through once.
pub fn check_scans(store: &mut impl Scan, config: &Config, extent: Extent) -> Result<Vec<Check>> {
    verify(&mut scan::Books::read(store, config)?, config, extent)
}

fn verify(source: &mut impl Source, config: &Config, extent: Extent) -> Result<Vec<Check>> {
    refuse_others(source, config)?;
    let mut checks = Vec::new();
    for condition in conditions(config) {
        let wanted = match condition.when {
            When::Always => true,
            When::OnDemand => extent != Extent::Demanded,
            When::Loaded => extent == Extent::Loaded,
        };
        if wanted {
            checks.push(condition.verify(source, config)?);
        }
    }
    Ok(checks)
}

fn refuse_others(source: &mut impl Source, config: &Config) -> Result<()> {
    let most = i64::from(config.warehouses);
    for table in ["warehouse", "district"] {
        let ends = source.warehouses(table)?;
        let other = ends
            .into_iter()
            .flatten()
            .find(|number| !(1..=most).contains(number));
        if let Some(other) = other {
            return Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "the table {table} has warehouse {other}, and warehouses 1 to {most} are to be verified: \
                     give as many warehouses as were loaded"
                ),
            ));
        }
    }
    Ok(())
}

/// Is shown a row: what its keys name, then the values.
type Each<'e> = &'e mut dyn FnMut(&[i64], &[Option<i64>]);

/// Whoever says what there is to compare.
trait Source {
    /// The lowest and the highest warehouse that a table names; the table is `warehouse` or `district`.
    fn warehouses(&mut self, table: &str) -> Result<[Option<i64>; 2]>;

    /// Shows the rows that the condition of that number compares, of one warehouse or, where its scope is
    /// everything, of all: first what its keys name, then the values. Gives how many there were.
    fn rows(&mut self, condition: &Condition, warehouse: i64, each: Each<'_>) -> Result<i64>;
}

/// From which extent on a condition is verified.
enum When {
    Always,
    OnDemand,
    Loaded,
}

/// Over what a condition is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Each warehouse by itself.
    Warehouse,
    /// All at once.
    Everything,
}

/// How many rows the answer must have.
enum Answer {
    /// Those that differ, at most the first.
    Differing,
    /// All that were compared, so many a warehouse at least.
    Compared(i64),
}

/// A condition. A row of what it compares is what its keys name, then the values that must all be equal; one
/// that is NULL equals none, but may be missing where `optional`.
struct Condition {
    number: u32,
    /// The relationship.
    text: String,
    when: When,
    scope: Scope,
    answer: Answer,
    keys: &'static [&'static str],
    values: usize,
    /// Whether the last value may be NULL: the condition does not apply to it then.
    optional: bool,
}

#[derive(Default)]
struct Findings {
    wrong: u64,
    first: String,
}

impl Condition {
    fn verify(&self, source: &mut impl Source, config: &Config) -> Result<Check> {
        let mut findings = Findings::default();
        let mut short = None;
        let warehouses = match self.scope {
            Scope::Warehouse => i64::from(config.warehouses),
            Scope::Everything => 1,
        };
        for warehouse in 1..=warehouses {
            let rows = source.rows(self, warehouse, &mut |keys, values| {
                self.compare(warehouse, keys, values, &mut findings);
            })?;
            if let Answer::Compared(least) = self.answer
                && rows < least
                && short.is_none()
            {
                short = Some((warehouse, rows, least));
            }
        }
        Ok(self.conclude(config, &findings, short))
    }

    fn compare(
        &self,
        warehouse: i64,
        keys: &[i64],
        values: &[Option<i64>],
        findings: &mut Findings,
    ) {
        let values = match values.split_last() {
            Some((None, others)) if self.optional => others,
            _ => values,
        };
        let equal = values
            .iter()
            .all(|value| value.is_some() && *value == values[0]);
        if !equal {
            findings.wrong += 1;
            if findings.first.is_empty() {
                let mut named: Vec<String> = Vec::new();
                if self.scope == Scope::Warehouse {
                    named.push(format!("warehouse {warehouse}"));
                }
                named.extend(
                    self.keys
                        .iter()
                        .zip(keys)
                        .map(|(name, key)| format!("{name} {key}")),
                );
                let shown: Vec<String> = values
                    .iter()
                    .map(|value| value.map_or("none".to_owned(), |number| number.to_string()))
                    .collect();
                findings.first = format!("{}: {}", named.join(", "), shown.join(", "));
            }
        }
    }

    fn conclude(
        &self,
        config: &Config,
        findings: &Findings,
        short: Option<(i64, i64, i64)>,
    ) -> Check {
        let mut detail = format!("{}, in warehouses 1 to {}", self.text, config.warehouses);
        if findings.wrong > 0 {
            let _ = write!(detail, "; differs in {}", findings.first);
        }
        if let Some((warehouse, rows, least)) = short {
            let _ = write!(
                detail,
                "; warehouse {warehouse} has {rows} to compare instead of {least}"
            );
        }
        Check {
            name: format!("condition {}", self.number),
            holds: findings.wrong == 0 && short.is_none(),
            detail,
        }
    }
}

fn conditions(config: &Config) -> [Condition; 12] {
    let district = &["district"][..];
    let order = &["district", "order"][..];
    let a_district = |number, text: &str, values, optional| Condition {
        number,
        text: text.to_owned(),
        when: When::Always,
        scope: Scope::Warehouse,
        answer: Answer::Compared(DISTRICTS),
        keys: district,
        values,
        optional,
    };
    let each = |number, text: &str, keys| Condition {
        number,
        text: text.to_owned(),
        when: When::OnDemand,
        scope: Scope::Warehouse,
        answer: Answer::Differing,
        keys,
        values: 2,
        optional: false,
    };
    let in_all = |condition| Condition {
        scope: Scope::Everything,
        ..condition
    };
    [
        Condition {
            answer: Answer::Compared(1),
            keys: &[],
            ..a_district(1, "W_YTD = sum(D_YTD), in cents", 2, false)
        },
        // It does not apply to districts without new orders.
        a_district(2, "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)", 3, true),
        Condition {
            // Nor does this one.
            answer: Answer::Compared(0),
            ..a_district(
                3,
                "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER",
                2,
                false,
            )
        },
        a_district(4, "sum(O_OL_CNT) = rows of ORDER-LINE", 2, false),
        each(
            5,
            "O_CARRIER_ID is null = there is a row in NEW-ORDER",
            order,
        ),
        each(6, "O_OL_CNT = rows of ORDER-LINE of the order", order),
        each(7, "OL_DELIVERY_D is null = O_CARRIER_ID is null", order),
        in_all(each(8, "W_YTD = sum(H_AMOUNT), in cents", &["warehouse"])),
        in_all(each(
            9,
            "D_YTD = sum(H_AMOUNT), in cents",
            &["warehouse", "district"],
        )),
        in_all(each(
            10,
            "C_BALANCE = sum(OL_AMOUNT delivered) - sum(H_AMOUNT), in cents",
            &["warehouse", "district", "customer"],
        )),
        Condition {
            when: When::Loaded,
            ..a_district(
                11,
                &format!("rows of ORDER - rows of NEW-ORDER = {}", config.delivered()),
                2,
                false,
            )
        },
        each(
            12,
            "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT delivered), in cents",
            &["district", "customer"],
        ),
    ]
}
