//! The consistency conditions of 3.3.2, verified inside the store.
//!
//! Conditions 1 to 9 are asked warehouse by warehouse, so that no answer takes long; those over the
//! history (8, 9 and 10) go through all of it at once, since it has no index.

use std::fmt::Write as _;

use dyno_sql::{Connection, Dialect, Error, ErrorKind, Result, Row, Value};

use crate::{Config, DISTRICTS};

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
    refuse_others(connection, config)?;
    let mut checks = Vec::new();
    for condition in conditions(C::DIALECT, config) {
        let wanted = match condition.when {
            When::Always => true,
            When::OnDemand => extent != Extent::Demanded,
            When::Loaded => extent == Extent::Loaded,
        };
        if wanted {
            checks.push(condition.verify(connection, config)?);
        }
    }
    Ok(checks)
}

fn refuse_others<C: Connection>(connection: &mut C, config: &Config) -> Result<()> {
    for (table, column) in [("warehouse", "w_id"), ("district", "d_w_id")] {
        let sql = format!("SELECT MIN({column}), MAX({column}) FROM {table}");
        let mut statement = connection.prepare(&sql)?;
        let most = i64::from(config.warehouses);
        let mut other = None;
        connection.query(&mut statement, &[], |row| {
            let ends = [row.int_or_null()?, row.int_or_null()?];
            other = ends
                .into_iter()
                .flatten()
                .find(|number| !(1..=most).contains(number));
            Ok(())
        })?;
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

/// From which extent on a condition is verified.
enum When {
    Always,
    OnDemand,
    Loaded,
}

/// Over what a condition is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Each warehouse by itself, whose number is each parameter of the query.
    Warehouse,
    /// All at once.
    Everything,
}

/// How many rows the answer must have.
enum Answer {
    /// Those that differ, at most one.
    Differing,
    /// All that were compared, so many a warehouse at least.
    Compared(i64),
}

/// A condition and the query that verifies it. A row of the answer is what its key columns name, then the
/// values that must all be equal; one that is NULL equals none, but may be missing where `optional`.
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
    query: String,
}

#[derive(Default)]
struct Findings {
    rows: i64,
    wrong: u64,
    first: String,
}

impl Condition {
    fn verify<C: Connection>(&self, connection: &mut C, config: &Config) -> Result<Check> {
        let mut findings = Findings::default();
        let mut short = None;
        let mut statement = connection.prepare(&self.query)?;
        let warehouses = match self.scope {
            Scope::Warehouse => i64::from(config.warehouses),
            Scope::Everything => 1,
        };
        for warehouse in 1..=warehouses {
            let before = findings.rows;
            let given = vec![Value::Int(warehouse); self.query.matches('?').count()];
            connection.query(&mut statement, &given, |row| {
                self.compare(row, warehouse, &mut findings)
            })?;
            if let Answer::Compared(least) = self.answer
                && findings.rows - before < least
                && short.is_none()
            {
                short = Some((warehouse, findings.rows - before, least));
            }
        }
        Ok(self.conclude(config, &findings, short))
    }

    fn compare(&self, row: &mut impl Row, warehouse: i64, findings: &mut Findings) -> Result<()> {
        let mut key = String::new();
        if self.scope == Scope::Warehouse {
            let _ = write!(key, "warehouse {warehouse}");
        }
        for name in self.keys {
            let separator = if key.is_empty() { "" } else { ", " };
            // Writing to a string cannot fail.
            let _ = write!(key, "{separator}{name} {}", row.int()?);
        }
        let mut values = Vec::with_capacity(self.values);
        for _ in 0..self.values {
            values.push(row.int_or_null()?);
        }
        findings.rows += 1;
        if self.optional && values.last() == Some(&None) {
            values.pop();
        }
        let equal = values
            .iter()
            .all(|value| value.is_some() && *value == values[0]);
        if !equal {
            findings.wrong += 1;
            if findings.first.is_empty() {
                let shown: Vec<String> = values
                    .iter()
                    .map(|value| value.map_or("none".to_owned(), |number| number.to_string()))
                    .collect();
                findings.first = format!("{key}: {}", shown.join(", "));
            }
        }
        Ok(())
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

/// A sum as a whole number, 0 where there is nothing to sum.
fn sum(dialect: Dialect, column: &str) -> String {
    let whole = match dialect {
        Dialect::Mysql => "SIGNED",
        Dialect::Sqlite | Dialect::Postgresql => "BIGINT",
    };
    format!("CAST(COALESCE(SUM({column}), 0) AS {whole})")
}

/// 1 where something is so, else 0, in every dialect.
fn flag(what: &str) -> String {
    format!("CASE WHEN {what} THEN 1 ELSE 0 END")
}

#[allow(clippy::too_many_lines)] // a list
fn conditions(dialect: Dialect, config: &Config) -> [Condition; 12] {
    let sum = |column| sum(dialect, column);
    let of_district = |select: &str| {
        format!("SELECT d_id, {select} FROM district WHERE d_w_id = ? ORDER BY d_id")
    };
    let orders = "FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id";
    let new_orders = "FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id";
    let lines = "FROM order_line WHERE ol_w_id = d_w_id AND ol_d_id = d_id";
    let lines_of_order =
        "FROM order_line WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id";
    // Not joins of sums by customer, which a planner that does not know how many there are compares each with
    // each: everything that concerns a customer, one below the other, is summed at once.
    let delivered = |also: &str| {
        format!(
            "SELECT o_w_id, o_d_id, o_c_id, 0, ol_amount FROM orders JOIN order_line \
             ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
             WHERE ol_delivery_d IS NOT NULL{also}"
        )
    };
    let by_customer = |keys: &str, rows: &str| {
        let (own, flow) = (sum("own"), sum("flow"));
        format!(
            "SELECT {keys}, {own}, {flow} FROM ({rows}) AS amounts GROUP BY w_id, d_id, c_id \
             HAVING SUM(own) <> SUM(flow) ORDER BY w_id, d_id, c_id LIMIT 1"
        )
    };
    let district = &["district"][..];
    let order = &["district", "order"][..];
    let a_district = |number, text: &str, values, optional, query| Condition {
        number,
        text: text.to_owned(),
        when: When::Always,
        scope: Scope::Warehouse,
        answer: Answer::Compared(DISTRICTS),
        keys: district,
        values,
        optional,
        query,
    };
    let each = |number, text: &str, keys, query| Condition {
        number,
        text: text.to_owned(),
        when: When::OnDemand,
        scope: Scope::Warehouse,
        answer: Answer::Differing,
        keys,
        values: 2,
        optional: false,
        query,
    };
    let in_all = |condition| Condition {
        scope: Scope::Everything,
        ..condition
    };
    [
        Condition {
            answer: Answer::Compared(1),
            keys: &[],
            ..a_district(
                1,
                "W_YTD = sum(D_YTD), in cents",
                2,
                false,
                format!(
                    "SELECT w_ytd, (SELECT {} FROM district WHERE d_w_id = w_id) FROM warehouse \
                     WHERE w_id = ?",
                    sum("d_ytd")
                ),
            )
        },
        a_district(
            2,
            "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
            3,
            // It does not apply to districts without new orders.
            true,
            of_district(&format!(
                "d_next_o_id - 1, (SELECT MAX(o_id) {orders}), (SELECT MAX(no_o_id) {new_orders})"
            )),
        ),
        Condition {
            // Nor does this one.
            answer: Answer::Compared(0),
            ..a_district(
                3,
                "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER",
                2,
                false,
                "SELECT no_d_id, MAX(no_o_id) - MIN(no_o_id) + 1, COUNT(*) FROM new_order \
                 WHERE no_w_id = ? GROUP BY no_d_id ORDER BY no_d_id"
                    .to_owned(),
            )
        },
        a_district(
            4,
            "sum(O_OL_CNT) = rows of ORDER-LINE",
            2,
            false,
            of_district(&format!(
                "(SELECT {} {orders}), (SELECT COUNT(*) {lines})",
                sum("o_ol_cnt")
            )),
        ),
        each(
            5,
            "O_CARRIER_ID is null = there is a row in NEW-ORDER",
            order,
            format!(
                "SELECT o_d_id, o_id, {}, {} FROM orders LEFT JOIN new_order ON no_w_id = o_w_id \
                 AND no_d_id = o_d_id AND no_o_id = o_id WHERE o_w_id = ? \
                 AND (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) ORDER BY o_d_id, o_id LIMIT 1",
                flag("o_carrier_id IS NULL"),
                flag("no_o_id IS NOT NULL")
            ),
        ),
        each(
            6,
            "O_OL_CNT = rows of ORDER-LINE of the order",
            order,
            format!(
                "SELECT o_d_id, o_id, o_ol_cnt, (SELECT COUNT(*) {lines_of_order}) FROM orders \
                 WHERE o_w_id = ? AND o_ol_cnt <> (SELECT COUNT(*) {lines_of_order}) \
                 ORDER BY o_d_id, o_id LIMIT 1"
            ),
        ),
        each(
            7,
            "OL_DELIVERY_D is null = O_CARRIER_ID is null",
            order,
            format!(
                "SELECT o_d_id, o_id, {}, {} FROM orders JOIN order_line ON ol_w_id = o_w_id \
                 AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_w_id = ? \
                 AND (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL) \
                 ORDER BY o_d_id, o_id LIMIT 1",
                flag("ol_delivery_d IS NULL"),
                flag("o_carrier_id IS NULL")
            ),
        ),
        in_all(each(
            8,
            "W_YTD = sum(H_AMOUNT), in cents",
            &["warehouse"],
            format!(
                "SELECT w_id, w_ytd, paid FROM warehouse LEFT JOIN (SELECT h_w_id, {} AS paid \
                 FROM history GROUP BY h_w_id) AS payments ON h_w_id = w_id \
                 WHERE w_ytd <> COALESCE(paid, 0) ORDER BY w_id LIMIT 1",
                sum("h_amount")
            ),
        )),
        in_all(each(
            9,
            "D_YTD = sum(H_AMOUNT), in cents",
            &["warehouse", "district"],
            format!(
                "SELECT d_w_id, d_id, d_ytd, paid FROM district LEFT JOIN (SELECT h_w_id, h_d_id, \
                 {} AS paid FROM history GROUP BY h_w_id, h_d_id) AS payments \
                 ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> COALESCE(paid, 0) \
                 ORDER BY d_w_id, d_id LIMIT 1",
                sum("h_amount")
            ),
        )),
        in_all(each(
            10,
            "C_BALANCE = sum(OL_AMOUNT delivered) - sum(H_AMOUNT), in cents",
            &["warehouse", "district", "customer"],
            by_customer(
                "w_id, d_id, c_id",
                &format!(
                    "SELECT c_w_id AS w_id, c_d_id AS d_id, c_id, c_balance AS own, 0 AS flow \
                     FROM customer UNION ALL SELECT h_c_w_id, h_c_d_id, h_c_id, 0, -h_amount \
                     FROM history UNION ALL {}",
                    delivered("")
                ),
            ),
        )),
        Condition {
            when: When::Loaded,
            ..a_district(
                11,
                &format!("rows of ORDER - rows of NEW-ORDER = {}", config.delivered()),
                2,
                false,
                of_district(&format!(
                    "(SELECT COUNT(*) {orders}) - (SELECT COUNT(*) {new_orders}), {}",
                    config.delivered()
                )),
            )
        },
        each(
            12,
            "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT delivered), in cents",
            &["district", "customer"],
            by_customer(
                "d_id, c_id",
                &format!(
                    "SELECT c_w_id AS w_id, c_d_id AS d_id, c_id, c_balance + c_ytd_payment AS own, \
                     0 AS flow FROM customer WHERE c_w_id = ? UNION ALL {}",
                    delivered(" AND o_w_id = ?")
                ),
            ),
        ),
    ]
}
