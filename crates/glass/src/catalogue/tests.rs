//! Names, and definitions as records.
#![expect(clippy::cast_possible_truncation, reason = "small numbers")]

use proptest::prelude::*;

use super::*;
use crate::TxId;
use crate::keys::Field;
use crate::latch::RwLatch;

fn shape() -> impl Strategy<Value = Shape> {
    let field = prop_oneof![
        Just(Field::Int),
        Just(Field::Long),
        (1..200u16).prop_map(Field::Text)
    ];
    prop::collection::vec(field, 1..8).prop_map(|fields| Shape::new(&fields))
}

fn definition() -> impl Strategy<Value = Definition> {
    prop_oneof![
        (any::<u16>(), any::<u64>(), ".{1,40}").prop_map(|(id, page, name)| Definition::Table {
            id: TableId(id),
            first: PageId(page),
            name,
        }),
        (any::<u16>(), any::<u64>(), any::<u16>(), shape(), ".{1,40}").prop_map(
            |(id, page, table, shape, name)| Definition::Index {
                id: IndexId(id),
                root: PageId(page),
                table: TableId(table),
                shape,
                name,
            }
        ),
    ]
}

proptest! {
    #[test]
    fn a_definition_is_read_as_it_was_written(definition in definition()) {
        let record = definition.encode().expect("short enough");
        prop_assert_eq!(Definition::decode(&record).expect("whole"), definition);
    }

    #[test]
    fn a_definition_cut_short_is_no_other_but_for_its_name(definition in definition(), cut in any::<prop::sample::Index>()) {
        let record = definition.encode().expect("short enough");
        let (Definition::Table { name, .. } | Definition::Index { name, .. }) = &definition;
        let cut = cut.index(record.len() - name.len() + 1);
        prop_assert!(Definition::decode(&record[..cut]).is_err());
    }
}

#[test]
fn as_many_tables_as_there_may_be_are_found_by_their_names_and_no_more_are_taken() {
    let directory = Directory::<RwLatch>::default();
    for number in 1..MOST as u16 {
        let name = format!("table {number}");
        assert!(directory.table_handle(&name).is_err());
        assert_eq!(
            directory.next_table(&name).expect("it is new"),
            TableId(number)
        );
        let heap = Heap::new(TableId(number), PageId(1), TxId(1));
        directory
            .add_table(Some(&name), TableId(number), heap)
            .expect("it is new");
        assert!(directory.next_table(&name).is_err());
    }
    assert!(directory.next_table("another").is_err());
    for number in 1..MOST as u16 {
        let handle = directory
            .table_handle(&format!("table {number}"))
            .expect("it is there");
        assert_eq!(
            ByName::table(&directory, &handle).expect("it is there").id,
            TableId(number)
        );
        assert_eq!(
            Resolved::table(&directory, &handle)
                .expect("it is there")
                .id,
            TableId(number)
        );
    }
    assert_eq!(directory.tables().count(), MOST - 1);
}

#[test]
fn a_name_that_is_empty_or_too_long_is_refused() {
    for name in [String::new(), "x".repeat(256)] {
        let definition = Definition::Table {
            id: TableId(1),
            first: PageId(1),
            name,
        };
        assert!(matches!(definition.encode(), Err(Error::Refused(_))));
    }
}
