//! Doc comments as text.
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Attribute, Expr, Lit, Meta};

/// The text of the doc comments among `attrs`, as one expression.
pub(super) fn description<'a>(
    attrs: impl IntoIterator<Item = &'a Attribute>,
    private: &TokenStream,
) -> TokenStream {
    let values: Vec<&Expr> = attrs.into_iter().filter_map(value).collect();
    let literals: Option<Vec<String>> = values.iter().map(|value| literal(value)).collect();
    if let Some(literals) = literals {
        let text = unindent(&literals.join("\n"));
        return quote!(#text);
    }
    // `#[doc = include_str!(..)]`: only rustc can read it.
    quote!(#private::core::concat!(#(#values, "\n"),*))
}

/// The text of a doc comment; not `#[doc(hidden)]`.
pub(super) fn value(attr: &Attribute) -> Option<&Expr> {
    match &attr.meta {
        Meta::NameValue(doc) if doc.path.is_ident("doc") => Some(&doc.value),
        _ => None,
    }
}

fn literal(value: &Expr) -> Option<String> {
    match value {
        Expr::Lit(expr) => match &expr.lit {
            Lit::Str(text) => Some(text.value()),
            _ => None,
        },
        Expr::Group(group) => literal(&group.expr),
        _ => None,
    }
}

/// Without what all lines are indented by, and without empty lines around the text.
fn unindent(text: &str) -> String {
    let spaces = |line: &str| line.chars().take_while(|c| *c == ' ').count();
    // A `/** block comment */` begins on its first line, whatever its other lines are indented by.
    let indent = text
        .lines()
        .skip(usize::from(!text.starts_with(' ')))
        .filter(|line| !line.trim().is_empty())
        .map(spaces)
        .min();
    let cut = |line: &str| {
        line.chars().skip(spaces(line).min(indent.unwrap_or(0))).collect::<String>().trim_end().to_owned()
    };
    text.lines().map(cut).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::{description, unindent};
    use syn::parse_quote;

    #[test]
    fn indentation_of_the_comment_goes_and_that_of_its_text_stays() {
        assert_eq!(unindent(" One.\n\n     code\n Two. "), "One.\n\n    code\nTwo.");
        assert_eq!(unindent(" One,\n        two.\n        "), "One,\n       two.");
        assert_eq!(unindent("One,\n        two.\n        "), "One,\ntwo.");
        assert_eq!(unindent(""), "");
    }

    #[test]
    fn literals_become_one_literal_and_macros_stay() {
        let private = quote::quote!(p);
        let attrs = [parse_quote!(#[doc = " A"]), parse_quote!(#[doc(hidden)]), parse_quote!(#[doc = " B"])];
        assert_eq!(description(&attrs, &private).to_string(), "\"A\\nB\"");
        let attrs = [parse_quote!(#[doc = include_str!("x.md")])];
        assert!(description(&attrs, &private).to_string().contains("concat ! (include_str ! (\"x.md\")"));
        assert_eq!(description(&[], &private).to_string(), "\"\"");
    }
}
