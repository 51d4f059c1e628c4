//! The tables and indexes in SQL.

use std::fmt::Write as _;

use dyno_sql::{Connection, Dialect, Result};

use crate::population::{Holds, Table};

/// Creates the nine tables, which must not be there.
pub fn create_tables<C: Connection>(connection: &mut C) -> Result<()> {
    for table in Table::ALL {
        connection.run(&table_in(C::DIALECT, table))?;
    }
    Ok(())
}

/// Creates what the transactions need besides the tables, once they are filled, and has the store look
/// over what it holds.
pub fn create_indexes<C: Connection>(connection: &mut C) -> Result<()> {
    if C::DIALECT == Dialect::Postgresql {
        // Filling a table first and sorting its keys then is faster. The others store the rows of a table
        // in the order of its key and need it from the beginning.
        for table in Table::ALL {
            if let Some(key) = primary_key(table) {
                connection.run(&format!("ALTER TABLE {} ADD {key}", table.name()))?;
            }
        }
    }
    // The customer's number tells equal names apart, and the index alone answers which customer it is.
    connection
        .run("CREATE INDEX customer_name ON customer(c_w_id, c_d_id, c_last, c_first, c_id)")?;
    connection.run("CREATE INDEX orders_customer ON orders(o_w_id, o_d_id, o_c_id, o_id)")?;
    for table in Table::ALL {
        analyse(connection, table.name())?;
    }
    Ok(())
}

fn analyse<C: Connection>(connection: &mut C, table: &str) -> Result<()> {
    match C::DIALECT {
        Dialect::Sqlite => connection.run(&format!("ANALYZE {table}")),
        // Vacuumed too, or the store would do so by itself during the first run.
        Dialect::Postgresql => connection.run(&format!("VACUUM ANALYZE {table}")),
        Dialect::Mysql => {
            // It answers with rows, which say what they say also where it did not succeed.
            let mut statement = connection.prepare(&format!("ANALYZE TABLE {table}"))?;
            connection.query(&mut statement, &[], |_| Ok(()))?;
            Ok(())
        }
    }
}

fn primary_key(table: Table) -> Option<String> {
    let columns = table.columns()[..table.key_columns()].iter();
    let names: Vec<&str> = columns.map(|(name, _)| *name).collect();
    (!names.is_empty()).then(|| format!("PRIMARY KEY({})", names.join(", ")))
}

fn table_in(dialect: Dialect, table: Table) -> String {
    let mut parts: Vec<String> = table
        .columns()
        .iter()
        .map(|(name, holds)| format!("{name} {}", type_of(dialect, *holds)))
        .collect();
    if dialect == Dialect::Mysql && table.key_columns() == 0 {
        // The specification's history has no key. Group replication and Galera want one, and without any
        // InnoDB adds a hidden one: a number of our own costs as much (1.4.7).
        parts.push("h_id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY".to_owned());
    }
    if dialect != Dialect::Postgresql {
        parts.extend(primary_key(table));
    }
    let mut text = format!("CREATE TABLE {}({})", table.name(), parts.join(", "));
    match dialect {
        // Letters of one byte, compared as bytes.
        Dialect::Mysql => {
            text.push_str(" ENGINE=InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin");
        }
        // Rows are stored with their key, as in the other stores, rather than in a table beside an index.
        Dialect::Sqlite if table.key_columns() > 1 => text.push_str(" WITHOUT ROWID"),
        Dialect::Sqlite | Dialect::Postgresql => {}
    }
    text
}

fn type_of(dialect: Dialect, holds: Holds) -> String {
    let mut text = match holds {
        Holds::Number | Holds::NumberOrNull => "INTEGER".to_owned(),
        Holds::Large | Holds::LargeOrNull => "BIGINT".to_owned(),
        Holds::Fixed(length) => format!("CHAR({length})"),
        Holds::Text(length) => format!("VARCHAR({length})"),
    };
    if dialect == Dialect::Postgresql && matches!(holds, Holds::Fixed(_) | Holds::Text(_)) {
        // Compared as bytes, whatever the database's language is.
        text.push_str(" COLLATE \"C\"");
    }
    let empty = matches!(holds, Holds::NumberOrNull | Holds::LargeOrNull);
    // Writing to a string cannot fail.
    let _ = write!(text, "{}", if empty { " NULL" } else { " NOT NULL" });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_written_in_each_stores_dialect() {
        assert_eq!(
            table_in(Dialect::Sqlite, Table::NewOrder),
            "CREATE TABLE new_order(no_w_id INTEGER NOT NULL, no_d_id INTEGER NOT NULL, \
             no_o_id INTEGER NOT NULL, PRIMARY KEY(no_w_id, no_d_id, no_o_id)) WITHOUT ROWID"
        );
        let history = table_in(Dialect::Mysql, Table::History);
        assert!(
            history.contains("h_data VARCHAR(24) NOT NULL, h_id BIGINT NOT NULL AUTO_INCREMENT")
        );
        assert!(history.ends_with("ENGINE=InnoDB DEFAULT CHARACTER SET latin1 COLLATE latin1_bin"));
        let customer = table_in(Dialect::Postgresql, Table::Customer);
        assert!(customer.contains("c_last VARCHAR(16) COLLATE \"C\" NOT NULL"));
        assert!(!customer.contains("PRIMARY KEY"));
        let line = table_in(Dialect::Postgresql, Table::OrderLine);
        assert!(line.contains("ol_delivery_d BIGINT NULL"));
    }
}
