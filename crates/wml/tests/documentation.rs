//! The reference of the language says what the code says.

#![allow(clippy::unwrap_used, clippy::panic)] // helpers of tests

use std::collections::BTreeSet;

use dyno_wml::ast::{
    CompositeAttribute, CvarAttribute, Direction, FilesetAttribute, FlowopAttribute, FlowopClass,
    FlowopType, Key, ProcessAttribute, RandvarAttribute, ThreadAttribute, Wanted,
};
use dyno_wml::{CUSTOM_KINDS, Variables, check, parse};

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/workload-files.md");
    std::fs::read_to_string(path).unwrap()
}

/// The text below a heading.
fn section(heading: &str) -> String {
    let page = page();
    let start = format!("\n## {heading}\n");
    let (_, rest) = page
        .split_once(&start)
        .unwrap_or_else(|| panic!("no {heading}"));
    rest.split("\n## ").next().unwrap().to_owned()
}

/// The cells of the tables below a heading, without their heads; `columns` tells tables apart.
fn rows(heading: &str, columns: usize) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let mut head = true;
    for line in section(heading).lines() {
        if !line.starts_with('|') {
            head = true;
            continue;
        }
        let cells: Vec<String> = line
            .trim_matches('|')
            .split(" | ")
            .map(|cell| cell.trim().to_owned())
            .collect();
        if std::mem::replace(&mut head, false)
            || line.starts_with("| ---")
            || cells.len() != columns
        {
            continue;
        }
        rows.push(cells);
    }
    rows
}

fn attributes<K: Key>(heading: &str) {
    let documented: Vec<[String; 3]> = rows(heading, 4)
        .into_iter()
        .map(|cells| {
            assert!(!cells[3].is_empty(), "{cells:?}");
            [cells[0].clone(), cells[1].clone(), cells[2].clone()]
        })
        .collect();
    let known: Vec<[String; 3]> = K::ALL
        .iter()
        .map(|key| {
            let about = key.about();
            let names: Vec<String> = about.names.iter().map(|name| format!("`{name}`")).collect();
            let wanted = match about.wanted {
                Wanted::Name => "name",
                Wanted::Text => "text",
                Wanted::Number => "number",
                Wanted::Boolean => "yes or no",
                Wanted::Percentage => "percentage",
                Wanted::Any => "any",
            };
            [
                names.join(", "),
                wanted.to_owned(),
                about.default.to_owned(),
            ]
        })
        .collect();
    assert_eq!(documented, known, "{heading}");
    for (cells, key) in rows(heading, 4).iter().zip(K::ALL) {
        assert_eq!(
            cells[3].starts_with("older: "),
            key.about().older,
            "{cells:?}"
        );
    }
}

#[test]
fn the_tables_of_attributes_are_the_codes() {
    attributes::<FilesetAttribute>("Filesets");
    attributes::<ProcessAttribute>("Processes");
    attributes::<ThreadAttribute>("Threads");
    attributes::<FlowopAttribute>("Attributes of flowops");
    attributes::<CompositeAttribute>("Composite flowops");
    attributes::<RandvarAttribute>("Random variables");
    attributes::<CvarAttribute>("Custom variables");
}

#[test]
fn the_table_of_flowops_is_the_codes() {
    let documented: Vec<[String; 3]> = rows("Flowops", 5)
        .into_iter()
        .map(|cells| [cells[0].clone(), cells[1].clone(), cells[2].clone()])
        .collect();
    let known: Vec<[String; 3]> = FlowopType::ALL
        .iter()
        .map(|kind| {
            let class = match kind.class() {
                FlowopClass::Io => "IO",
                FlowopClass::Aio => "AIO",
                FlowopClass::Sync => "SYNC",
                FlowopClass::Other => "OTHER",
            };
            let direction = match kind.direction() {
                Direction::Read => "read",
                Direction::Write => "write",
                Direction::Neither => "neither",
            };
            [
                format!("`{}`", kind.name()),
                class.to_owned(),
                direction.to_owned(),
            ]
        })
        .collect();
    assert_eq!(documented, known);
}

/// What the table says a flowop needs is what the checks miss.
#[test]
fn what_a_flowop_needs_is_what_is_missed() {
    for cells in rows("Flowops", 5) {
        let kind = cells[0].trim_matches('`');
        let mut missed = BTreeSet::new();
        // One that lacks its size is not asked for more.
        for given in ["", ",iosize=1k"] {
            let text = format!(
                "eventgen rate=5 define process name=p {{ thread name=t {{ flowop {kind} name=a{given} }} }} run"
            );
            let script = parse(&text, "x").unwrap();
            for finding in check(&script, Variables::new("x", false), &|_| None) {
                let message = finding.error.message;
                // Its slot may be another's matter.
                if message.contains("finds its slot") {
                    continue;
                }
                let wanted = message
                    .split_once("expected `")
                    .map(|(_, wanted)| wanted.split(['=', '`']).next().unwrap().to_owned());
                // A closefile is a flowop, not an attribute.
                missed.extend(wanted.filter(|name| FlowopAttribute::find(name).is_some()));
            }
        }
        let needed: BTreeSet<String> = cells[3]
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|name| *name != "fd")
            .map(str::to_owned)
            .collect();
        assert_eq!(missed, needed, "{kind}");
    }
}

#[test]
fn the_table_of_custom_variables_is_the_codes() {
    let documented: Vec<(String, String)> = rows("Custom variables", 3)
        .into_iter()
        .map(|cells| (cells[0].clone(), cells[1].clone()))
        .collect();
    let known: Vec<(String, String)> = CUSTOM_KINDS
        .iter()
        .map(|kind| {
            let parameters: Vec<String> = kind
                .parameters
                .iter()
                .map(|(name, value)| format!("`{name}` {value}"))
                .collect();
            (format!("`{}`", kind.name), parameters.join(", "))
        })
        .collect();
    assert_eq!(documented, known);
}

/// Each form of the page's tables is one that the parser knows.
#[test]
fn the_commands_of_the_tables_are_accepted() {
    for heading in ["Commands", "Older forms"] {
        for cells in rows(heading, 2) {
            for form in cells[0].split('`').skip(1).step_by(2) {
                let text = match form {
                    // Attributes and values have no command of their own.
                    "size" | "filesizegamma" | "filesizegamma=" | "cached=" | "procname="
                    | "datasource=entro" | "entropy=" | "entries=" | "$x.mean" => continue,
                    "define fileset" | "define file" => format!("{form} name=a,path=b"),
                    "define process ... { thread ... { flowop ... } }" => {
                        "define process name=a { thread name=b { flowop aiowait name=c } }".into()
                    }
                    "define flowop ... { flowop ... }" => {
                        "define flowop name=a { flowop aiowait name=c }".into()
                    }
                    "path=$dir/name" => format!("define fileset name=a,{form}"),
                    "stats directory" => format!("{form} x"),
                    "stats dump" | "stats xmldump" | "stats multidump" => format!("{form} \"x\""),
                    "psrun P N" => "psrun 10 60".into(),
                    "debug n" => "debug 1".into(),
                    "define randvar name=$x, ..." => "define randvar name=$x, mean=5".into(),
                    _ => form
                        .replace("{ ... }", "{ version }")
                        .replace("=..", "=5")
                        .replace(" value", " 5")
                        .replace(" 5=", " value="),
                };
                let parsed = parse(&text, "page");
                assert!(parsed.is_ok(), "{heading}: {text}: {parsed:?}");
            }
        }
    }
}

#[test]
fn the_pages_example_is_without_any_finding() {
    let page = page();
    let example = page.split("```\n").nth(1).unwrap();
    let script = parse(example, "page").unwrap();
    assert_eq!(check(&script, Variables::new("page", false), &|_| None), []);
}
