//! The conditions asked of a SQL store.
//!
//! Conditions 1 to 7 are asked warehouse by warehouse, so that no answer takes long; those over the history
//! (8, 9 and 10) go through all of it at once, since it has no index.

use dyno_sql::{Connection, Dialect, Result, Row as _, Value};

use super::{Condition, Each, Source};
use crate::Config;

/// A connection, and a query for each condition.
pub struct Asked<'c, C: Connection> {
    connection: &'c mut C,
    queries: [String; 12],
    /// That of the condition of this number: stores keep only so many.
    prepared: Option<(u32, C::Statement)>,
}

impl<'c, C: Connection> Asked<'c, C> {
    pub fn new(connection: &'c mut C, config: &Config) -> Self {
        Self {
            connection,
            queries: queries(C::DIALECT, config),
            prepared: None,
        }
    }
}

impl<C: Connection> Source for Asked<'_, C> {
    fn warehouses(&mut self, table: &str) -> Result<[Option<i64>; 2]> {
        let column = if table == "warehouse" {
            "w_id"
        } else {
            "d_w_id"
        };
        let sql = format!("SELECT MIN({column}), MAX({column}) FROM {table}");
        let mut statement = self.connection.prepare(&sql)?;
        let mut ends = [None; 2];
        self.connection.query(&mut statement, &[], |row| {
            ends = [row.int_or_null()?, row.int_or_null()?];
            Ok(())
        })?;
        Ok(ends)
    }

    fn rows(&mut self, condition: &Condition, warehouse: i64, each: Each<'_>) -> Result<i64> {
        let query = &self.queries[condition.number as usize - 1];
        let statement = match &mut self.prepared {
            Some((number, statement)) if *number == condition.number => statement,
            other => {
                let statement = self.connection.prepare(query)?;
                &mut other.insert((condition.number, statement)).1
            }
        };
        let given = vec![Value::Int(warehouse); query.matches('?').count()];
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let rows = self.connection.query(statement, &given, |row| {
            keys.clear();
            values.clear();
            for _ in condition.keys {
                keys.push(row.int()?);
            }
            for _ in 0..condition.values {
                values.push(row.int_or_null()?);
            }
            each(&keys, &values);
            Ok(())
        })?;
        Ok(rows.cast_signed())
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

/// What is asked for each condition, in their order; each parameter is the number of the warehouse.
#[allow(clippy::too_many_lines)] // a list
fn queries(dialect: Dialect, config: &Config) -> [String; 12] {
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
    [
        format!(
            "SELECT w_ytd, (SELECT {} FROM district WHERE d_w_id = w_id) FROM warehouse WHERE w_id = ?",
            sum("d_ytd")
        ),
        of_district(&format!(
            "d_next_o_id - 1, (SELECT MAX(o_id) {orders}), (SELECT MAX(no_o_id) {new_orders})"
        )),
        "SELECT no_d_id, MAX(no_o_id) - MIN(no_o_id) + 1, COUNT(*) FROM new_order \
         WHERE no_w_id = ? GROUP BY no_d_id ORDER BY no_d_id"
            .to_owned(),
        of_district(&format!(
            "(SELECT {} {orders}), (SELECT COUNT(*) {lines})",
            sum("o_ol_cnt")
        )),
        format!(
            "SELECT o_d_id, o_id, {}, {} FROM orders LEFT JOIN new_order ON no_w_id = o_w_id \
             AND no_d_id = o_d_id AND no_o_id = o_id WHERE o_w_id = ? \
             AND (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) ORDER BY o_d_id, o_id LIMIT 1",
            flag("o_carrier_id IS NULL"),
            flag("no_o_id IS NOT NULL")
        ),
        format!(
            "SELECT o_d_id, o_id, o_ol_cnt, (SELECT COUNT(*) {lines_of_order}) FROM orders \
             WHERE o_w_id = ? AND o_ol_cnt <> (SELECT COUNT(*) {lines_of_order}) \
             ORDER BY o_d_id, o_id LIMIT 1"
        ),
        format!(
            "SELECT o_d_id, o_id, {}, {} FROM orders JOIN order_line ON ol_w_id = o_w_id \
             AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_w_id = ? \
             AND (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL) ORDER BY o_d_id, o_id LIMIT 1",
            flag("ol_delivery_d IS NULL"),
            flag("o_carrier_id IS NULL")
        ),
        format!(
            "SELECT w_id, w_ytd, paid FROM warehouse LEFT JOIN (SELECT h_w_id, {} AS paid \
             FROM history GROUP BY h_w_id) AS payments ON h_w_id = w_id \
             WHERE w_ytd <> COALESCE(paid, 0) ORDER BY w_id LIMIT 1",
            sum("h_amount")
        ),
        format!(
            "SELECT d_w_id, d_id, d_ytd, paid FROM district LEFT JOIN (SELECT h_w_id, h_d_id, \
             {} AS paid FROM history GROUP BY h_w_id, h_d_id) AS payments \
             ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> COALESCE(paid, 0) \
             ORDER BY d_w_id, d_id LIMIT 1",
            sum("h_amount")
        ),
        by_customer(
            "w_id, d_id, c_id",
            &format!(
                "SELECT c_w_id AS w_id, c_d_id AS d_id, c_id, c_balance AS own, 0 AS flow \
                 FROM customer UNION ALL SELECT h_c_w_id, h_c_d_id, h_c_id, 0, -h_amount \
                 FROM history UNION ALL {}",
                delivered("")
            ),
        ),
        of_district(&format!(
            "(SELECT COUNT(*) {orders}) - (SELECT COUNT(*) {new_orders}), {}",
            config.delivered()
        )),
        by_customer(
            "d_id, c_id",
            &format!(
                "SELECT c_w_id AS w_id, c_d_id AS d_id, c_id, c_balance + c_ytd_payment AS own, \
                 0 AS flow FROM customer WHERE c_w_id = ? UNION ALL {}",
                delivered(" AND o_w_id = ?")
            ),
        ),
    ]
}
