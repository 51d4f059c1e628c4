//! A store that has nothing to do: what remains is what is above every store.

use dyno_sql::{Error, ErrorKind, Result};
use dyno_tpcc::{
    Buying, CustomerKey, CustomerStatus, Due, History, Item, Kind, LastOrder, LineStatus,
    NextOrder, Order, OrderLine, Payer, Place, Stock, StockChange, StockKey, Store,
};

pub struct Nothing;

/// The mix asks New-Order and Payment alone, with customers by number.
#[macro_export]
macro_rules! not_asked {
    () => {
        fn next_order_number(&mut self, _: i64, _: i64) -> Result<i64> {
            $crate::nothing::not_asked()
        }
        fn customers_by_last_name(
            &mut self,
            _: i64,
            _: i64,
            _: &str,
            _: &mut Vec<i64>,
        ) -> Result<()> {
            $crate::nothing::not_asked()
        }
        fn customer_status(&mut self, _: CustomerKey, _: &mut CustomerStatus) -> Result<()> {
            $crate::nothing::not_asked()
        }
        fn last_order(&mut self, _: CustomerKey) -> Result<LastOrder> {
            $crate::nothing::not_asked()
        }
        fn order_lines(&mut self, _: i64, _: i64, _: i64, _: &mut Vec<LineStatus>) -> Result<()> {
            $crate::nothing::not_asked()
        }
        fn oldest_new_orders(&mut self, _: i64, _: &mut Vec<Due>) -> Result<()> {
            $crate::nothing::not_asked()
        }
        fn delete_new_orders(&mut self, _: i64, _: &[Due]) -> Result<()> {
            $crate::nothing::not_asked()
        }
        fn customers_of_orders(&mut self, _: i64, _: &mut [Due]) -> Result<()> {
            $crate::nothing::not_asked()
        }
        fn set_carrier(&mut self, _: i64, _: &[Due], _: i64) -> Result<()> {
            $crate::nothing::not_asked()
        }
        fn amounts_of_orders(&mut self, _: i64, _: &mut [Due]) -> Result<()> {
            $crate::nothing::not_asked()
        }
        fn set_delivered(&mut self, _: i64, _: &[Due], _: i64) -> Result<()> {
            $crate::nothing::not_asked()
        }
        fn credit(&mut self, _: i64, _: &[Due]) -> Result<()> {
            $crate::nothing::not_asked()
        }
        fn low_stocks(&mut self, _: i64, _: i64, _: i64, _: i64, _: i64) -> Result<i64> {
            $crate::nothing::not_asked()
        }
    };
}

pub fn not_asked<T>() -> Result<T> {
    Err(Error::new(ErrorKind::Refused, "the mix does not ask this"))
}

impl Store for Nothing {
    not_asked!();

    fn begin(&mut self, _: Kind) -> Result<()> {
        Ok(())
    }
    fn commit(&mut self) -> Result<()> {
        Ok(())
    }
    fn rollback(&mut self) -> Result<()> {
        Ok(())
    }
    fn warehouse_tax(&mut self, _: i64) -> Result<i64> {
        Ok(0)
    }
    fn warehouse(&mut self, _: i64, _: &mut Place) -> Result<()> {
        Ok(())
    }
    fn add_to_warehouse(&mut self, _: i64, _: i64) -> Result<()> {
        Ok(())
    }
    fn district(&mut self, _: i64, _: i64, _: &mut Place) -> Result<()> {
        Ok(())
    }
    fn add_to_district(&mut self, _: i64, _: i64, _: i64) -> Result<()> {
        Ok(())
    }
    fn next_order(&mut self, _: i64, _: i64) -> Result<NextOrder> {
        Ok(NextOrder::default())
    }
    fn set_next_order(&mut self, _: i64, _: i64, _: i64) -> Result<()> {
        Ok(())
    }
    fn buying(&mut self, _: CustomerKey, _: &mut Buying) -> Result<()> {
        Ok(())
    }
    fn payer(&mut self, _: CustomerKey, _: &mut Payer) -> Result<()> {
        Ok(())
    }
    fn customer_data(&mut self, _: CustomerKey, _: &mut String) -> Result<()> {
        Ok(())
    }
    fn pay(&mut self, _: CustomerKey, _: i64, _: Option<&str>) -> Result<()> {
        Ok(())
    }
    fn insert_history(&mut self, history: &History<'_>) -> Result<()> {
        std::hint::black_box(history);
        Ok(())
    }
    fn items(&mut self, items: &[i64], into: &mut [Item]) -> Result<()> {
        for (item, into) in items.iter().zip(into) {
            into.found = true;
            if into.data.is_empty() {
                into.data = format!("as many letters as brand information has: {item:6}");
            }
        }
        Ok(())
    }
    fn stocks(&mut self, _: i64, stocks: &[StockKey], into: &mut [Stock]) -> Result<()> {
        for (stock, into) in stocks.iter().zip(into) {
            into.found = true;
            if into.data.is_empty() {
                into.data = format!("as many letters as make information has: {:6}", stock.item);
            }
        }
        Ok(())
    }
    fn update_stocks(&mut self, changes: &[StockChange]) -> Result<()> {
        std::hint::black_box(changes);
        Ok(())
    }
    fn insert_order(&mut self, order: &Order) -> Result<()> {
        std::hint::black_box(order);
        Ok(())
    }
    fn insert_new_order(&mut self, _: &Order) -> Result<()> {
        Ok(())
    }
    fn insert_order_lines(&mut self, _: &Order, lines: &[OrderLine<'_>]) -> Result<()> {
        std::hint::black_box(lines);
        Ok(())
    }
}
