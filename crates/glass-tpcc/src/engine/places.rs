//! Where the columns are that transactions read and write, and keys.

use dyno_glass::keys;
use dyno_sql::Result;
use dyno_tpcc::population::Table;

use crate::error::told;
use crate::record::{TextAt, at, fixed_length, narrow, text_at};

/// Makes a constant for each column: where it is.
macro_rules! columns {
    ($table:ident: $($name:ident $column:literal),* $(,)?) => {
        $(pub const $name: usize = at(Table::$table, $column);)*
    };
}

columns!(Item: I_PRICE "i_price");
columns!(Warehouse: W_STATE "w_state", W_ZIP "w_zip", W_TAX "w_tax", W_YTD "w_ytd");
columns!(Stock: S_QUANTITY "s_quantity", S_YTD "s_ytd", S_ORDER_CNT "s_order_cnt", S_REMOTE_CNT "s_remote_cnt", S_DIST "s_dist_01");
columns!(District: D_STATE "d_state", D_ZIP "d_zip", D_TAX "d_tax", D_YTD "d_ytd", D_NEXT_O_ID "d_next_o_id");
columns!(
    Customer: C_MIDDLE "c_middle", C_STATE "c_state", C_ZIP "c_zip", C_PHONE "c_phone", C_SINCE "c_since",
    C_CREDIT "c_credit", C_CREDIT_LIM "c_credit_lim", C_DISCOUNT "c_discount", C_BALANCE "c_balance",
    C_YTD_PAYMENT "c_ytd_payment", C_PAYMENT_CNT "c_payment_cnt", C_DELIVERY_CNT "c_delivery_cnt",
);
columns!(
    Orders: O_W_ID "o_w_id", O_D_ID "o_d_id", O_ID "o_id", O_C_ID "o_c_id", O_ENTRY_D "o_entry_d",
    O_CARRIER_ID "o_carrier_id", O_OL_CNT "o_ol_cnt", O_ALL_LOCAL "o_all_local",
);
columns!(NewOrder: NO_W_ID "no_w_id", NO_D_ID "no_d_id", NO_O_ID "no_o_id");
columns!(
    OrderLine: OL_W_ID "ol_w_id", OL_D_ID "ol_d_id", OL_O_ID "ol_o_id", OL_NUMBER "ol_number", OL_I_ID "ol_i_id",
    OL_SUPPLY_W_ID "ol_supply_w_id", OL_DELIVERY_D "ol_delivery_d", OL_QUANTITY "ol_quantity", OL_AMOUNT "ol_amount",
    OL_DIST_INFO "ol_dist_info",
);

pub const I_NAME: TextAt = text_at(Table::Item, "i_name");
pub const I_DATA: TextAt = text_at(Table::Item, "i_data");
pub const S_DATA: TextAt = text_at(Table::Stock, "s_data");
pub const C_FIRST: TextAt = text_at(Table::Customer, "c_first");
pub const C_LAST: TextAt = text_at(Table::Customer, "c_last");
pub const C_DATA: TextAt = text_at(Table::Customer, "c_data");

/// The name, two streets and the city.
pub const W_TEXTS: [TextAt; 4] = [
    text_at(Table::Warehouse, "w_name"),
    text_at(Table::Warehouse, "w_street_1"),
    text_at(Table::Warehouse, "w_street_2"),
    text_at(Table::Warehouse, "w_city"),
];
pub const D_TEXTS: [TextAt; 4] = [
    text_at(Table::District, "d_name"),
    text_at(Table::District, "d_street_1"),
    text_at(Table::District, "d_street_2"),
    text_at(Table::District, "d_city"),
];
/// Two streets and the city.
pub const C_TEXTS: [TextAt; 3] = [
    text_at(Table::Customer, "c_street_1"),
    text_at(Table::Customer, "c_street_2"),
    text_at(Table::Customer, "c_city"),
];

pub const ORDERS_LENGTH: usize = fixed_length(Table::Orders);
pub const NEW_ORDER_LENGTH: usize = fixed_length(Table::NewOrder);
pub const ORDER_LINE_LENGTH: usize = fixed_length(Table::OrderLine);

/// A state, a zip code, a credit, what stocks say for a district, a telephone number.
pub const STATE: usize = 2;
pub const ZIP: usize = 9;
pub const CREDIT: usize = 2;
pub const DIST: usize = 24;
pub const PHONE: usize = 16;

/// A key of numbers, `BYTES` long: four for each.
#[inline]
pub fn key<const NUMBERS: usize, const BYTES: usize>(
    numbers: [i64; NUMBERS],
) -> Result<[u8; BYTES]> {
    const { assert!(BYTES == 4 * NUMBERS) };
    let mut key = [0; BYTES];
    for (into, number) in key.chunks_exact_mut(4).zip(numbers) {
        into.copy_from_slice(&keys::int(narrow(number)?));
    }
    Ok(key)
}

/// The lowest and the highest number of a key.
pub const LOWEST: i64 = i32::MIN as i64;
pub const HIGHEST: i64 = i32::MAX as i64;

/// Of the index of customers by name.
pub const NAME_KEY: usize = 4 + 4 + 16 + 16 + 4;

/// A key of a customer by name.
pub fn name_key(
    warehouse: i64,
    district: i64,
    last: &str,
    first: &str,
    number: i64,
) -> Result<[u8; NAME_KEY]> {
    let mut key = [0; NAME_KEY];
    key[..4].copy_from_slice(&keys::int(narrow(warehouse)?));
    key[4..8].copy_from_slice(&keys::int(narrow(district)?));
    keys::text(last.as_bytes(), &mut key[8..24]).map_err(told)?;
    keys::text(first.as_bytes(), &mut key[24..40]).map_err(told)?;
    key[40..].copy_from_slice(&keys::int(narrow(number)?));
    Ok(key)
}

/// The number at the end of a key: what `keys::int` wrote, read again.
pub fn last_number(key: &[u8]) -> i64 {
    key.last_chunk().map_or(0, |bytes| {
        i64::from((u32::from_be_bytes(*bytes) ^ 1 << 31).cast_signed())
    })
}
