//! Some thousands of wrong inputs; the million is `cargo run --release -p dyno-wml --example fuzz -- 1000000`.

mod fuzzing;

#[test]
fn no_wrong_input_makes_the_parser_panic_hang_or_point_beyond_the_text() {
    let outcome = fuzzing::run(
        3_000,
        20_261_124,
        &[fuzzing::FORMS.as_bytes().to_vec()],
        &|_| {},
    );
    assert_eq!(outcome.inputs, 3_000);
    assert!(
        outcome.accepted > 100 && outcome.accepted < 2_900,
        "{outcome:?}"
    );
}

#[test]
fn the_file_of_all_forms_is_accepted() {
    let script = dyno_wml::parse(fuzzing::FORMS, "forms.f");
    assert!(script.is_ok(), "{script:?}");
}
