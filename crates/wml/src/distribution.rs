//! What random and custom variables draw.
//!
//! Numbers come from the caller's [`Random`]: each thread has its own, from the run's seed, where
//! filebench's processes all start with the same one. The laws are written here rather than taken from
//! a crate for the reason that [`Random`] is: the sequence is part of the meaning of a seed, and must not
//! change with a dependency.
//!
//! # Where filebench is otherwise
//!
//! `compat` is for those who want its figures; the rest of the time the middle column holds.
//!
//! | what | dyno | filebench 1.5-alpha3, and `compat` |
//! |---|---|---|
//! | a cvar's values below 0 without `min` | are 0 | are the least positive number; as a count that is 0 too |
//! | a cvar's `round` | the nearest multiple of the value; half-way up | the fraction is cut off first; half-way down; a `round` below 1 is 0 |
//! | `cvar-erlang` | `rate` is the rate: the mean is shape / rate | `rate` is read as the mean |
//! | numbers in `parameters` | `16k` is 16384; what is no number is refused | `16k` is 16, and what is no number is 0 |
//! | a gamma randvar without `mean` | its mean is gamma / 1000, about 1.5, and a warning says so | the same, in silence |
//! | a randvar whose `min` is above its `mean` | as written: values lie below `min`; below 0 they are 0; a warning | the same, in silence; below 0 anything may happen |
//! | a table that does not total 100 | its percentages are weights, and a warning says so | below 100 the rest draws 0; above 100 memory is overwritten (refused in `compat`) |
//! | a table without `mean` | is drawn as it is written, and is at least `min` | is stretched so that its lower end becomes `min` and its mean stays |
//! | a table with `mean` | is stretched so that its lower end becomes `min` and its mean `mean` | the same |
//! | a table without `type=tabular` | is a table | is refused |
//! | `randsrc` | says nothing: all numbers come from the thread's generator | `rand48` is the variable's own sequence, `urandom` the process's |
//! | `seed` | is kept ([`Distribution::seed`]) | starts the variable's own sequence |

use dyno_load::Random;

use crate::ast::RandomLaw;
use crate::lexer::{self, quote};
use crate::special::{gamma_p, ln_gamma, normal_cdf};

/// A law with its rounding and its bounds: checked, ready to draw from.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    law: Law,
    round: Round,
    min: f64,
    max: f64,
    seed: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Law {
    Uniform {
        lower: f64,
        upper: f64,
    },
    /// `shift` and a gamma law of this shape; a scale below 0 lies on the other side of `shift`.
    Gamma {
        shape: f64,
        scale: f64,
        shift: f64,
    },
    Normal {
        mean: f64,
        sigma: f64,
    },
    /// The exponential of a normal law.
    LogNormal {
        mean: f64,
        sigma: f64,
    },
    Weibull {
        shape: f64,
        scale: f64,
    },
    Triangular {
        lower: f64,
        mode: f64,
        upper: f64,
    },
    Table(Vec<Cell>),
}

/// A row of a table: uniform from `lower` to `upper` for draws from `from` on, `share` wide.
#[derive(Clone, Debug, PartialEq)]
struct Cell {
    from: f64,
    share: f64,
    lower: f64,
    upper: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Round {
    No,
    Nearest(f64),
    /// As filebench's cvars: cut off, then the nearest multiple, the lower of two.
    CutOff(f64),
}

/// What is known of a random variable, its references read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RandomParameters {
    /// `type`; nothing where it is left out.
    pub law: Option<RandomLaw>,
    /// `mean`; nothing where it is left out.
    pub mean: Option<f64>,
    /// `gamma`, as it is written: the shape times 1000.
    pub gamma: f64,
    /// `min`
    pub min: f64,
    /// `round`
    pub round: f64,
    /// `seed`
    pub seed: u64,
    /// `randtable`: percent, min and max of each row.
    pub table: Option<Vec<[f64; 3]>>,
}

/// What is known of a custom variable, its references read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomParameters {
    /// `type`
    pub kind: String,
    /// `parameters`, `key:value;key:value`.
    pub parameters: String,
    /// `min`
    pub min: Option<f64>,
    /// `max`
    pub max: Option<f64>,
    /// `round`
    pub round: f64,
}

/// A type of custom variable: its name, and its parameters with their defaults.
#[derive(Clone, Copy, Debug)]
pub struct CustomKind {
    /// As it is written after `type=`.
    pub name: &'static str,
    /// Its parameters and what they are where they are left out.
    pub parameters: &'static [(&'static str, f64)],
}

/// The types of custom variables.
pub const CUSTOM_KINDS: [CustomKind; 8] = [
    CustomKind {
        name: "cvar-uniform",
        parameters: &[("lower", 0.0), ("upper", 1.0)],
    },
    CustomKind {
        name: "cvar-normal",
        parameters: &[("mean", 0.0), ("sigma", 1.0)],
    },
    CustomKind {
        name: "cvar-lognormal",
        parameters: &[("shape", 1.0), ("scale", 1.0)],
    },
    CustomKind {
        name: "cvar-exponential",
        parameters: &[("mean", 1.0)],
    },
    CustomKind {
        name: "cvar-erlang",
        parameters: &[("shape", 1.0), ("rate", 1.0)],
    },
    CustomKind {
        name: "cvar-weibull",
        parameters: &[("shape", 1.0), ("scale", 1.0)],
    },
    CustomKind {
        name: "cvar-triangular",
        parameters: &[("lower", 0.0), ("upper", 1.0), ("mode", 0.5)],
    },
    CustomKind {
        name: "cvar-gamma",
        parameters: &[("mean", 4096.0), ("gamma", 1.5)],
    },
];

/// What is known of a law once it was built.
type Built = (Distribution, Vec<String>);

impl Distribution {
    /// A random variable. With it come warnings: what is accepted and hardly meant.
    pub fn random(parameters: &RandomParameters, compat: bool) -> Result<Built, String> {
        let mut warnings = Vec::new();
        let &RandomParameters {
            mean,
            min,
            gamma,
            round,
            seed,
            ..
        } = parameters;
        let rounding = at_least("round", round, 0.0).map(rounded)?;
        let law = match (parameters.law, &parameters.table) {
            (Some(RandomLaw::Tabular), None) => {
                return Err("a tabular random variable has no table, expected `randtable = {{percent, min, max}, ...}`".to_owned());
            }
            (Some(RandomLaw::Tabular), Some(rows)) => {
                Self::table(rows, mean, min, compat, &mut warnings)?
            }
            (None, Some(rows)) => {
                if compat {
                    return Err(
                        "a table without `type=tabular`, expected both (filebench refuses it)"
                            .to_owned(),
                    );
                }
                warnings.push(
                    "a table without `type=tabular` is taken for one; filebench refuses it"
                        .to_owned(),
                );
                Self::table(rows, mean, min, compat, &mut warnings)?
            }
            (Some(law), Some(_)) => {
                return Err(format!(
                    "a table with `type={}`, expected `type=tabular` or no table",
                    if law == RandomLaw::Uniform {
                        "uniform"
                    } else {
                        "gamma"
                    }
                ));
            }
            (Some(RandomLaw::Uniform), None) => {
                let mean = mean.unwrap_or_else(|| {
                    warnings
                        .push("a uniform random variable without `mean` has the mean 0".to_owned());
                    0.0
                });
                below_mean(min, mean, &mut warnings);
                // filebench: uniform with this lower end and this mean.
                Law::Uniform {
                    lower: min,
                    upper: 2.0 * mean - min,
                }
            }
            (Some(RandomLaw::Gamma) | None, None) => {
                let shape = above("gamma", gamma, 0.0)? / 1000.0;
                let mean = mean.unwrap_or_else(|| {
                    warnings.push(format!(
                        "a gamma random variable without `mean` has the mean {shape} (gamma / 1000)"
                    ));
                    shape
                });
                below_mean(min, mean, &mut warnings);
                Law::Gamma {
                    shape,
                    scale: (mean - min) / shape,
                    shift: min,
                }
            }
        };
        // Filebench's `min` is where the law begins, not a bound; of a table that is drawn as it stands it is one.
        let bound = match (&law, mean) {
            (Law::Table(_), None) if !compat => min,
            _ => 0.0,
        };
        let distribution = Self {
            law,
            round: rounding,
            min: bound.max(0.0),
            max: f64::MAX,
            seed,
        };
        distribution.finite()?;
        Ok((distribution, warnings))
    }

    /// A custom variable. With it come warnings: what is accepted and hardly meant.
    pub fn custom(parameters: &CustomParameters, compat: bool) -> Result<Built, String> {
        let Some(kind) = CUSTOM_KINDS
            .iter()
            .find(|kind| kind.name == parameters.kind)
        else {
            let known: Vec<&str> = CUSTOM_KINDS.iter().map(|kind| kind.name).collect();
            return Err(format!(
                "found the type {} of a custom variable, expected one of {}",
                quote(&parameters.kind),
                known.join(", ")
            ));
        };
        let mut warnings = Vec::new();
        let values = Values::read(kind, &parameters.parameters, compat, &mut warnings)?;
        let law = custom_law(kind, &values, compat)?;
        let min = parameters
            .min
            .unwrap_or(if compat { f64::MIN_POSITIVE } else { 0.0 });
        let max = parameters.max.unwrap_or(f64::MAX);
        if min > max {
            return Err(format!("min {min} is above max {max}, expected min <= max"));
        }
        let round = at_least("round", parameters.round, 0.0)?;
        let round = if !compat {
            rounded(round)
        } else if round >= 1.0 {
            Round::CutOff(round.floor())
        } else {
            Round::No
        };
        let distribution = Self {
            law,
            round,
            min: min.max(0.0),
            max,
            seed: 0,
        };
        distribution.finite()?;
        Ok((distribution, warnings))
    }

    /// A gamma law of this mean and shape: the sizes of filesets in files of older form.
    pub fn gamma(mean: f64, shape: f64) -> Result<Self, String> {
        let law = Law::Gamma {
            shape: above("shape", shape, 0.0)?,
            scale: at_least("mean", mean, 0.0)? / shape,
            shift: 0.0,
        };
        let distribution = Self {
            law,
            round: Round::No,
            min: 0.0,
            max: f64::MAX,
            seed: 0,
        };
        distribution.finite()?;
        Ok(distribution)
    }

    fn table(
        rows: &[[f64; 3]],
        mean: Option<f64>,
        min: f64,
        compat: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Law, String> {
        let written: f64 = rows.iter().map(|row| row[0]).sum();
        if rows.iter().any(|row| row[0] < 0.0) || written <= 0.0 {
            return Err("the table totals 0 per cent, expected 100".to_owned());
        }
        let lowest = rows.iter().map(|row| row[1]).fold(f64::INFINITY, f64::min);
        let mut rows = rows.to_vec();
        let mut total = written;
        if (written - 100.0).abs() > 1e-9 {
            if !compat {
                warnings.push(format!(
                    "the table totals {written} per cent, not 100; each row has its share of that"
                ));
            } else if written < 100.0 {
                warnings.push(format!(
                    "the table totals {written} per cent, not 100; the rest draws 0"
                ));
                rows.push([100.0 - written, 0.0, 0.0]);
                total = 100.0;
            } else {
                return Err(format!("the table totals {written} per cent, expected 100"));
            }
        }
        let own: f64 = rows
            .iter()
            .map(|row| row[0] * f64::midpoint(row[1], row[2]))
            .sum::<f64>()
            / total;
        let (factor, shift) = match mean.filter(|&mean| mean != 0.0) {
            None if !compat => (1.0, 0.0),
            wanted => {
                let wanted = wanted.unwrap_or(own);
                if own <= lowest {
                    (0.0, min)
                } else {
                    let factor = (wanted - min) / (own - lowest);
                    (factor, min - lowest * factor)
                }
            }
        };
        if rows.iter().any(|row| row[1] > row[2]) {
            warnings.push(
                "a row's min is above its max; they are taken the other way round".to_owned(),
            );
        }
        let mut from = 0.0;
        let mut cells = Vec::with_capacity(rows.len());
        for [percent, lower, upper] in rows {
            if percent > 0.0 {
                let share = percent / total;
                cells.push(Cell {
                    from,
                    share,
                    lower: lower * factor + shift,
                    upper: upper * factor + shift,
                });
                from += share;
            }
        }
        Ok(Law::Table(cells))
    }

    fn finite(&self) -> Result<(), String> {
        let fine = |values: &[f64]| values.iter().all(|value| value.is_finite());
        let all = match &self.law {
            Law::Uniform { lower, upper } => fine(&[*lower, *upper]),
            Law::Gamma {
                shape,
                scale,
                shift,
            } => fine(&[*shape, *scale, *shift]),
            Law::Normal { mean, sigma } | Law::LogNormal { mean, sigma } => fine(&[*mean, *sigma]),
            Law::Weibull { shape, scale } => fine(&[*shape, *scale]),
            Law::Triangular { lower, mode, upper } => fine(&[*lower, *mode, *upper]),
            Law::Table(cells) => cells.iter().all(|cell| fine(&[cell.lower, cell.upper])),
        };
        if all && fine(&[self.min, self.max]) {
            Ok(())
        } else {
            Err("a parameter is too large, expected finite numbers".to_owned())
        }
    }

    /// One draw: rounded, then clipped; never below 0.
    #[inline]
    pub fn sample(&self, random: &mut Random) -> f64 {
        let value = self.law.sample(random);
        let value = match self.round {
            Round::No => value,
            Round::Nearest(unit) => (value / unit).round() * unit,
            Round::CutOff(unit) => {
                let value = value.max(0.0).trunc();
                let above = value % unit;
                if above > unit - above {
                    value - above + unit
                } else {
                    value - above
                }
            }
        };
        // Not `clamp`: what is no number becomes `min`.
        value.max(self.min).min(self.max)
    }

    /// The mean of what is drawn, clipping included, rounding not. It is exact, except for parameters so extreme
    /// that its parts have no value: there it is that of some draws.
    #[must_use]
    pub fn mean(&self) -> f64 {
        const DRAWS: u32 = 4096;
        let exact = self.law.clipped_mean(self.min, self.max);
        if exact.is_finite() {
            return exact.clamp(self.min, self.max);
        }
        let mut random = Random::new(0, 0);
        (0..DRAWS)
            .map(|_| self.sample(&mut random) / f64::from(DRAWS))
            .sum::<f64>()
            .clamp(self.min, self.max)
    }

    /// `seed=`, 0 where it is left out.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }
}

fn rounded(unit: f64) -> Round {
    if unit > 0.0 {
        Round::Nearest(unit)
    } else {
        Round::No
    }
}

fn at_least(name: &str, value: f64, least: f64) -> Result<f64, String> {
    if value >= least {
        Ok(value)
    } else {
        Err(format!("{name} is {value}, expected at least {least}"))
    }
}

fn above(name: &str, value: f64, bound: f64) -> Result<f64, String> {
    if value > bound {
        Ok(value)
    } else {
        Err(format!("{name} is {value}, expected more than {bound}"))
    }
}

fn below_mean(min: f64, mean: f64, warnings: &mut Vec<String>) {
    if min > mean {
        warnings.push(format!(
            "min {min} is above the mean {mean}: values lie below min"
        ));
    }
}

/// The numbers of `parameters`, in the order of the type's own list.
struct Values {
    kind: &'static str,
    values: Vec<(&'static str, f64)>,
}

impl Values {
    fn read(
        kind: &CustomKind,
        text: &str,
        compat: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Self, String> {
        let mut values = kind.parameters.to_vec();
        let mut given = vec![false; values.len()];
        for pair in text
            .split(';')
            .map(str::trim)
            .filter(|pair| !pair.is_empty())
        {
            let (key, value) = pair.split_once(':').unwrap_or((pair, ""));
            let (key, value) = (key.trim(), value.trim());
            let Some(place) = values.iter().position(|(name, _)| *name == key) else {
                let known: Vec<&str> = kind.parameters.iter().map(|(name, _)| *name).collect();
                return Err(format!(
                    "found the parameter {} of {}, expected {}",
                    quote(key),
                    kind.name,
                    known.join(" or ")
                ));
            };
            if std::mem::replace(&mut given[place], true) {
                return Err(format!(
                    "the parameter {} of {} is given twice, expected once",
                    quote(key),
                    kind.name
                ));
            }
            values[place].1 = number(key, value, compat, warnings)?;
        }
        Ok(Self {
            kind: kind.name,
            values,
        })
    }

    fn get(&self, name: &str) -> f64 {
        self.values
            .iter()
            .find_map(|(key, value)| (*key == name).then_some(*value))
            .unwrap_or_default()
    }

    fn at_least(&self, name: &str, least: f64) -> Result<f64, String> {
        at_least(name, self.get(name), least).map_err(|message| format!("{}: {message}", self.kind))
    }

    fn above(&self, name: &str, bound: f64) -> Result<f64, String> {
        above(name, self.get(name), bound).map_err(|message| format!("{}: {message}", self.kind))
    }
}

/// A parameter's number: any that Rust reads, or one of the language's.
fn number(key: &str, text: &str, compat: bool, warnings: &mut Vec<String>) -> Result<f64, String> {
    if let Some(value) = text.parse::<f64>().ok().filter(|value| value.is_finite()) {
        return Ok(value);
    }
    let (sign, digits) = text
        .strip_prefix('-')
        .map_or((1.0, text), |rest| (-1.0, rest));
    let value = match lexer::number(digits) {
        Some(lexer::Number::Integer(value)) => sign * value as f64,
        Some(lexer::Number::Float(value)) => sign * value,
        _ => {
            return Err(format!(
                "the parameter {key} is {}, expected a number",
                quote(text)
            ));
        }
    };
    if compat {
        let end = digits
            .bytes()
            .position(|byte| !byte.is_ascii_digit() && byte != b'.')
            .unwrap_or(digits.len());
        return Ok(sign * digits[..end].parse::<f64>().unwrap_or_default());
    }
    warnings.push(format!(
        "the parameter {key} is {value}; filebench reads {} without its suffix",
        quote(text)
    ));
    Ok(value)
}

fn custom_law(kind: &CustomKind, values: &Values, compat: bool) -> Result<Law, String> {
    Ok(match kind.name {
        "cvar-uniform" => {
            let lower = values.get("lower");
            Law::Uniform {
                lower,
                upper: values.at_least("upper", lower)?,
            }
        }
        "cvar-normal" => Law::Normal {
            mean: values.get("mean"),
            sigma: values.at_least("sigma", 0.0)?,
        },
        "cvar-lognormal" => Law::LogNormal {
            mean: values.at_least("scale", 0.0)?,
            sigma: values.at_least("shape", 0.0)?,
        },
        "cvar-exponential" => Law::Gamma {
            shape: 1.0,
            scale: values.at_least("mean", 0.0)?,
            shift: 0.0,
        },
        "cvar-erlang" => {
            // An integer, and at least 1, as filebench takes it.
            let shape = values.at_least("shape", 0.0)?.trunc().max(1.0);
            let scale = if compat {
                values.at_least("rate", 0.0)? / shape
            } else {
                1.0 / values.above("rate", 0.0)?
            };
            Law::Gamma {
                shape,
                scale,
                shift: 0.0,
            }
        }
        "cvar-weibull" => Law::Weibull {
            shape: values.above("shape", 0.0)?,
            scale: values.at_least("scale", 0.0)?,
        },
        "cvar-triangular" => {
            let lower = values.get("lower");
            let mode = values.at_least("mode", lower)?;
            Law::Triangular {
                lower,
                mode,
                upper: values.at_least("upper", mode)?,
            }
        }
        _ => {
            let shape = values.above("gamma", 0.0)?;
            Law::Gamma {
                shape,
                scale: values.at_least("mean", 0.0)? / shape,
                shift: 0.0,
            }
        }
    })
}

impl Law {
    #[inline]
    fn sample(&self, random: &mut Random) -> f64 {
        match *self {
            Self::Uniform { lower, upper } => lower + (upper - lower) * random.next_f64(),
            Self::Gamma {
                shape,
                scale,
                shift,
            } => shift + scale * gamma(shape, random),
            Self::Normal { mean, sigma } => mean + sigma * normal(random),
            Self::LogNormal { mean, sigma } => (mean + sigma * normal(random)).exp(),
            Self::Weibull { shape, scale } => scale * exponential(random).powf(1.0 / shape),
            Self::Triangular { lower, mode, upper } => {
                triangular(lower, mode, upper, random.next_f64())
            }
            Self::Table(ref cells) => {
                let u = random.next_f64();
                let place = cells
                    .partition_point(|cell| cell.from <= u)
                    .saturating_sub(1);
                let cell = &cells[place];
                let within = ((u - cell.from) / cell.share).clamp(0.0, 1.0);
                cell.lower + (cell.upper - cell.lower) * within
            }
        }
    }

    /// The mean of the law, all below `low` taken for `low` and all above `high` for `high`.
    fn clipped_mean(&self, low: f64, high: f64) -> f64 {
        match *self {
            Self::Uniform { lower, upper } => uniform_mean(lower, upper, low, high),
            Self::Gamma {
                shape,
                scale,
                shift,
            } => {
                let of = |low: f64, high: f64| gamma_mean(shape, scale.abs(), low, high);
                if scale == 0.0 {
                    shift.clamp(low, high)
                } else if scale > 0.0 {
                    shift + of(low - shift, high - shift)
                } else {
                    shift - of(shift - high, shift - low)
                }
            }
            Self::Normal { mean, sigma } => {
                if sigma == 0.0 {
                    return mean.clamp(low, high);
                }
                let below = |t: f64| {
                    let z = (t - mean) / sigma;
                    let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
                    (normal_cdf(z), mean * normal_cdf(z) - sigma * density)
                };
                clipped(low, high, below)
            }
            Self::LogNormal { mean, sigma } => {
                if sigma == 0.0 {
                    return mean.exp().clamp(low, high);
                }
                let whole = (mean + 0.5 * sigma * sigma).exp();
                clipped(low, high, |t| {
                    if t <= 0.0 {
                        return (0.0, 0.0);
                    }
                    let z = (t.ln() - mean) / sigma;
                    (normal_cdf(z), whole * normal_cdf(z - sigma))
                })
            }
            Self::Weibull { shape, scale } => {
                if scale == 0.0 {
                    return 0.0f64.clamp(low, high);
                }
                let order = 1.0 + 1.0 / shape;
                let whole = scale * ln_gamma(order).exp();
                clipped(low, high, |t| {
                    if t <= 0.0 {
                        return (0.0, 0.0);
                    }
                    let power = (t / scale).powf(shape);
                    (-(-power).exp_m1(), whole * gamma_p(order, power))
                })
            }
            Self::Triangular { lower, mode, upper } => {
                triangular_mean(lower, mode, upper, low, high)
            }
            Self::Table(ref cells) => cells
                .iter()
                .map(|cell| cell.share * uniform_mean(cell.lower, cell.upper, low, high))
                .sum(),
        }
    }
}

/// The clipped mean of a law of which `below` gives the share below a point, and that share's part of the mean.
fn clipped(low: f64, high: f64, below: impl Fn(f64) -> (f64, f64)) -> f64 {
    let (share_low, part_low) = below(low);
    let (share_high, part_high) = below(high);
    let at_high = if share_high < 1.0 {
        high * (1.0 - share_high)
    } else {
        0.0
    };
    low * share_low + at_high + part_high - part_low
}

fn gamma_mean(shape: f64, scale: f64, low: f64, high: f64) -> f64 {
    clipped(low, high, |t| {
        (
            gamma_p(shape, t / scale),
            shape * scale * gamma_p(shape + 1.0, t / scale),
        )
    })
}

fn uniform_mean(lower: f64, upper: f64, low: f64, high: f64) -> f64 {
    let (lower, upper) = (lower.min(upper), lower.max(upper));
    let width = upper - lower;
    if width <= 0.0 {
        return lower.clamp(low, high);
    }
    clipped(low, high, |t| {
        let t = t.clamp(lower, upper);
        let share = (t - lower) / width;
        (share, share * f64::midpoint(lower, t))
    })
}

fn triangular(lower: f64, mode: f64, upper: f64, u: f64) -> f64 {
    let width = upper - lower;
    if width == 0.0 {
        return lower;
    }
    if u * width < mode - lower {
        lower + (u * width * (mode - lower)).sqrt()
    } else {
        upper - ((1.0 - u) * width * (upper - mode)).sqrt()
    }
}

fn triangular_mean(lower: f64, mode: f64, upper: f64, low: f64, high: f64) -> f64 {
    let width = upper - lower;
    if width == 0.0 {
        return lower.clamp(low, high);
    }
    let whole = (lower + mode + upper) / 3.0;
    clipped(low, high, |t| {
        if t <= lower {
            (0.0, 0.0)
        } else if t >= upper {
            (1.0, whole)
        } else if t < mode {
            // Of the rising side's triangle, whose centre is two thirds along it.
            let share = (t - lower).powi(2) / (width * (mode - lower));
            (share, share * (lower + 2.0 * (t - lower) / 3.0))
        } else {
            let rest = (upper - t).powi(2) / (width * (upper - mode));
            (1.0 - rest, whole - rest * (upper - 2.0 * (upper - t) / 3.0))
        }
    })
}

/// The exponential law of mean 1.
#[inline]
fn exponential(random: &mut Random) -> f64 {
    -(-random.next_f64()).ln_1p()
}

/// The standard normal law: Marsaglia and Bray 1964, the polar method, of whose two values the second is not kept.
#[inline]
fn normal(random: &mut Random) -> f64 {
    loop {
        let x = 2.0 * random.next_f64() - 1.0;
        let y = 2.0 * random.next_f64() - 1.0;
        let square = x * x + y * y;
        if square < 1.0 && square > 0.0 {
            return x * (-2.0 * square.ln() / square).sqrt();
        }
    }
}

/// A gamma law of this shape and scale 1: Marsaglia and Tsang 2000, "A simple method for generating gamma
/// variables"; a shape below 1 from the next higher one, as they say there.
#[inline]
fn gamma(shape: f64, random: &mut Random) -> f64 {
    if shape < 1.0 {
        let power = (1.0 - random.next_f64()).powf(1.0 / shape);
        return gamma(shape + 1.0, random) * power;
    }
    let height = shape - 1.0 / 3.0;
    let slope = 1.0 / (9.0 * height).sqrt();
    loop {
        let x = normal(random);
        let root = 1.0 + slope * x;
        if root <= 0.0 {
            continue;
        }
        let cube = root * root * root;
        let u = 1.0 - random.next_f64();
        let square = x * x;
        if u < 1.0 - 0.0331 * square * square
            || u.ln() < 0.5 * square + height * (1.0 - cube + cube.ln())
        {
            return height * cube;
        }
    }
}
