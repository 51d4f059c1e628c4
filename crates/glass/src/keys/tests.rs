use std::cmp::Ordering;

use proptest::collection::vec;
use proptest::prelude::*;

use super::{Field, Keys, Shape, Typed, Value, Words};

/// A value that owns its text; ordered as [`Value`] is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owned {
    Int(i32),
    Long(i64),
    Text(Vec<u8>),
}

impl Owned {
    fn value(&self) -> Value<'_> {
        match self {
            Self::Int(value) => Value::Int(*value),
            Self::Long(value) => Value::Long(*value),
            Self::Text(value) => Value::Text(value),
        }
    }
}

fn value(field: Field) -> BoxedStrategy<Owned> {
    // Few different ones, so that keys agree in their first fields and differ in later ones.
    match field {
        Field::Int => prop_oneof![-2..3, any::<i32>()]
            .prop_map(Owned::Int)
            .boxed(),
        Field::Long => prop_oneof![-2..3_i64, any::<i64>()]
            .prop_map(Owned::Long)
            .boxed(),
        Field::Text(length) => prop_oneof![
            vec(97_u8..99, 0..=usize::from(length).min(3)),
            vec(1_u8..=255, 0..=usize::from(length)),
        ]
        .prop_map(Owned::Text)
        .boxed(),
    }
}

fn shape() -> impl Strategy<Value = Vec<Field>> {
    vec(
        prop_oneof![
            Just(Field::Int),
            Just(Field::Long),
            (1..20_u16).prop_map(Field::Text)
        ],
        1..5,
    )
}

fn keys() -> impl Strategy<Value = (Shape, Vec<Owned>, Vec<Owned>)> {
    shape().prop_flat_map(|fields| {
        let one: Vec<_> = fields.iter().map(|field| value(*field)).collect();
        let other: Vec<_> = fields
            .iter()
            .zip(&one)
            .map(|(field, _)| value(*field))
            .collect();
        (Just(Shape::new(&fields)), one, other, any::<bool>()).prop_map(
            |(shape, one, mut other, same_beginning)| {
                if same_beginning {
                    let shared = one.len() - 1;
                    other[..shared].clone_from_slice(&one[..shared]);
                }
                (shape, one, other)
            },
        )
    })
}

fn encode(shape: &Shape, values: &[Owned]) -> Vec<u8> {
    let mut bytes = vec![0xAA; shape.length()];
    let values: Vec<_> = values.iter().map(Owned::value).collect();
    shape.encode(&values, &mut bytes).unwrap();
    bytes
}

proptest! {
    #[test]
    fn both_comparisons_agree_with_that_of_the_values((shape, one, other) in keys()) {
        let (a, b) = (encode(&shape, &one), encode(&shape, &other));
        let expected = one.cmp(&other);
        prop_assert_eq!(Typed::compare(&shape, &a, &b), expected);
        prop_assert_eq!(Words::compare(&shape, &a, &b), expected);
    }

    #[test]
    fn what_was_encoded_is_decoded((shape, one, _) in keys()) {
        let key = encode(&shape, &one);
        let values: Vec<_> = one.iter().map(Owned::value).collect();
        prop_assert_eq!(shape.decode(&key).collect::<Vec<_>>(), values);
    }

    #[test]
    fn a_prefix_filled_up_is_below_and_above_what_begins_with_it((shape, one, _) in keys()) {
        let key = encode(&shape, &one);
        let kept = shape.fields()[0].length();
        for (fill, expected) in [(0, Ordering::Less), (255, Ordering::Greater)] {
            let mut bound = key.clone();
            bound[kept..].fill(fill);
            for order in [Typed::compare(&shape, &bound, &key), Words::compare(&shape, &bound, &key)] {
                prop_assert!(order == expected || order.is_eq());
            }
        }
    }
}

#[test]
fn words_of_all_lengths_see_their_last_byte() {
    for length in 1..40 {
        let shape = Shape::new(&[Field::Text(length)]);
        let a = vec![1; usize::from(length)];
        for place in 0..a.len() {
            let mut b = a.clone();
            b[place] = 2;
            assert_eq!(Words::compare(&shape, &a, &b), Ordering::Less);
            assert_eq!(Words::compare(&shape, &b, &a), Ordering::Greater);
            assert_eq!(Typed::compare(&shape, &a, &b), Ordering::Less);
        }
        assert_eq!(Words::compare(&shape, &a, &a), Ordering::Equal);
    }
}

#[test]
fn what_is_no_key_of_the_shape_is_refused() {
    let shape = Shape::new(&[Field::Int, Field::Text(3)]);
    let mut bytes = [0; 7];
    let mut refused = |values: &[Value<'_>]| shape.encode(values, &mut bytes).is_err();
    assert!(!refused(&[Value::Int(1), Value::Text(b"abc")]));
    assert!(refused(&[Value::Int(1)]));
    assert!(refused(&[Value::Long(1), Value::Text(b"abc")]));
    assert!(refused(&[Value::Int(1), Value::Text(b"abcd")]));
    assert!(refused(&[Value::Int(1), Value::Text(b"a\0c")]));
    assert!(
        shape
            .encode(&[Value::Int(1), Value::Text(b"a")], &mut [0; 8])
            .is_err()
    );
}
