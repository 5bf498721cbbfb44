//! serde's `rename_all` rules for fields, as serde_derive applies them.

/// The wire name of `field`; `None` where serde knows no such rule.
pub(super) fn apply(rule: &str, field: &str) -> Option<String> {
    Some(match rule {
        "lowercase" | "snake_case" => field.to_owned(),
        "UPPERCASE" | "SCREAMING_SNAKE_CASE" => field.to_ascii_uppercase(),
        "PascalCase" => pascal(field),
        "camelCase" => {
            let pascal = pascal(field);
            let mut chars = pascal.chars();
            chars.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(chars).collect()
        }
        "kebab-case" => field.replace('_', "-"),
        "SCREAMING-KEBAB-CASE" => field.to_ascii_uppercase().replace('_', "-"),
        _ => return None,
    })
}

fn pascal(field: &str) -> String {
    let mut begins_word = true;
    let mut name = String::with_capacity(field.len());
    for c in field.chars() {
        if c == '_' {
            begins_word = true;
        } else if std::mem::take(&mut begins_word) {
            name.push(c.to_ascii_uppercase());
        } else {
            name.push(c);
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::apply;

    // Expected values from serde_derive's own test `rename_fields`, and one with digits.
    #[test]
    fn every_rule_of_serde() {
        let rules = [
            "lowercase",
            "UPPERCASE",
            "PascalCase",
            "camelCase",
            "snake_case",
            "SCREAMING_SNAKE_CASE",
            "kebab-case",
            "SCREAMING-KEBAB-CASE",
        ];
        let expected = [
            (
                "outcome",
                ["outcome", "OUTCOME", "Outcome", "outcome", "outcome", "OUTCOME", "outcome", "OUTCOME"],
            ),
            (
                "very_tasty",
                [
                    "very_tasty",
                    "VERY_TASTY",
                    "VeryTasty",
                    "veryTasty",
                    "very_tasty",
                    "VERY_TASTY",
                    "very-tasty",
                    "VERY-TASTY",
                ],
            ),
            ("z42", ["z42", "Z42", "Z42", "z42", "z42", "Z42", "z42", "Z42"]),
            ("_id", ["_id", "_ID", "Id", "id", "_id", "_ID", "-id", "-ID"]),
        ];
        for (field, names) in expected {
            for (rule, name) in rules.iter().zip(names) {
                assert_eq!(apply(rule, field).as_deref(), Some(name), "{rule} of {field}");
            }
        }
        assert_eq!(apply("Train-Case", "a"), None);
        assert_eq!(apply("camelCase", "__"), Some(String::new()));
    }
}
