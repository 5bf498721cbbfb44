//! Durations as text: `"10m"`, `"1h30m"`.
use std::time::Duration;

use quote::ToTokens;
use syn::parse::ParseStream;
use syn::{Ident, Lit, LitStr};

use super::options;
use crate::model::Given;

/// Units in milliseconds, as they follow each other in a text.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// `= "10m"`
pub(super) fn read(input: ParseStream, key: &Ident, example: &str) -> syn::Result<Given<Duration>> {
    options::value(input, key, &format!("`{key} = \"{example}\"`"))?;
    if input.peek(LitStr) {
        let text: LitStr = input.parse()?;
        let value = parse(&text.value()).map_err(|message| syn::Error::new(text.span(), message))?;
        return Ok(Given { value, literal: Lit::Str(text) });
    }
    let meant = meant(&input.fork()).unwrap_or_else(|| example.to_owned());
    Err(input.error(format!("a duration is a text: `{key} = \"{meant}\"`")))
}

/// The text in place of `10m` or `10`.
fn meant(input: ParseStream) -> Option<String> {
    suggest(&input.parse::<Lit>().ok()?.to_token_stream().to_string())
}

fn parse(text: &str) -> Result<Duration, String> {
    let parts = parts(text).and_then(|parts| milliseconds(&parts));
    match parts {
        Some(parts) if parts.contains(&0) => {
            Err(format!("`{text}` has a part that is zero: each number of a duration is at least 1"))
        }
        Some(parts) => Ok(Duration::from_millis(parts.into_iter().fold(0, u64::saturating_add))),
        None => {
            let what = match text {
                "" => "the duration is empty".to_owned(),
                _ => format!("`{text}` is no duration"),
            };
            let right = "write whole numbers with the units d, h, m, s, ms, as in `10m` or `1h30m`";
            let hint = suggest(text).map(|hint| format!("; did you mean `{hint}`?")).unwrap_or_default();
            Err(format!("{what}: {right}{hint}"))
        }
    }
}

/// Each number with the word after it.
fn parts(text: &str) -> Option<Vec<(u64, &str)>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len()));
        let (word, after) =
            after.split_at(after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len()));
        if number.is_empty() {
            return None;
        }
        // What is too large for a number is too long for a duration.
        parts.push((number.parse().unwrap_or(u64::MAX), word));
        rest = after;
    }
    Some(parts)
}

/// `None` where a unit is unknown, or not smaller than the one before it.
fn milliseconds(parts: &[(u64, &str)]) -> Option<Vec<u64>> {
    let mut units = UNITS.iter();
    let parts = parts.iter().map(|(number, word)| {
        let (_, length) = units.find(|(unit, _)| unit == word)?;
        Some(number.saturating_mul(*length))
    });
    parts.collect::<Option<Vec<u64>>>().filter(|parts| !parts.is_empty())
}

/// What somebody who wrote `text` may have meant.
fn suggest(text: &str) -> Option<String> {
    let text: String = text.to_lowercase().chars().filter(|c| !c.is_whitespace() && *c != '_').collect();
    let mut meant = parts(&text)?
        .into_iter()
        .map(|(number, word)| {
            Some((UNITS.iter().position(|(unit, _)| Some(*unit) == unit_of(word))?, number))
        })
        .collect::<Option<Vec<(usize, u64)>>>()?;
    meant.sort_unstable();
    let text: String =
        meant.iter().filter_map(|(unit, number)| Some(format!("{number}{}", UNITS.get(*unit)?.0))).collect();
    let parts = milliseconds(&self::parts(&text)?)?;
    (!parts.contains(&0)).then_some(text)
}

/// The unit that a word stands for.
fn unit_of(word: &str) -> Option<&'static str> {
    Some(match word {
        "d" | "day" | "days" => "d",
        "h" | "hr" | "hrs" | "hour" | "hours" => "h",
        "m" | "min" | "mins" | "minute" | "minutes" => "m",
        "" | "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "ms" | "msec" | "msecs" | "milli" | "millis" | "millisecond" | "milliseconds" => "ms",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::{parse, suggest};
    use std::time::Duration;

    #[test]
    fn numbers_with_units_are_durations() {
        for (text, ms) in [
            ("1ms", 1),
            ("250ms", 250),
            ("90s", 90_000),
            ("10m", 600_000),
            ("1h30m", 5_400_000),
            ("30d", 2_592_000_000),
            ("1d2h3m4s5ms", 93_784_005),
            ("007s", 7_000),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        let longest = Duration::from_millis(u64::MAX);
        assert_eq!(parse("99999999999999999999d1h"), Ok(longest));
    }

    #[test]
    fn everything_else_is_none() {
        for text in [
            "", " ", "5", "m", "m5", "5 m", "1.5h", "-5s", "+5s", "5sec", "1w", "1M", "PT5M", "30m1h",
            "1m1m", "1h30", "5µs", "٥s", "1_000s",
        ] {
            assert!(parse(text).unwrap_err().contains("write whole numbers"), "{text}");
        }
        for text in ["0s", "0d", "1h0m", "00ms"] {
            assert!(parse(text).unwrap_err().contains("zero"), "{text}");
        }
    }

    #[test]
    fn a_refusal_suggests_what_was_meant() {
        for (text, meant) in [
            ("5", "5s"),
            ("5 min", "5m"),
            ("1 Hour 30 minutes", "1h30m"),
            ("30m1h", "1h30m"),
            ("1_000ms", "1000ms"),
            ("2days", "2d"),
        ] {
            assert_eq!(suggest(text).as_deref(), Some(meant), "{text}");
        }
        for text in ["", "1.5h", "-5s", "0 s", "1m1m", "1w", "soon"] {
            assert_eq!(suggest(text), None, "{text}");
        }
    }
}
