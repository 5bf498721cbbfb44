//! URLs of databases, and names in SQL.

/// The URL with another database in it: `postgres://user@host:port/THIS?options`.
pub(super) fn with_database(url: &str, database: &str) -> String {
    let (address, options) =
        url.split_once('?').map_or((url, None), |(address, options)| (address, Some(options)));
    let host_start = address.find("://").map_or(0, |scheme_end| scheme_end + 3);
    let path_start =
        address.get(host_start..).and_then(|rest| rest.find('/')).map(|slash| host_start + slash);
    let server = path_start.and_then(|slash| address.get(..slash)).unwrap_or(address);

    let options = options.map(|options| format!("?{options}")).unwrap_or_default();
    format!("{server}/{database}{options}")
}

/// The name as an SQL identifier.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_database_of_a_url_is_replaced() {
        let cases = [
            ("postgres://me:secret@db:5432/postgres", "postgres://me:secret@db:5432/mine"),
            ("postgresql://db/postgres?sslmode=disable", "postgresql://db/mine?sslmode=disable"),
            ("postgres://me@db", "postgres://me@db/mine"),
            ("postgres://me@db?host=/run/postgresql", "postgres://me@db/mine?host=/run/postgresql"),
        ];
        for (url, expected) in cases {
            assert_eq!(with_database(url, "mine"), expected);
        }
    }

    #[test]
    fn names_are_quoted() {
        assert_eq!(quoted("plain"), "\"plain\"");
        assert_eq!(quoted("odd\"name"), "\"odd\"\"name\"");
    }
}
