//! Wrong inputs are compiled and explained too: no panic, no endless work, no memory without a bound.

// A test that cannot go on fails.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

#[path = "../../wml/tests/fuzzing/mod.rs"]
mod fuzzing;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_files::{Format, Phase, Request, explain};
use dyno_wml::ast::Script;

fn request(script: &Script) -> Request<'_> {
    Request {
        script,
        beside: None,
        values: Vec::new(),
        values_given: BTreeMap::new(),
        seconds: None,
        seed: 1,
        interval: Duration::from_secs(1),
        compat: false,
        allow_system: false,
        allow_device: false,
        verify: false,
        no_ring: false,
        phase: Phase::All,
        out: None,
        format: Format::Json,
        progress: false,
        halt: Arc::new(AtomicBool::new(false)),
        versions: BTreeMap::new(),
    }
}

/// A workload that is right and has small counts, so that most changes leave something that can be explained.
const SMALL: &str = "set $n=3
    set $size=cvar(type=cvar-gamma,parameters=mean:64;gamma:1.5)
    define fileset name=s, path=/tmp, entries=$n, size=$size, dirwidth=4, leafdirs=2, prealloc
    define flowop name=inner, $set { flowop openfile name=o, filesetname=$set, fd=1
      flowop closefile name=c, fd=1 }
    define flowop name=outer { flowop inner name=i, $set=s, iters=2 }
    define process name=p, instances=2 { thread name=t, instances=$n, memsize=1024 {
      flowop outer name=a flowop read name=r, filesetname=s, iosize=8, random
      flowop sempost name=post, target=wait, value=1 flowop opslimit name=l, target=r }
      thread name=u { flowop semblock name=wait, value=1 } }
    foreach $n in 1, 4 { create processes stats clear sleep 1 stats snap shutdown processes }
    eventgen rate=9";

#[test]
fn no_wrong_input_makes_the_explanation_panic_or_hang() {
    let explained = Cell::new(0);
    let seeds = [SMALL, fuzzing::FORMS].map(|text| text.as_bytes().to_vec());
    let explains = |script: &Script| {
        explained.set(explained.get() + u32::from(explain(&request(script)).is_ok()));
    };
    let outcome = fuzzing::run(2_000, 20_261_124, &seeds, &explains);
    assert_eq!(outcome.inputs, 2_000);
    assert!(explained.get() > 20, "{} of {outcome:?}", explained.get());
}
