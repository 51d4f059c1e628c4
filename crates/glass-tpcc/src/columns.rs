//! What columns hold, as fields of structs.

use arrayvec::ArrayString;
use dyno_sql::{Error, ErrorKind, Result, Value};

/// A field that is a column.
pub trait Column: Default {
    /// From a row's value.
    fn take(value: Value<'_>) -> Result<Self>;

    /// As a row's value.
    fn show(&self) -> Value<'_>;
}

#[cold]
fn wrong(value: Value<'_>) -> Error {
    Error::new(
        ErrorKind::WrongValue,
        format!("{value:?} does not fit its column"),
    )
}

impl Column for i32 {
    fn take(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Int(number) => Self::try_from(number).map_err(|_| wrong(value)),
            _ => Err(wrong(value)),
        }
    }

    fn show(&self) -> Value<'_> {
        Value::Int((*self).into())
    }
}

impl Column for i64 {
    fn take(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Int(number) => Ok(number),
            _ => Err(wrong(value)),
        }
    }

    fn show(&self) -> Value<'_> {
        Value::Int(*self)
    }
}

/// A number that may be missing, in eight bytes: the lowest of all says that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Optional(i64);

impl Optional {
    const NONE: Self = Self(i64::MIN);

    /// What it is, if it is anything.
    pub const fn get(self) -> Option<i64> {
        if self.0 == Self::NONE.0 {
            None
        } else {
            Some(self.0)
        }
    }

    /// Of a number that is there.
    pub const fn some(number: i64) -> Self {
        Self(number)
    }
}

impl Default for Optional {
    fn default() -> Self {
        Self::NONE
    }
}

impl Column for Optional {
    fn take(value: Value<'_>) -> Result<Self> {
        match value {
            Value::Null => Ok(Self::NONE),
            _ => i64::take(value).map(Self),
        }
    }

    fn show(&self) -> Value<'_> {
        self.get().map_or(Value::Null, Value::Int)
    }
}

/// Text of at most `N` bytes, in its place. What went in as text is not looked at again when it is read.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Text<const N: usize>(ArrayString<N>);

impl<const N: usize> Text<N> {
    /// Of that; an error where it is too long.
    #[inline]
    pub fn of(text: &str) -> Result<Self> {
        ArrayString::from(text)
            .map(Self)
            .map_err(|_| wrong(Value::Text(text)))
    }

    /// What it holds.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Holds that; an error where it is too long.
    pub fn set(&mut self, text: &str) -> Result<()> {
        self.0.clear();
        self.0
            .try_push_str(text)
            .map_err(|_| wrong(Value::Text(text)))
    }
}

impl<const N: usize> Column for Text<N> {
    fn take(value: Value<'_>) -> Result<Self> {
        let Value::Text(text) = value else {
            return Err(wrong(value));
        };
        Self::of(text)
    }

    fn show(&self) -> Value<'_> {
        Value::Text(self.as_str())
    }
}

/// Text of `N` bytes exactly.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Fixed<const N: usize>(ArrayString<N>);

impl<const N: usize> Default for Fixed<N> {
    fn default() -> Self {
        Self(ArrayString::zero_filled())
    }
}

impl<const N: usize> Fixed<N> {
    /// Of that; an error where it is of another length.
    #[inline]
    pub fn of(text: &str) -> Result<Self> {
        match ArrayString::from(text) {
            Ok(own) if own.is_full() => Ok(Self(own)),
            _ => Err(wrong(Value::Text(text))),
        }
    }

    /// What it holds.
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const N: usize> Column for Fixed<N> {
    fn take(value: Value<'_>) -> Result<Self> {
        let Value::Text(text) = value else {
            return Err(wrong(value));
        };
        Self::of(text)
    }

    fn show(&self) -> Value<'_> {
        Value::Text(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again<C: Column>(value: Value<'_>) -> bool {
        C::take(value).is_ok_and(|column| column.show() == value)
    }

    #[test]
    fn columns_give_back_what_they_took() {
        assert!(again::<i32>(Value::Int(-7)) && again::<i64>(Value::Int(i64::MAX)));
        assert!(again::<Optional>(Value::Null) && again::<Optional>(Value::Int(0)));
        assert!(again::<Text<4>>(Value::Text("")) && again::<Text<4>>(Value::Text("four")));
        assert!(again::<Fixed<4>>(Value::Text("four")));
    }

    #[test]
    fn columns_refuse_what_does_not_fit() {
        assert!(!again::<i32>(Value::Int(1 << 40)) && !again::<i32>(Value::Null));
        assert!(!again::<i64>(Value::Text("1")) && !again::<Optional>(Value::Text("1")));
        assert!(!again::<Text<4>>(Value::Text("fives")) && !again::<Text<4>>(Value::Int(1)));
        assert!(!again::<Fixed<4>>(Value::Text("six")) && !again::<Fixed<4>>(Value::Null));
    }
}
