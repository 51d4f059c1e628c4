//! Flame graphs as SVG, each for a page that shows many of them and as a file that can be searched and zoomed.

use std::io;

use inferno::differential;
use inferno::flamegraph::color::{BackgroundColor, Color, MultiPalette};
use inferno::flamegraph::{self, Options, Palette};
use serde::Deserialize;

/// Frames that are narrower, in per cent of the width, are left out: of the page, where bytes count, and of the file.
const LEAST_ON_PAGE: f64 = 0.4;
const LEAST_IN_FILE: f64 = 0.05;

const PADDING_TOP: usize = 36; // three lines of text, for a title that the page gives by itself
const PADDING_BOTTOM: usize = 34;

/// What to draw.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Graph {
    /// The name of its files.
    pub name: String,
    /// What stands above it.
    pub title: String,
    /// Folded stacks, a line each: `main;f;g 12`.
    pub stacks: Vec<String>,
    /// The stacks that they are set against: then widths are of `stacks`, and colours say what grew and what shrank.
    #[serde(default)]
    pub before: Option<Vec<String>>,
}

/// A graph as SVG.
#[derive(Debug)]
pub struct Drawn {
    /// Without styles, scripts and ids of its own, to stand in a page.
    pub page: String,
    /// By itself.
    pub file: String,
}

/// Draws a graph; the same stacks give the same bytes. An error where there are no stacks.
pub fn draw(graph: &Graph) -> io::Result<Drawn> {
    let lines = match &graph.before {
        None => graph.stacks.iter().map(|line| for_label(line)).collect(),
        Some(before) => changes(before, &graph.stacks)?,
    };
    let file = drawn(graph, &lines, LEAST_IN_FILE, true)?;
    let page = for_page(&drawn(graph, &lines, LEAST_ON_PAGE, false)?)
        .ok_or_else(|| io::Error::other("the graph is not as this program knows graphs to be"))?;
    Ok(Drawn { page, file })
}

/// Both counts for each stack, those before made as many in all as those after.
fn changes(before: &[String], after: &[String]) -> io::Result<Vec<String>> {
    let text = |stacks: &[String]| {
        stacks
            .iter()
            .map(|line| for_label(line) + "\n")
            .collect::<String>()
    };
    let options = differential::Options {
        normalize: true,
        strip_hex: false,
    };
    let mut both = Vec::new();
    differential::from_readers(
        options,
        text(before).as_bytes(),
        text(after).as_bytes(),
        &mut both,
    )?;
    let mut lines: Vec<String> = String::from_utf8_lossy(&both)
        .lines()
        .map(str::to_owned)
        .collect();
    lines.sort_unstable();
    Ok(lines)
}

/// A folded stack without the files and versions of its symbols, which would fill most frames.
fn for_label(line: &str) -> String {
    let (stack, count) = line.rsplit_once(' ').unwrap_or((line, "0"));
    let frames: Vec<&str> = stack
        .split(';')
        .map(|frame| match frame.split_once('@') {
            Some((symbol, _)) if !symbol.is_empty() => symbol,
            _ => frame,
        })
        .collect();
    format!("{} {count}", frames.join(";"))
}

fn drawn(graph: &Graph, lines: &[String], least: f64, by_itself: bool) -> io::Result<String> {
    let mut options = Options::default();
    options.title.clone_from(&graph.title);
    options.colors = Palette::Multi(MultiPalette::Java);
    // By the names, so that a function has the same colour in every graph, today and in years.
    options.hash = true;
    options.bgcolors = Some(BackgroundColor::Flat(Color::from([0xff, 0xff, 0xff])));
    options.min_width = least;
    options.no_javascript = !by_itself;
    let mut svg = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut svg)?;
    Ok(String::from_utf8_lossy(&svg).into_owned())
}

/// The frames alone, with their titles, which a browser shows without a script.
fn for_page(svg: &str) -> Option<String> {
    let height: usize = between(svg, " height=\"", "\"")?.parse().ok()?;
    let frames: Option<String> = svg.split("<g>").skip(1).map(frame).collect();
    let shown = height.checked_sub(PADDING_TOP + PADDING_BOTTOM)? + 4;
    Some(format!(
        "<svg class=\"flame\" xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" height=\"{shown}\" \
         viewBox=\"0 {PADDING_TOP} 1200 {shown}\"><svg x=\"10\" width=\"1180\" height=\"{height}\">{}</svg></svg>",
        frames?
    ))
}

fn frame(text: &str) -> Option<String> {
    let title = between(text, "<title>", "</title>")?;
    let place = between(text, "<rect ", " fg:x=")?;
    let (_, label) = text.split_once("<text ")?;
    let (label, _) = label.split_once("</text>")?;
    let label = if label.ends_with('>') {
        String::new()
    } else {
        format!("<text {label}</text>")
    };
    Some(format!(
        "<g><title>{title}</title><rect {place}/>{label}</g>"
    ))
}

fn between<'a>(text: &'a str, from: &str, to: &str) -> Option<&'a str> {
    Some(text.split_once(from)?.1.split_once(to)?.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn graph(stacks: &[&str], before: Option<&[&str]>) -> Graph {
        let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
        Graph {
            name: "cell".into(),
            title: "a <cell>".into(),
            stacks: owned(stacks),
            before: before.map(owned),
        }
    }

    const STACKS: [&str; 3] = [
        "server;main@server;read_row@server 60",
        "server;main@server;sys_read_[k];copy_[k] 39",
        "server;main@server;operator<<@server 1",
    ];

    #[test]
    fn each_frame_has_its_share_and_no_file() {
        let drawn = draw(&graph(&STACKS, None)).unwrap();
        for svg in [&drawn.page, &drawn.file] {
            assert!(svg.contains("<title>read_row (60 samples, 60.00%)</title>"));
            assert!(svg.contains("<title>copy (39 samples, 39.00%)</title>"));
            assert!(svg.contains("operator&lt;&lt; (1 samples, 1.00%)"));
            assert!(!svg.contains("@server"));
        }
        assert!(drawn.file.contains("a &lt;cell&gt;"));
    }

    #[test]
    fn on_a_page_a_graph_has_nothing_that_reaches_beyond_it() {
        let page = draw(&graph(&STACKS, None)).unwrap().page;
        for foreign in [
            "<style",
            "<script",
            " id=",
            "onload",
            "fg:",
            "<?xml",
            "</text></text>",
        ] {
            assert!(!page.contains(foreign), "{foreign}");
        }
        assert_eq!(page.matches("<g>").count(), page.matches("</g>").count());
        // Seven frames. That of all has no label, and that of 1 % is too narrow for one.
        assert_eq!(page.matches("<rect ").count(), 7);
        assert_eq!(page.matches("<text ").count(), 5);
    }

    #[test]
    fn what_is_too_narrow_is_left_out_of_the_page_and_not_of_the_file() {
        let drawn = draw(&graph(&["a;wide 997", "a;narrow 3"], None)).unwrap();
        assert!(drawn.file.contains("narrow"));
        assert!(!drawn.page.contains("narrow"));
    }

    #[test]
    fn a_difference_says_what_grew_whatever_the_number_of_samples() {
        let before = ["a;log 100", "a;copy 100"];
        let drawn = draw(&graph(&["a;log 30", "a;copy 10"], Some(&before))).unwrap();
        assert!(
            drawn
                .page
                .contains("<title>log (30 samples, 75.00%; +25.00%)</title>")
        );
        assert!(
            drawn
                .page
                .contains("<title>copy (10 samples, 25.00%; -25.00%)</title>")
        );
    }

    #[test]
    fn the_same_stacks_give_the_same_bytes() {
        let (one, other) = (
            draw(&graph(&STACKS, Some(&STACKS))).unwrap(),
            draw(&graph(&STACKS, Some(&STACKS))).unwrap(),
        );
        assert_eq!((one.page, one.file), (other.page, other.file));
    }

    #[test]
    fn no_stacks_are_an_error() {
        assert!(draw(&graph(&[], None)).is_err());
    }
}
