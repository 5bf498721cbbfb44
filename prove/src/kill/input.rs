//! The orders of the example, as many times over as there must be work to be killed in.
use std::time::Duration;

use serde_json::Value;

/// How many lines a placing process without pauses does in a second, at most.
const LINES_PER_SECOND: f64 = 1000.0;

/// How many rounds of so many lines are enough for so long.
pub(crate) fn rounds(lines: usize, work: Duration) -> usize {
    let mut rounds = 1;
    while ((rounds * lines) as f64) < work.as_secs_f64() * LINES_PER_SECOND {
        rounds += 1;
    }
    rounds
}

/// The orders `rounds` times, with other order ids in each round.
pub(crate) fn orders(orders: &str, rounds: usize) -> String {
    let round = |round: usize| orders.lines().map(move |line| renamed(line, round) + "\n");
    (0..rounds).flat_map(round).collect()
}

/// What has no order id stays as it is.
fn renamed(line: &str, round: usize) -> String {
    let Ok(mut json) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    if let Some(Value::String(id)) = json.get_mut("order_id").filter(|id| **id != Value::from("")) {
        id.push_str(&format!("/{round}"));
        return json.to_string();
    }
    line.to_owned()
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
