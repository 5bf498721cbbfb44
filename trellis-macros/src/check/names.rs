//! What names may look like. Each refusal says what is wrong, then what is right.
use heck::ToSnakeCase;

use crate::kind::Facade;

/// A logical name: a dotted snake_case path that is also a path of fields on the facade.
pub(super) fn logical(name: &str, facade: &Facade) -> Result<(), String> {
    let right = format!("write snake_case words joined by dots, as in `{}`", facade.example);
    dotted(name, &right)?;
    let Some(keyword) = name.split('.').find(|word| is_keyword(word)) else { return Ok(()) };
    let other: Vec<String> = name
        .split('.')
        .map(|word| if is_keyword(word) { format!("{word}_") } else { word.to_owned() })
        .collect();
    Err(format!(
        "`{keyword}` is a Rust keyword, so `ctx.{}.{name}` could not be written: \
         choose another word, or `{}`",
        facade.noun,
        other.join(".")
    ))
}

/// The name of a consumer group: one word, because it is one token of a subject.
pub(super) fn group(name: &str) -> Result<(), String> {
    if is_word(name) {
        return Ok(());
    }
    let right = "the name of a consumer group is one snake_case word, as in `stock`";
    let hint =
        suggest(&name.replace('.', "_")).map(|hint| format!("; did you mean `{hint}`?")).unwrap_or_default();
    Err(format!("{right}{hint}"))
}

/// An identity: `acme.orders@v1`.
pub(super) fn identity(id: &str) -> Result<(), String> {
    let right = "an identity is a dotted lower-case name and a version, as in `acme.orders@v1`";
    let Some((name, version)) = id.split_once('@') else {
        let hint = suggest(id).map(|name| format!("; did you mean `{name}@v1`?")).unwrap_or_default();
        return Err(format!("`{id}` has no version: {right}{hint}"));
    };
    dotted(name, right)?;
    let digits = version.strip_prefix('v').filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    match digits {
        None | Some("") => Err(format!("`{version}` is no version: {right}")),
        Some(digits) if digits.starts_with('0') => {
            Err(format!("`{version}` is no version: count from `v1`, without leading zeros"))
        }
        Some(digits) if digits.parse::<u32>().is_err() => Err(format!("`{version}` is no version: {right}")),
        Some(_) => Ok(()),
    }
}

fn dotted(name: &str, right: &str) -> Result<(), String> {
    let Some(wrong) = name.split('.').find(|word| !is_word(word)) else { return Ok(()) };
    let hint = suggest(name).map(|hint| format!("; did you mean `{hint}`?")).unwrap_or_default();
    Err(match wrong {
        "" if name.is_empty() => format!("the name is empty: {right}"),
        "" => format!("`{name}` has an empty word: {right}{hint}"),
        word => format!("`{word}` is no snake_case word: {right}{hint}"),
    })
}

/// What somebody who wrote `name` may have meant.
pub(super) fn suggest(name: &str) -> Option<String> {
    let words: Vec<String> =
        name.split('.').map(ToSnakeCase::to_snake_case).filter(|word| !word.is_empty()).collect();
    let fits = !words.is_empty() && words.iter().all(|word| is_word(word));
    fits.then(|| words.join("."))
}

fn is_word(word: &str) -> bool {
    word.starts_with(|first: char| first.is_ascii_lowercase())
        && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Strict and reserved keywords of every edition up to 2024: none of them can be a field, and a
/// contract must not depend on the edition of who reads it.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual",
    "where", "while", "yield",
];

fn is_keyword(word: &str) -> bool {
    KEYWORDS.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::{KEYWORDS, group, identity, is_keyword, suggest};
    use crate::kind::Facade;

    fn logical(name: &str) -> Result<(), String> {
        super::logical(name, &Facade::EVENT)
    }

    #[test]
    fn paths_of_words_are_logical_names() {
        for name in ["orders", "orders.created", "a.b_c.d1", "orders.union", "orders.type_", "orders.raw"] {
            assert_eq!(logical(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn everything_else_is_no_logical_name() {
        for name in [
            "", ".", "orders.", ".created", "a..b", "Orders", "a-b", "a b", "1a", "_a", "größe", "a.*",
            "a.>", "$js",
        ] {
            assert!(logical(name).is_err(), "{name}");
        }
    }

    #[test]
    fn every_keyword_is_refused_and_known_to_syn() {
        for keyword in KEYWORDS {
            assert!(logical(&format!("orders.{keyword}")).unwrap_err().contains("keyword"), "{keyword}");
        }
        assert!(KEYWORDS.is_sorted());
        // syn's own list knows no later keyword than ours.
        assert!(!is_keyword("union") && syn::parse_str::<syn::Ident>("union").is_ok());
    }

    #[test]
    fn a_refusal_suggests_what_was_meant() {
        assert_eq!(suggest("Orders.CreatedNow").as_deref(), Some("orders.created_now"));
        assert_eq!(suggest("orders..created-now").as_deref(), Some("orders.created_now"));
        assert_eq!(suggest("..."), None);
        assert!(logical("orders.move").unwrap_err().ends_with("`orders.move_`"));
    }

    #[test]
    fn group_names_are_one_word() {
        assert_eq!(group("stock_keeping2"), Ok(()));
        assert!(group("stock.keeping").unwrap_err().ends_with("did you mean `stock_keeping`?"));
        assert!(group("").is_err() && group("Stock").is_err());
    }

    #[test]
    fn identities_have_a_name_and_a_version() {
        for id in ["orders@v1", "acme.orders@v12", "acme.move@v1"] {
            assert_eq!(identity(id), Ok(()), "{id}");
        }
        for id in
            ["", "orders", "orders@", "orders@1", "orders@v", "orders@v0", "orders@v01", "@v1", "Orders@v1"]
        {
            assert!(identity(id).is_err(), "{id}");
        }
        for id in
            ["orders@v1.2", "orders@v-1", "a@b@v1", "acme..orders@v1", "orders@v99999999999", "orders@v+1"]
        {
            assert!(identity(id).is_err(), "{id}");
        }
        assert!(identity("Acme.Orders").unwrap_err().ends_with("did you mean `acme.orders@v1`?"));
    }
}
