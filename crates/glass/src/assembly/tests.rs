//! Which assemblies there are, and what they are called.

use std::collections::HashSet;

use super::*;
use crate::calls::NoCalls;

/// What an assembly is made of, as it says itself.
struct Describe;

impl Visitor for Describe {
    type Calls = NoCalls;

    type Output = (Spec, bool, usize);

    fn visit<A: Assembly<Calls = NoCalls>>(self, spec: Spec) -> Self::Output {
        let page_size = A::PAGE;
        let described = Spec {
            keys: A::Keys::REAL,
            log: <A::Log as crate::log::Log<A::Latch>>::REAL,
            locks: A::Locks::REAL,
            latches: A::Latch::REAL,
            buffer: A::Pages::REAL,
            transactions: A::Transactions::REAL,
            catalogue: A::Catalogue::REAL,
            large_pages: A::Pages::REAL && page_size == LARGE,
            outlined: A::OUT_OF_LINE,
        };
        (described, spec == described, page_size)
    }
}

#[test]
fn there_are_80_assemblies_and_each_is_what_its_name_says() {
    let all = all();
    assert_eq!(all.len(), 80);
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), 80);
    for spec in all {
        assert_eq!(
            spec.to_string().parse::<Spec>().expect("its own name"),
            spec
        );
        match with(spec, Describe) {
            Ok((described, same, page_size)) => {
                assert!(same, "{spec} is {described}");
                assert_eq!(page_size, spec.page_size());
            }
            Err(Error::Refused(why)) if !HAS_ALL && !path().contains(&spec) => {
                assert!(why.contains("those alone"), "{why}");
            }
            Err(error) => panic!("{spec}: {error:?}"),
        }
    }
}

#[test]
fn the_path_goes_from_all_to_none_by_one_step_each_and_has_outlines() {
    let path = path();
    let names: Vec<_> = path.iter().map(Spec::to_string).collect();
    let expected = [
        "keys+log+locks+latches+buffer+transactions+catalogue",
        "log+locks+latches+buffer+transactions+catalogue",
        "locks+latches+buffer+transactions+catalogue",
        "latches+buffer+transactions+catalogue",
        "buffer+transactions+catalogue",
        "buffer+transactions+catalogue+large-pages",
        "transactions+catalogue",
        "transactions",
        "none",
    ];
    assert_eq!(names, expected);
    for spec in path {
        for outlined in [false, true] {
            let spec = Spec { outlined, ..spec };
            assert_eq!(
                spec.to_string().parse::<Spec>().expect("its own name"),
                spec
            );
            let (described, same, _) = with(spec, Describe).expect("it can be");
            assert!(same, "{spec} is {described}");
        }
    }
}

#[test]
fn full_and_none_are_names_and_can_be_added_to() {
    assert_eq!("full".parse::<Spec>().expect("a name"), Spec::FULL);
    assert_eq!("none".parse::<Spec>().expect("a name"), Spec::NONE);
    let outlined = Spec {
        outlined: true,
        ..Spec::NONE
    };
    assert_eq!("none+outlined".parse::<Spec>().expect("a name"), outlined);
    assert_eq!(outlined.to_string(), "none+outlined");
}

#[test]
fn what_cannot_be_is_refused_with_its_reason() {
    let refused = |name: &str| match name.parse::<Spec>() {
        Err(Error::Refused(why)) => why,
        other => panic!("{name}: {other:?}"),
    };
    assert!(refused("log+buffer").contains("without which they cannot be"));
    assert!(refused("locks").contains("without which they cannot be"));
    assert!(refused("transactions+latches+outlined").contains("in the publication's order"));
    assert!(refused("none+large-pages").contains("in the publication's order"));
    assert!(refused("full+brakes").contains("there are keys, log, locks"));
    assert!(refused("").contains("no component is called"));
}
