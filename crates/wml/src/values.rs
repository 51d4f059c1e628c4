//! The values of variables, and what is read from an attribute.

use std::collections::BTreeMap;
use std::sync::Arc;

use dyno_load::Random;

use crate::ast::{
    Assigned, Assignment, Attributes, Composite, CustomVariable, CvarAttribute, Fileset,
    FilesetAttribute, Flowop, Key, Operator, ParameterValue, Part, Piece, Position,
    ProcessAttribute, RandomLaw, RandomSource, RandomVariable, RandvarAttribute, Script, Text,
    Value, ValueKind, Variable, Wanted,
};
use crate::distribution::{CustomParameters, Distribution, RandomParameters};
use crate::error::Error;
use crate::lexer::{self, quote};

/// What a variable is set to.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// Yes or no.
    Boolean(bool),
    /// A number without a fraction.
    Integer(u64),
    /// A number with one.
    Float(f64),
    /// A text.
    Text(String),
    /// A random variable; its attributes are read when it is.
    Random(RandomVariable),
    /// A custom variable; its attributes are read when it is.
    Custom(CustomVariable),
}

/// A number as an attribute has it: always the same, or a new one at every reading.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// Always this one.
    Fixed(f64),
    /// Drawn.
    Random(Arc<Distribution>),
}

impl Number {
    /// One reading.
    #[inline]
    pub fn sample(&self, random: &mut Random) -> f64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Random(distribution) => distribution.sample(random),
        }
    }

    /// One reading as a count: its fraction cut off, nothing below 0.
    #[inline]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the cast saturates
    pub fn sample_count(&self, random: &mut Random) -> u64 {
        self.sample(random) as u64
    }

    /// The mean of its readings.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Random(distribution) => distribution.mean(),
        }
    }

    /// The number, if it is always the same.
    #[must_use]
    pub const fn fixed(&self) -> Option<f64> {
        match self {
            Self::Fixed(value) => Some(*value),
            Self::Random(_) => None,
        }
    }
}

/// All variables: those of the file, and within a composite flowop its local ones.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    name: Arc<str>,
    compat: bool,
    held: Arc<BTreeMap<String, Held>>,
    /// Within a composite flowop: its local variables, which hide those of the file.
    locals: Arc<BTreeMap<String, Held>>,
    /// Values from outside, each in place of the file's first one.
    replacements: Arc<BTreeMap<String, Assigned>>,
}

type Read<T> = Result<T, Error>;

impl Variables {
    /// None yet; `name` is the file's in messages; `compat` as for [`Distribution`].
    #[must_use]
    pub fn new(name: &str, compat: bool) -> Self {
        Self {
            name: name.into(),
            compat,
            ..Self::default()
        }
    }

    /// Gives a variable a value from outside, `--set NAME=VALUE`: in place of the first one that the file sets;
    /// a variable that the file uses and does not set has it from the start. Of a name that is not in the file, the
    /// names that are. A file that loads another may have any.
    pub fn replace(&mut self, script: &Script, name: &str, value: Assigned) -> Result<(), String> {
        let name = name.strip_prefix('$').unwrap_or(name);
        if script.sets().contains(name) || script.loads() {
            Arc::make_mut(&mut self.replacements).insert(name.to_owned(), value);
            self.provide(script).map_err(|error| error.to_string())?;
        } else if script.variables.contains(name) {
            let held = self.evaluate(&value).map_err(|error| error.to_string())?;
            Arc::make_mut(&mut self.held).insert(name.to_owned(), held);
        } else {
            let known: Vec<&str> = script.variables.iter().map(String::as_str).collect();
            return Err(format!(
                "{} has no variable ${name}, expected one of: {}",
                script.name,
                known.join(", ")
            ));
        }
        Ok(())
    }

    /// Gives the variables that a file uses and never sets their values from outside: of a file that was loaded.
    pub fn provide(&mut self, script: &Script) -> Read<()> {
        let sets = script.sets();
        let wanted: Vec<(String, Assigned)> = self
            .replacements
            .iter()
            .filter(|(name, _)| {
                script.variables.contains(*name)
                    && !sets.contains(name.as_str())
                    && !self.held.contains_key(*name)
            })
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        for (name, value) in wanted {
            let held = self.evaluate(&value)?;
            Arc::make_mut(&mut self.held).insert(name, held);
        }
        Ok(())
    }

    /// The values from outside that nothing has had a use for so far.
    pub fn unused_replacements(&self) -> impl Iterator<Item = &str> {
        self.replacements
            .keys()
            .map(String::as_str)
            .filter(|name| !self.held.contains_key(*name))
    }

    /// What a variable is set to.
    #[must_use]
    pub fn get(&self, variable: &str) -> Option<&Held> {
        self.locals
            .get(variable)
            .or_else(|| self.held.get(variable))
    }

    /// All of the file that are set, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Held)> {
        self.held.iter().map(|(name, held)| (name.as_str(), held))
    }

    /// Carries out a `set`.
    pub fn assign(&mut self, assignment: &Assignment) -> Read<()> {
        let name = &assignment.variable.name;
        let held = if self.replacements.contains_key(name) {
            let value = Arc::make_mut(&mut self.replacements).remove(name);
            self.evaluate(value.as_ref().unwrap_or(&assignment.value))?
        } else {
            self.evaluate(&assignment.value)?
        };
        Arc::make_mut(&mut self.held).insert(name.clone(), held);
        Ok(())
    }

    /// Sets a variable to a value, as `foreach` and composite flowops do; another variable is read at once.
    pub fn bind(&mut self, variable: &str, value: &Value) -> Read<()> {
        let held = self.held_by(value)?;
        Arc::make_mut(&mut self.held).insert(variable.to_owned(), held);
        Ok(())
    }

    /// The variables within a composite flowop where it is used: the file's, and its own with the values
    /// that the use gives them (read here, so `$inner = $outer` passes on), else with their defaults.
    pub fn within(&self, composite: &Composite, used: &Flowop) -> Read<Self> {
        let file = Self {
            locals: Arc::default(),
            ..self.clone()
        };
        let mut locals = BTreeMap::new();
        for (scope, list) in [(&file, &composite.locals), (self, &used.locals)] {
            for local in list {
                if let Some(value) = &local.value {
                    locals.insert(local.variable.name.clone(), scope.held_by(value)?);
                }
            }
        }
        Ok(Self {
            locals: Arc::new(locals),
            ..file
        })
    }

    /// Carries out a `set $name.mean = ...`.
    pub fn set_parameter(
        &mut self,
        variable: &Variable,
        part: Part,
        value: &ParameterValue,
    ) -> Read<()> {
        if !matches!(self.held.get(&variable.name), Some(Held::Random(_))) {
            return Err(self.not_random(variable));
        }
        let Some(Held::Random(random)) = Arc::make_mut(&mut self.held).get_mut(&variable.name)
        else {
            return Ok(());
        };
        let key = match (part, value) {
            (Part::Type, ParameterValue::Law(law)) => {
                random.law = Some(*law);
                return Ok(());
            }
            (Part::Source, ParameterValue::Source(source)) => {
                random.source = Some(*source);
                return Ok(());
            }
            _ => attribute(part),
        };
        if let (Some(key), ParameterValue::Value(value)) = (key, value) {
            random.attributes.push(crate::ast::Attribute {
                at: variable.at,
                key,
                value: value.clone(),
            });
        }
        Ok(())
    }

    pub(crate) fn error(&self, at: Position, message: impl Into<String>) -> Error {
        Error::new(&self.name, at, message)
    }

    fn not_random(&self, variable: &Variable) -> Error {
        self.error(
            variable.at,
            format!(
                "${} is no random variable, expected one with parameters",
                variable.name
            ),
        )
    }

    fn evaluate(&self, value: &Assigned) -> Read<Held> {
        match value {
            Assigned::Value(value) => self.held_by(value),
            Assigned::Arithmetic { first, rest } => self.arithmetic(first, rest),
            Assigned::Random(variable) => Ok(Held::Random(variable.clone())),
            Assigned::Custom(variable) => Ok(Held::Custom(variable.clone())),
        }
    }

    fn held_by(&self, value: &Value) -> Read<Held> {
        Ok(match &value.kind {
            ValueKind::Boolean(value) => Held::Boolean(*value),
            ValueKind::Integer(value) => Held::Integer(*value),
            ValueKind::Float(value) => Held::Float(*value),
            ValueKind::Text(text) => Held::Text(self.text(text)),
            ValueKind::Variable(variable) => {
                if variable.part.is_some() {
                    let number = self.number(value)?;
                    let value = number.fixed().unwrap_or_default();
                    return Ok(whole(value).map_or(Held::Float(value), Held::Integer));
                }
                self.find(variable)?.clone()
            }
        })
    }

    fn arithmetic(&self, first: &Value, rest: &[(Operator, Value)]) -> Read<Held> {
        let start = self.held_by(first)?;
        if let Held::Text(mut text) = start {
            // `$dir/$name` of older files is a path.
            for (operator, operand) in rest {
                if *operator != Operator::Divide {
                    return Err(self.error(
                        first.at,
                        format!("{} is a text, expected a number", quote(&text)),
                    ));
                }
                text.push('/');
                text.push_str(&self.name(operand)?);
            }
            return Ok(Held::Text(text));
        }
        let mut result = self.integer(first)?;
        for (operator, operand) in rest {
            let by = self.integer(operand)?;
            let outcome = match operator {
                Operator::Add => result.checked_add(by),
                Operator::Subtract => result.checked_sub(by),
                Operator::Multiply => result.checked_mul(by),
                Operator::Divide => result.checked_div(by),
            };
            result = outcome.ok_or_else(|| {
                self.error(
                    operand.at,
                    format!(
                        "{result} {operator} {by} is no number, expected a result from 0 to 2^64"
                    ),
                )
            })?;
        }
        Ok(Held::Integer(result))
    }

    fn integer(&self, value: &Value) -> Read<u64> {
        let number = match self.held_by(value)? {
            Held::Integer(value) => return Ok(value),
            Held::Float(value) => Some(value),
            Held::Text(text) => literal(&text),
            _ => None,
        };
        number
            .and_then(whole)
            .ok_or_else(|| self.error(value.at, "expected an integer for arithmetic"))
    }

    fn find(&self, variable: &Variable) -> Read<&Held> {
        self.get(&variable.name).ok_or_else(|| {
            self.error(
                variable.at,
                format!(
                    "${} is not set, expected `set ${} = ...` before it is used",
                    variable.name, variable.name
                ),
            )
        })
    }

    /// Reads a number.
    pub fn number(&self, value: &Value) -> Read<Number> {
        let found = match &value.kind {
            ValueKind::Boolean(_) => None,
            ValueKind::Integer(value) => Some(*value as f64),
            ValueKind::Float(value) => Some(*value),
            ValueKind::Text(text) => literal(&self.text(text)),
            ValueKind::Variable(variable) => {
                if let Some(part) = variable.part {
                    return self.part(variable, part).map(Number::Fixed);
                }
                match self.find(variable)? {
                    Held::Boolean(_) => None,
                    Held::Integer(value) => Some(*value as f64),
                    Held::Float(value) => Some(*value),
                    Held::Text(text) => literal(text),
                    held @ (Held::Random(_) | Held::Custom(_)) => {
                        let (distribution, _) = self.distribution(held)?;
                        return Ok(Number::Random(Arc::new(distribution)));
                    }
                }
            }
        };
        found.map(Number::Fixed).ok_or_else(|| {
            self.error(
                value.at,
                format!("found {}, expected a number", self.shown(value)),
            )
        })
    }

    /// Reads a number that is always the same.
    pub fn fixed(&self, value: &Value) -> Read<f64> {
        // Asked before the law is built, which may be the very one that asks.
        let random = match &value.kind {
            ValueKind::Variable(variable) if variable.part.is_none() => matches!(
                self.get(&variable.name),
                Some(Held::Random(_) | Held::Custom(_))
            ),
            _ => false,
        };
        let number = if random {
            None
        } else {
            self.number(value)?.fixed()
        };
        number.ok_or_else(|| {
            self.error(
                value.at,
                format!(
                    "found {}, expected a number that is not random",
                    self.shown(value)
                ),
            )
        })
    }

    /// Reads a parameter of a law: no other law's, or they could ask each other without an end.
    fn parameter(&self, value: &Value) -> Read<f64> {
        match &value.kind {
            ValueKind::Variable(variable) if variable.part.is_some() => Err(self.error(
                value.at,
                format!(
                    "found {}, a parameter of a law, expected a number (`set $number = {}` before gives one)",
                    quote(&variable.written),
                    variable.written
                ),
            )),
            _ => self.fixed(value),
        }
    }

    /// Refuses what no attribute of an object means: a number below 0, and a percentage above 100. Cut off, either
    /// would be another workload than the one that is written. With `compat` a percentage may be above 100, which
    /// filebench takes for all; below 0 it reads no number either.
    pub fn refuse_senseless<K: Key>(&self, attributes: &Attributes<K>) -> Read<()> {
        for attribute in attributes {
            let (key, value) = (attribute.key.name(), &attribute.value);
            match attribute.key.about().wanted {
                // The only one that takes something off.
                Wanted::Number if key == ProcessAttribute::Nice.name() => {}
                Wanted::Number | Wanted::Any => self.refuse_negative(key, value)?,
                Wanted::Percentage => {
                    self.refuse_negative(key, value)?;
                    if !self.compat && self.plain_number(value).is_some_and(|read| read > 100.0) {
                        return Err(self.error(
                            value.at,
                            format!(
                                "{key} is {}, expected a percentage from 0 to 100",
                                self.shown(value)
                            ),
                        ));
                    }
                }
                Wanted::Name | Wanted::Text | Wanted::Boolean => {}
            }
        }
        Ok(())
    }

    /// Refuses a number below 0; what is none, or a random one, is for others to judge.
    pub fn refuse_negative(&self, key: &str, value: &Value) -> Read<()> {
        match self.plain_number(value) {
            Some(read) if read < 0.0 => Err(self.error(
                value.at,
                format!(
                    "{key} is {}, expected a number that is not below 0",
                    self.shown(value)
                ),
            )),
            _ => Ok(()),
        }
    }

    fn plain_number(&self, value: &Value) -> Option<f64> {
        self.number(value).ok()?.fixed()
    }

    /// Reads yes or no; a number is yes unless it is 0.
    pub fn boolean(&self, value: &Value) -> Read<bool> {
        let held = self.held_by(value)?;
        match held {
            Held::Boolean(value) => Some(value),
            Held::Integer(value) => Some(value != 0),
            Held::Float(value) => Some(value != 0.0),
            Held::Text(text) if text == "true" => Some(true),
            Held::Text(text) if text == "false" => Some(false),
            _ => None,
        }
        .ok_or_else(|| {
            self.error(
                value.at,
                format!(
                    "found {}, expected true, false or a number",
                    self.shown(value)
                ),
            )
        })
    }

    /// Reads a percentage; yes is 100, and so is what is above (see [`Self::refuse_senseless`]).
    pub fn percentage(&self, value: &Value) -> Read<f64> {
        if let Held::Boolean(value) = self.held_by(value)? {
            return Ok(if value { 100.0 } else { 0.0 });
        }
        Ok(self.fixed(value)?.min(100.0))
    }

    /// Reads a name or a text.
    pub fn name(&self, value: &Value) -> Read<String> {
        match self.held_by(value)? {
            Held::Boolean(value) => Ok(value.to_string()),
            Held::Integer(value) => Ok(value.to_string()),
            Held::Float(value) => Ok(value.to_string()),
            Held::Text(text) => Ok(text),
            _ => Err(self.error(
                value.at,
                format!("found {}, expected a text", self.shown(value)),
            )),
        }
    }

    /// A text with its variables' values; a variable that nobody set stays as it is written.
    #[must_use]
    pub fn text(&self, text: &Text) -> String {
        text.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Literal(text) => text.clone(),
                Piece::Variable(variable) => self.as_text(variable),
            })
            .collect()
    }

    fn as_text(&self, variable: &Variable) -> String {
        let Some(held) = self.get(&variable.name) else {
            return variable.written.clone();
        };
        if let Some(part) = variable.part {
            if matches!(held, Held::Random(_)) {
                return match part {
                    Part::Type => law_name(held).to_owned(),
                    Part::Source => source_name(held).to_owned(),
                    _ => self
                        .part(variable, part)
                        .map_or_else(|_| variable.written.clone(), |value| value.to_string()),
                };
            }
            // "$file.min" of a file that is no random variable.
            let part = Part::ALL
                .iter()
                .find_map(|&(name, known)| (known == part).then_some(name));
            return format!("{}.{}", shown(held), part.unwrap_or_default());
        }
        shown(held)
    }

    fn shown(&self, value: &Value) -> String {
        let held = match &value.kind {
            ValueKind::Boolean(value) => Held::Boolean(*value),
            ValueKind::Integer(value) => Held::Integer(*value),
            ValueKind::Float(value) => Held::Float(*value),
            ValueKind::Text(text) => Held::Text(self.text(text)),
            ValueKind::Variable(variable) => {
                let held = self
                    .get(&variable.name)
                    .map_or_else(|| "nothing".to_owned(), shown);
                return format!("${} ({})", variable.name, quote(&held));
            }
        };
        quote(&shown(&held))
    }

    /// One parameter of a random variable.
    fn part(&self, variable: &Variable, part: Part) -> Read<f64> {
        let Held::Random(random) = self.find(variable)? else {
            return Err(self.not_random(variable));
        };
        let parameters = self.random_parameters(random)?;
        Ok(match part {
            Part::Seed => parameters.seed as f64,
            Part::Gamma => parameters.gamma,
            Part::Min => parameters.min,
            Part::Round => parameters.round,
            Part::Mean => self.distribution(&Held::Random(random.clone()))?.0.mean(),
            Part::Type | Part::Source => {
                return Err(self.error(variable.at, "found a word, expected a number"));
            }
        })
    }

    /// The law of a random or custom variable, its attributes read now, with what is hardly meant about it.
    pub fn distribution(&self, held: &Held) -> Read<(Distribution, Vec<String>)> {
        match held {
            Held::Random(random) => {
                let parameters = self.random_parameters(random)?;
                Distribution::random(&parameters, self.compat)
                    .map_err(|message| self.error(random.at, message))
            }
            Held::Custom(custom) => {
                let parameters = self.custom_parameters(custom)?;
                Distribution::custom(&parameters, self.compat)
                    .map_err(|message| self.error(custom.at, message))
            }
            _ => Err(self.error(
                Position { line: 1, column: 1 },
                "expected a random or custom variable",
            )),
        }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // the cast saturates
    fn random_parameters(&self, random: &RandomVariable) -> Read<RandomParameters> {
        let read = |key| {
            random
                .attributes
                .get(key)
                .map(|value| self.parameter(value))
                .transpose()
        };
        let table = match &random.table {
            None => None,
            Some(rows) => {
                let mut table = Vec::with_capacity(rows.len());
                for row in rows {
                    table.push([
                        self.parameter(&row.percent)?,
                        self.parameter(&row.min)?,
                        self.parameter(&row.max)?,
                    ]);
                }
                Some(table)
            }
        };
        Ok(RandomParameters {
            law: random.law,
            mean: read(RandvarAttribute::Mean)?,
            gamma: read(RandvarAttribute::Gamma)?.unwrap_or(1500.0),
            min: read(RandvarAttribute::Min)?.unwrap_or(0.0),
            round: read(RandvarAttribute::Round)?.unwrap_or(0.0),
            seed: read(RandvarAttribute::Seed)?.unwrap_or(0.0) as u64,
            table,
        })
    }

    fn custom_parameters(&self, custom: &CustomVariable) -> Read<CustomParameters> {
        let read = |key| {
            custom
                .attributes
                .get(key)
                .map(|value| self.parameter(value))
                .transpose()
        };
        let Some(kind) = custom.attributes.get(CvarAttribute::Type) else {
            return Err(self.error(
                custom.at,
                "the custom variable has no type, expected `type=cvar-...`",
            ));
        };
        Ok(CustomParameters {
            kind: self.name(kind)?,
            parameters: match custom.attributes.get(CvarAttribute::Parameters) {
                Some(value) => self.name(value)?,
                None => String::new(),
            },
            min: read(CvarAttribute::Min)?,
            max: read(CvarAttribute::Max)?,
            round: read(CvarAttribute::Round)?.unwrap_or(0.0),
        })
    }

    /// The sizes of a fileset's files: as `size` says, and in files of older form gamma-distributed.
    pub fn file_size(&self, fileset: &Fileset) -> Read<Number> {
        let attributes = &fileset.attributes;
        let size = match attributes.get(FilesetAttribute::Size) {
            Some(value) => self.number(value)?,
            None => Number::Fixed(1024.0),
        };
        let gamma = match attributes.get(FilesetAttribute::FileSizeGamma) {
            Some(value) => self.fixed(value)?,
            None if fileset.older => 1500.0,
            None => 0.0,
        };
        match size {
            Number::Fixed(mean) if gamma > 0.0 && mean > 0.0 && !fileset.single => {
                let law = Distribution::gamma(mean, gamma / 1000.0)
                    .map_err(|message| self.error(fileset.at, message))?;
                Ok(Number::Random(Arc::new(law)))
            }
            size => Ok(size),
        }
    }

    /// Bits of information in each byte of a fileset's data; none where nothing is said of it.
    pub fn entropy(&self, fileset: &Fileset) -> Read<Option<f64>> {
        let attributes = &fileset.attributes;
        let given = attributes.get(FilesetAttribute::Entropy);
        if let Some(value) = attributes.get(FilesetAttribute::DataSource) {
            let source = self.name(value)?;
            if source != "entro" {
                let message = format!(
                    "{} is no known source of data, expected entro",
                    quote(&source)
                );
                return Err(self.error(value.at, message));
            }
            if given.is_none() {
                return Err(self.error(
                    value.at,
                    "data of which entropy? expected `entropy=` beside it",
                ));
            }
        }
        let Some(value) = given else {
            return Ok(None);
        };
        let bits = self.fixed(value)?;
        if !(0.0..=8.0).contains(&bits) {
            let message = format!("an entropy of {bits} bits a byte, expected 0 to 8");
            return Err(self.error(value.at, message));
        }
        Ok(Some(bits))
    }
}

impl std::fmt::Display for Operator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
        })
    }
}

fn shown(held: &Held) -> String {
    match held {
        Held::Boolean(value) => value.to_string(),
        Held::Integer(value) => value.to_string(),
        Held::Float(value) => value.to_string(),
        Held::Text(text) => text.clone(),
        Held::Random(_) => format!("a random variable, {}", law_name(held)),
        Held::Custom(_) => "a custom variable".to_owned(),
    }
}

fn law_name(held: &Held) -> &'static str {
    match held {
        Held::Random(RandomVariable {
            law: Some(RandomLaw::Uniform),
            ..
        }) => "uniform",
        Held::Random(
            RandomVariable {
                law: Some(RandomLaw::Tabular),
                ..
            }
            | RandomVariable {
                law: None,
                table: Some(_),
                ..
            },
        ) => "tabular",
        _ => "gamma",
    }
}

fn source_name(held: &Held) -> &'static str {
    match held {
        Held::Random(RandomVariable {
            source: Some(RandomSource::Urandom),
            ..
        }) => "urandom",
        _ => "rand48",
    }
}

const fn attribute(part: Part) -> Option<RandvarAttribute> {
    match part {
        Part::Seed => Some(RandvarAttribute::Seed),
        Part::Gamma => Some(RandvarAttribute::Gamma),
        Part::Mean => Some(RandvarAttribute::Mean),
        Part::Min => Some(RandvarAttribute::Min),
        Part::Round => Some(RandvarAttribute::Round),
        Part::Type | Part::Source => None,
    }
}

/// The number that a text is.
fn literal(text: &str) -> Option<f64> {
    match lexer::number(text)? {
        lexer::Number::Integer(value) => Some(value as f64),
        lexer::Number::Float(value) => Some(value),
        lexer::Number::TooLarge => None,
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within the bounds
fn whole(value: f64) -> Option<u64> {
    (value >= 0.0 && value < u64::MAX as f64).then_some(value as u64)
}
