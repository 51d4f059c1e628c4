//! TPC-C on every assembly that there is: its consistency conditions and the engine's own hold after the full mix.

#![allow(clippy::unwrap_used)]

mod common;

use std::sync::Arc;

use common::small;
use dyno_glass::assembly::{self, Assembly, Spec, Visitor};
use dyno_glass::calls::NoCalls;
use dyno_glass::engine::{Engine, Options};
use dyno_glass::log;
use dyno_glass::pages::disk::{Files, Folder};
use dyno_glass_tpcc::engine::{Database, Loader};
use dyno_tpcc::{Config, Extent, Terminal, check_scans};

/// The full mix on a new store, then all conditions.
struct FullMix;

impl Visitor for FullMix {
    type Calls = NoCalls;

    type Output = ();

    fn visit<A: Assembly<Calls = NoCalls>>(self, spec: Spec) {
        // What is to be rolled back needs transactions.
        let rollbacks = if spec.transactions { 0.05 } else { 0.0 };
        let config = Config {
            rollbacks,
            ..small()
        };
        let options = Options {
            memory: 32 << 20,
            log: log::Options {
                policy: log::Policy::Memory,
                ..log::Options::default()
            },
            ..Options::default()
        };
        let name = format!("dyno-glass-assemblies-{}", std::process::id());
        let place = std::env::temp_dir().join(name);
        let folder: Arc<dyn Folder> = Arc::new(Files::new(&place).unwrap());
        let database =
            Database::create(Engine::<A>::open(Some(folder), &options).unwrap()).unwrap();
        Loader::load_all(&database, &config).unwrap();
        let mut terminal = Terminal::new(&config, 0, database.store().unwrap());
        for _ in 0..300 {
            terminal.prepare();
            terminal.perform().unwrap();
        }
        drop(terminal);
        let checks = check_scans(&mut &database, &config, Extent::All).unwrap();
        assert_eq!(checks.len(), 11, "{spec}: 1 to 10 and 12");
        assert!(
            checks.iter().all(|check| check.holds),
            "{spec}: {checks:#?}"
        );
        database.engine().verify().unwrap();
        std::fs::remove_dir_all(place).unwrap();
    }
}

#[test]
fn the_conditions_hold_on_every_assembly() {
    for spec in assembly::all() {
        assembly::with(spec, FullMix).unwrap();
    }
}
