//! Wrong inputs, and what must hold of every input: no panic, an end in bounded time, an error within the text.

use std::time::{Duration, Instant};

use dyno_load::Random;
use dyno_wml::ast::Script;
use dyno_wml::{Variables, check, parse, parse_bytes};

/// A file with every form of the language.
pub const FORMS: &str = include_str!("forms.f");

/// Longer than any input may take, by far: the machine may be busy.
const LONGEST: Duration = Duration::from_secs(5);

/// Larger than any workload, so that what is not linear shows.
const LARGEST: usize = 64 * 1024;

/// What became of some inputs.
#[derive(Debug, Default)]
pub struct Outcome {
    pub inputs: u64,
    pub bytes: u64,
    pub accepted: u64,
    pub slowest: Duration,
}

/// Makes `inputs` wrong inputs of `seeds` and looks at each; what is accepted `further` is given too.
pub fn run(inputs: u64, seed: u64, seeds: &[Vec<u8>], further: &dyn Fn(&Script)) -> Outcome {
    let mut maker = Maker {
        random: Random::new(seed, 0),
        words: seeds.iter().flat_map(|text| words(text)).collect(),
        seeds,
    };
    let mut outcome = Outcome::default();
    for _ in 0..inputs {
        let input = maker.input();
        let started = Instant::now();
        let accepted = look_at(&input, further);
        let took = started.elapsed();
        assert!(
            took < LONGEST,
            "{took:?} for {:?}",
            String::from_utf8_lossy(&input)
        );
        outcome.inputs += 1;
        outcome.bytes += input.len() as u64;
        outcome.accepted += u64::from(accepted);
        outcome.slowest = outcome.slowest.max(took);
    }
    outcome
}

/// Parses an input and, where it is accepted, looks it over; says whether it was.
fn look_at(input: &[u8], further: &dyn Fn(&Script)) -> bool {
    let text = String::from_utf8_lossy(input);
    let within = |line: u32, column: u32, message: &str| {
        let lines: Vec<&str> = text.split('\n').collect();
        let found = line
            .checked_sub(1)
            .and_then(|line| lines.get(line as usize));
        let length = found.map(|line| line.chars().count());
        assert!(
            length.is_some_and(|length| column >= 1 && column as usize <= length + 1),
            "{line}:{column} {message} is not within {text:?}"
        );
        assert!(
            !message.is_empty() && !message.contains('\n'),
            "{message:?}"
        );
    };
    match parse_bytes(input, "input") {
        Ok(script) => {
            let again = parse(&text, "input");
            assert_eq!(again.as_ref(), Ok(&script));
            let findings = check(&script, Variables::new("input", false), &|_| None);
            // A place of each line is enough, or this would be the slowest part.
            for finding in findings.iter().take(20) {
                within(
                    finding.error.line,
                    finding.error.column,
                    &finding.error.message,
                );
            }
            further(&script);
            true
        }
        Err(error) => {
            within(error.line, error.column, &error.message);
            false
        }
    }
}

struct Maker<'a> {
    random: Random,
    seeds: &'a [Vec<u8>],
    words: Vec<Vec<u8>>,
}

/// A text's words and marks.
fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut word = Vec::new();
    for &byte in text {
        if byte.is_ascii_alphanumeric() || b"$_./:;-".contains(&byte) {
            word.push(byte);
        } else {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
            }
            if !byte.is_ascii_whitespace() {
                words.push(vec![byte]);
            }
        }
    }
    words
}

impl Maker<'_> {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound.max(1) as u64)).unwrap_or_default()
    }

    fn any<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }

    fn input(&mut self) -> Vec<u8> {
        let mut input = match self.below(16) {
            0 => self.tokens(),
            1 => self.nested(),
            2 => self.bytes(),
            _ => {
                let seeds = self.seeds;
                self.any(seeds).clone()
            }
        };
        for _ in 0..=self.below(6) {
            self.mutate(&mut input);
        }
        input.truncate(LARGEST);
        input
    }

    /// Words of the language in no order.
    fn tokens(&mut self) -> Vec<u8> {
        let mut input = Vec::new();
        for _ in 0..self.below(200) {
            let place = self.below(self.words.len());
            input.extend_from_slice(&self.words[place]);
            input.push(*self.any(b"  \n,="));
        }
        input
    }

    fn bytes(&mut self) -> Vec<u8> {
        (0..self.below(500))
            .map(|_| u8::try_from(self.below(256)).unwrap_or_default())
            .collect()
    }

    /// One thing within itself, many times.
    fn nested(&mut self) -> Vec<u8> {
        const THINGS: [&str; 10] = [
            "foreach $n in 1 { ",
            "define flowop name=a { ",
            "{",
            "define process name=a { thread name=b { ",
            "set $a=randvar(randtable={{",
            "$(",
            "\"\\",
            "set $a=$a-",
            "load a ",
            "run run $a. ",
        ];
        let thing = self.any(&THINGS).to_owned();
        thing.repeat(1 + self.below(2_000)).into_bytes()
    }

    fn mutate(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let longest = *self.any(&[2, 20, 400]);
        let length = 1 + self.below(longest);
        let end = (at + length).min(input.len());
        match self.below(8) {
            0 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << self.random.below(8);
                }
            }
            1 => {
                if let Some(byte) = input.get_mut(at) {
                    *byte = *self.any(b"{}()=,\"$#\\\n\r\t .;-/+*0k\0\xff\xc3");
                }
            }
            2 => {
                input.drain(at.min(end)..end);
            }
            3 => {
                let copy = input[at.min(end)..end].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, copy);
            }
            4 => {
                let place = self.below(self.words.len());
                let word = self.words[place].clone();
                input.splice(at..at, word);
            }
            // A word for a word.
            5 => {
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'$';
                let from = input[..at]
                    .iter()
                    .rposition(|byte| !is_word(byte))
                    .map_or(0, |place| place + 1);
                let to = input[at..]
                    .iter()
                    .position(|byte| !is_word(byte))
                    .map_or(input.len(), |length| at + length);
                let place = self.below(self.words.len());
                let word = self.words[place].clone();
                input.splice(from..to, word);
            }
            6 => {
                let number = self.random.next_u64() >> self.random.below(64);
                input.splice(at..at, number.to_string().into_bytes());
            }
            _ => {
                let seeds = self.seeds;
                let other = self.any(seeds);
                let from = self.below(other.len());
                let part = &other[from..(from + length).min(other.len())];
                input.splice(at..end.max(at), part.iter().copied());
            }
        }
    }
}
