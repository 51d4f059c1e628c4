//! The engine's calls as calls, in assemblies that keep the boundaries of components: a profile tells what is below each of
//! these functions from what is below the others, by their names.
#![expect(
    clippy::inline_always,
    reason = "where calls are nothing to anybody they cost nothing"
)]

use crate::assembly::Assembly;
use crate::calls::{Call, Calls, metered};

macro_rules! boundaries {
    ($($name:ident)*) => {
        $(
            #[inline(never)]
            fn $name<R>(call: impl FnOnce() -> R) -> R {
                call()
            }
        )*
    };
}

boundaries! { begin catalogue lookup pin create update delete insert remove scan commit rollback }

/// Makes a call of the engine: who counts them is told of it, and it is one for profiles and for the thread's meter where the
/// assembly says so.
#[inline(always)]
pub(super) fn call<A: Assembly, S, R>(
    call: Call,
    session: &mut S,
    calls: impl Fn(&mut S) -> &mut A::Calls,
    work: impl FnOnce(&mut S) -> R,
) -> R {
    if A::Calls::REAL {
        calls(session).enter(call);
    }
    let result = if A::OUT_OF_LINE {
        metered(|meter| meter.enter(call));
        let work = || work(session);
        let result = match call {
            Call::Begin => begin(work),
            Call::Catalogue => catalogue(work),
            Call::Lookup => lookup(work),
            Call::Pin => pin(work),
            Call::Create => create(work),
            Call::Update => update(work),
            Call::Delete => delete(work),
            Call::Insert => insert(work),
            Call::Remove => remove(work),
            Call::Scan => scan(work),
            Call::Commit => commit(work),
            Call::Rollback => rollback(work),
        };
        metered(|meter| meter.leave(call));
        result
    } else {
        work(session)
    };
    if A::Calls::REAL {
        calls(session).leave(call);
    }
    result
}
