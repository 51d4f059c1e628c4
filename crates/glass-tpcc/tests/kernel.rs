//! TPC-C on the kernel.

#![allow(clippy::unwrap_used)]

mod common;

use common::{assert_same_as_sqlite, assert_same_rows, small, sqlite};
use dyno_glass_tpcc::kernel::{Kernel, KernelStore};
use dyno_sql::ErrorKind;
use dyno_tpcc::{
    Buyer, Config, Extent, Input, Kind, Mix, Payment, Rows, Terminal, check_scans, perform,
};

fn without_rollbacks() -> Config {
    Config {
        rollbacks: 0.0,
        ..small()
    }
}

#[test]
fn all_five_transactions_come_to_the_same_as_on_sqlite() {
    let config = without_rollbacks();
    let mut kernel = Kernel::load(&config).unwrap();
    let mut sqlite = assert_same_as_sqlite(&config, 4_000, &mut KernelStore::new(&mut kernel));
    assert_same_rows(&config, &mut kernel, &mut sqlite);
}

#[test]
fn the_looking_glass_mix_comes_to_the_same_as_on_sqlite() {
    let config = Config {
        mix: Mix::LookingGlass,
        ..small()
    };
    let mut kernel = Kernel::load(&config).unwrap();
    let mut sqlite = assert_same_as_sqlite(&config, 1_000, &mut KernelStore::new(&mut kernel));
    assert_same_rows(&config, &mut kernel, &mut sqlite);
}

#[test]
fn what_is_loaded_is_what_sqlite_is_loaded_with() {
    let config = small();
    let mut kernel = Kernel::load(&config).unwrap();
    assert_same_rows(&config, &mut kernel, &mut sqlite(&config));
    let checks = check_scans(&mut kernel, &config, Extent::Loaded).unwrap();
    assert!(checks.len() == 12 && checks.iter().all(|check| check.holds));
}

#[test]
fn an_order_that_is_to_be_rolled_back_is_refused_and_nothing_goes_on_after_it() {
    let config = Config {
        rollbacks: 1.0,
        ..small()
    };
    let mut kernel = Kernel::load(&config).unwrap();
    let mut terminal = Terminal::new(&config, 0, KernelStore::new(&mut kernel));
    terminal.prepare_kind(Kind::NewOrder);
    let error = terminal.perform().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(error.message.contains("cannot roll back"), "{error}");
    terminal.prepare_kind(Kind::Payment);
    let error = terminal.perform().unwrap_err();
    assert_eq!(error.kind, ErrorKind::Refused);
    assert!(error.message.contains("failed half way"), "{error}");
}

#[test]
fn a_customer_that_is_not_there_is_an_error() {
    let config = small();
    let mut kernel = Kernel::load(&config).unwrap();
    let payment = Payment {
        warehouse: 1,
        district: 1,
        customer_warehouse: 1,
        customer_district: 1,
        customer: Buyer::Number(31),
        amount: 100,
    };
    let answer = perform(
        &mut KernelStore::new(&mut kernel),
        &Input::Payment(payment),
        0,
        &mut Rows::default(),
    );
    assert_eq!(answer.unwrap_err().kind, ErrorKind::MissingKey);
}
