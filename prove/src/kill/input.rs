//! The orders of the example, as many times over as there must be work to be killed in.
use std::time::Duration;

use serde_json::Value;

/// How many lines a placing process without pauses does in a millisecond, at most.
const LINES_PER_MS: u128 = 1;

/// How many rounds of so many lines are enough for so long.
pub(crate) fn rounds(lines: usize, work: Duration) -> usize {
    let wanted = usize::try_from(work.as_millis() * LINES_PER_MS).unwrap_or(usize::MAX);
    wanted.div_ceil(lines).max(1)
}

/// The orders `rounds` times, with other order ids in each round.
pub(crate) fn orders(orders: &str, rounds: usize) -> String {
    let round = |round: usize| orders.lines().map(move |line| renamed(line, round) + "\n");
    (0..rounds).flat_map(round).collect()
}

/// What has no order id stays as it is.
fn renamed(line: &str, round: usize) -> String {
    let Ok(mut json) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    match json.get_mut("order_id") {
        Some(Value::String(id)) if !id.is_empty() => *id = format!("{id}/{round}"),
        _ => return line.to_owned(),
    }
    json.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_work_for_as_long_as_asked() {
        assert_eq!(rounds(1000, Duration::ZERO), 1);
        assert_eq!(rounds(1000, Duration::from_secs(1)), 1);
        assert_eq!(rounds(1000, Duration::from_millis(59_001)), 60);
    }

    #[test]
    fn only_order_ids_change() {
        let made = orders("{\"order_id\":\"a\",\"n\":1}\nbroken {\n{\"order_id\":\"\"}\n", 2);
        let expected = "{\"n\":1,\"order_id\":\"a/0\"}\nbroken {\n{\"order_id\":\"\"}\n\
                        {\"n\":1,\"order_id\":\"a/1\"}\nbroken {\n{\"order_id\":\"\"}\n";
        assert_eq!(made, expected);
    }
}
