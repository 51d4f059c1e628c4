//! The statements of the transactions, each prepared once a connection.

use dyno_sql::{Connection, Dialect, Result};

use crate::DISTRICTS;

/// Makes the struct of all statements and their preparation from one list.
///
/// `FOR UPDATE` stands in the texts where rows are read for update; it is taken out for `SQLite`, which does
/// not know it and where a writing transaction is alone.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident: $text:expr,)*) => {
        /// The prepared statements.
        pub struct Statements<T> {
            $($(#[$doc])* pub $name: T,)*
            /// `S_DIST_xx` of ten districts: one statement each, so that no other nine are read (2.4.2.2).
            pub stock: Vec<T>,
        }

        /// The texts of all statements.
        #[must_use]
        pub fn sql_texts(dialect: Dialect) -> Vec<String> {
            let mut texts = vec![$(in_dialect(dialect, $text.of(dialect)),)*];
            texts.extend((1..=DISTRICTS).map(|district| in_dialect(dialect, &stock(district))));
            texts
        }

        impl<T> Statements<T> {
            /// Prepares all of them; the tables must be there.
            pub fn prepare<C: Connection<Statement = T>>(connection: &mut C) -> Result<Self> {
                let mut prepare = |text: &str| connection.prepare(&in_dialect(C::DIALECT, text));
                Ok(Self {
                    $($name: prepare($text.of(C::DIALECT))?,)*
                    stock: (1..=DISTRICTS)
                        .map(|district| prepare(&stock(district)))
                        .collect::<Result<_>>()?,
                })
            }
        }
    };
}

/// A statement's text.
enum Sql {
    /// The same everywhere.
    One(&'static str),
    /// By store.
    By {
        sqlite: &'static str,
        mysql: &'static str,
        postgresql: &'static str,
    },
}

impl Sql {
    const fn of(&self, dialect: Dialect) -> &'static str {
        match (self, dialect) {
            (Self::One(text), _)
            | (Self::By { sqlite: text, .. }, Dialect::Sqlite)
            | (Self::By { mysql: text, .. }, Dialect::Mysql)
            | (
                Self::By {
                    postgresql: text, ..
                },
                Dialect::Postgresql,
            ) => text,
        }
    }
}

fn in_dialect(dialect: Dialect, text: &str) -> String {
    match dialect {
        Dialect::Sqlite => text.replace(" FOR UPDATE", ""),
        Dialect::Mysql | Dialect::Postgresql => text.to_owned(),
    }
}

fn stock(district: i64) -> String {
    format!(
        "SELECT s_quantity, s_dist_{district:02}, s_data FROM stock \
         WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE"
    )
}

use Sql::{By, One};

statements! {
    warehouse_tax: One("SELECT w_tax FROM warehouse WHERE w_id = ?"),
    warehouse: One(
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse \
         WHERE w_id = ? FOR UPDATE"
    ),
    add_to_warehouse: One("UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?"),
    district: One(
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
         WHERE d_w_id = ? AND d_id = ? FOR UPDATE"
    ),
    add_to_district: One("UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?"),
    next_order: One(
        "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE"
    ),
    next_order_number: One("SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?"),
    set_next_order: One("UPDATE district SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?"),
    buying: One(
        "SELECT c_discount, c_last, c_credit FROM customer \
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    ),
    payer: One(
        "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
         c_since, c_credit, c_credit_lim, c_discount, c_balance FROM customer \
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE"
    ),
    customer_data: One(
        "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE"
    ),
    pay: One(
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
         c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    ),
    pay_and_note: One(
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
         c_payment_cnt = c_payment_cnt + 1, c_data = ? \
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    ),
    /// Equal first names are told apart by number, so that the one in the middle is always the same.
    customers_by_last_name: One(
        "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? \
         ORDER BY c_first, c_id"
    ),
    customer_status: One(
        "SELECT c_balance, c_first, c_middle, c_last FROM customer \
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    ),
    insert_history: One(
        "INSERT INTO history(h_c_w_id, h_c_d_id, h_c_id, h_w_id, h_d_id, h_date, h_amount, h_data) \
         VALUES(?, ?, ?, ?, ?, ?, ?, ?)"
    ),
    item: One("SELECT i_price, i_name, i_data FROM item WHERE i_id = ?"),
    update_stock: One(
        "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, \
         s_remote_cnt = s_remote_cnt + ? WHERE s_w_id = ? AND s_i_id = ?"
    ),
    insert_order: One(
        "INSERT INTO orders(o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, \
         o_all_local) VALUES(?, ?, ?, ?, ?, NULL, ?, ?)"
    ),
    insert_new_order: One("INSERT INTO new_order(no_w_id, no_d_id, no_o_id) VALUES(?, ?, ?)"),
    insert_order_line: One(
        "INSERT INTO order_line(ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, \
         ol_delivery_d, ol_quantity, ol_amount, ol_dist_info) \
         VALUES(?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)"
    ),
    last_order: One(
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders \
         WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1"
    ),
    order_lines: One(
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
    ),
    /// By district, but of all districts of a warehouse in `PostgreSQL`. Another Delivery that took an
    /// order first is waited for, and the next order taken.
    oldest_new_order: By {
        sqlite: "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
                 ORDER BY no_o_id LIMIT 1",
        mysql: "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? \
                ORDER BY no_o_id LIMIT 1 FOR UPDATE",
        postgresql: "SELECT d.d_id, oldest.no_o_id FROM generate_series(1, 10) AS d(d_id) \
                     CROSS JOIN LATERAL (SELECT no_o_id FROM new_order WHERE no_w_id = ? \
                     AND no_d_id = d.d_id ORDER BY no_o_id LIMIT 1 FOR UPDATE) AS oldest",
    },
    delete_new_order: One(
        "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?"
    ),
    customer_of_order: One(
        "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? FOR UPDATE"
    ),
    set_carrier: One(
        "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?"
    ),
    /// `PostgreSQL` locks no rows for a sum. None is needed: the lines of an order belong to whoever has
    /// taken it from the new orders.
    amount_of_order: By {
        sqlite: "SELECT CAST(SUM(ol_amount) AS BIGINT) FROM order_line \
                 WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
        mysql: "SELECT CAST(SUM(ol_amount) AS SIGNED) FROM order_line \
                WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ? FOR UPDATE",
        postgresql: "SELECT CAST(SUM(ol_amount) AS BIGINT) FROM order_line \
                     WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
    },
    set_delivered: One(
        "UPDATE order_line SET ol_delivery_d = ? \
         WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?"
    ),
    credit: One(
        "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
         WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?"
    ),
    low_stocks: One(
        "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock \
         WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id >= ? AND ol_o_id < ? \
         AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?"
    ),
}
