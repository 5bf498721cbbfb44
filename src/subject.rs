//! Subject tokens: how the value of a parameter becomes one token of a subject.

/// One subject token for `value`, by the `~HEX~` scheme.
///
/// Whitespace, control characters and `.`, `*`, `>`, `~` become `~<upper-case hexadecimal code
/// point>~`. A result that is empty or begins with `$` gets a leading `_`. The scheme routes; the
/// payload carries the value itself.
pub fn encode_token(value: &str) -> String {
    let mut token = String::with_capacity(value.len());
    for c in value.chars() {
        if matches!(c, '.' | '*' | '>' | '~') || c.is_whitespace() || c.is_control() {
            token.push('~');
            token.push_str(&format_code_point(c));
            token.push('~');
        } else {
            token.push(c);
        }
    }
    if token.is_empty() || token.starts_with('$') {
        token.insert(0, '_');
    }
    token
}

fn format_code_point(c: char) -> String {
    format!("{:X}", u32::from(c))
}

#[cfg(test)]
mod tests {
    use super::encode_token;

    #[test]
    fn plain_values_stay() {
        assert_eq!(encode_token("A-7_ü"), "A-7_ü");
    }

    #[test]
    fn what_would_change_the_subject_is_encoded() {
        assert_eq!(encode_token("a.b*c>d~e f\0\u{a0}"), "a~2E~b~2A~c~3E~d~7E~e~20~f~0~~A0~");
    }

    #[test]
    fn empty_and_dollar_get_a_prefix() {
        assert_eq!(encode_token(""), "_");
        assert_eq!(encode_token("$JS"), "_$JS");
    }
}
