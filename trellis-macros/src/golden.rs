//! Whole expansions, compared with the files under `tests/output`.
//!
//! `BLESS=1 cargo test -p trellis-macros` writes them; review the difference as code.
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

fn directory(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// `#[trellis::contract(args)] item` → expansion.
fn expansion(source: &str) -> TokenStream {
    let mut tokens = source.parse::<TokenStream>().unwrap().into_iter();
    let (Some(_hash), Some(TokenTree::Group(attribute))) = (tokens.next(), tokens.next()) else {
        panic!("an input begins with `#[trellis::contract(..)]`");
    };
    let args = attribute.stream().into_iter().find_map(|tree| match tree {
        TokenTree::Group(args) => Some(args.stream()),
        _ => None,
    });
    crate::expand_contract(args.unwrap_or_default(), tokens.collect())
}

fn pretty(tokens: TokenStream) -> String {
    match syn::parse2(tokens.clone()) {
        Ok(file) => prettyplease::unparse(&file),
        // What does not parse is laid out roughly.
        Err(_) => tokens.to_string().replace(" } ", " }\n").replace(" ; ", " ;\n") + "\n",
    }
}

#[test]
fn expansions_are_as_committed() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut inputs: Vec<PathBuf> =
        fs::read_dir(directory("input")).unwrap().map(|entry| entry.unwrap().path()).collect();
    inputs.sort();
    assert!(!inputs.is_empty());
    for input in inputs {
        let output = directory("output").join(input.file_name().unwrap());
        let actual = pretty(expansion(&fs::read_to_string(&input).unwrap()));
        if bless {
            fs::write(&output, &actual).unwrap();
        }
        let expected = fs::read_to_string(&output).unwrap_or_default();
        assert_eq!(actual, expected, "{} differs: BLESS=1 writes it", output.display());
    }
}

#[test]
fn with_a_path_of_the_crate_nothing_is_looked_for_elsewhere() {
    for name in ["event.rs", "job.rs", "group.rs", "empty.rs"] {
        let source = fs::read_to_string(directory("input").join(name)).unwrap();
        let renamed = source.replacen("@v1\"", "@v1\", crate = ::renamed", 1);
        let (usual, renamed) = (pretty(expansion(&source)), pretty(expansion(&renamed)));
        assert!(!renamed.contains("trellis"), "{name}:\n{renamed}");
        assert_eq!(usual.replace("::trellis::", "::renamed::"), renamed, "{name}");
    }
}

#[test]
fn every_path_of_the_expansion_is_absolute() {
    for input in ["input/empty.rs", "input/job.rs"] {
        let source = fs::read_to_string(directory(input)).unwrap();
        let expanded = pretty(expansion(&source));
        for name in ["core::", "std::"] {
            let relative =
                expanded.matches(name).count() - expanded.matches(&format!("__private::{name}")).count();
            assert_eq!(relative, 0, "`{name}` in\n{expanded}");
        }
    }
}

#[test]
fn no_tokens_make_it_panic() {
    let items = [
        "",
        ";",
        "mod",
        "mod x",
        "mod x;",
        "mod x { # }",
        "mod x { #[event] }",
        "mod x { #[event(] }",
        "mod x { pub }",
        "mod x { #[event(\"a\")] pub struct }",
        "mod x { #[event(\"\")] enum E { } }",
        "mod x { #[group(\"g\")] struct G(A, B::); }",
        "mod x { #[event(\"a.b\")] struct A; #[event(\"a.b.c\")] struct B; #[event(\"a\")] struct C; }",
        "mod x { #[event(\"a\", params(a, ,b), order_by, payload = )] pub struct A { x: , } }",
        "mod x { #[cfg_attr] #[cfg_attr(event)] #[cfg_attr(a, event, )] struct A; }",
        "mod x { #[group(\"g\", replay)] union G { a: u8 } #[event(\"_.é.1\")] struct r#A; }",
        "mod x { #[job] struct A; #[job()] struct B; #[job(\"a.b\", retry)] struct C; #[job(\"a\", deadline = )] enum D {} }",
        "mod x { #[job(\"a\", retry())] struct A; #[job(\"b\", retry(tries, first =, longest = \"\", explicit =))] struct B; }",
        "mod x { #[job(\"a\", retry(tries = -1, first = 1.5, longest = 1h), deadline = \"é9\", result = )] struct A { x: , } }",
        "mod x { #[job(name = \"a\")] struct A; #[job(name =)] struct B; #[job(name)] struct C; #[job(\"a\", retry = -)] struct D; }",
        "fn f() {}",
        "pub struct S;",
        "unsafe mod x {}",
        "mod r#x { mod y { #[event(\"a\")] fn z() {} } }",
    ];
    let args = [
        "",
        "id",
        "id =",
        "id = 7",
        "id = \"\"",
        "id = \"a@v1\",,",
        "crate",
        "crate = ",
        "crate = self",
        "id(\"a@v1\")",
    ];
    for item in items {
        for args in args {
            if let (Ok(args), Ok(item)) = (args.parse(), item.parse()) {
                let _: TokenStream = crate::expand_contract(args, item);
            }
        }
    }
}
