//! The result as a table for people and as JSON for programs.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::Result;
use crate::case::Case;
use crate::samples::Samples;
use crate::setting::Facts;

pub(crate) fn print(facts: &Facts, cases: &[Case]) {
    for (title, facts) in [("machine", &facts.machine), ("versions", &facts.versions)] {
        let facts: Vec<String> = facts.iter().map(|(name, value)| format!("{name} {value}")).collect();
        println!("{title}: {}", facts.join("; "));
    }
    for (title, facts) in [("durability", &facts.durability), ("peer", &facts.peers)] {
        for (name, value) in facts {
            println!("{title}: {name}: {value}");
        }
    }
    println!(
        "each cell: median (lowest–highest of the rounds); a ratio is that of ours to the raw loop in one round\n"
    );
    for line in aligned(&table(cases)) {
        println!("{line}");
    }
}

pub(crate) fn write_json(file: &Path, bench: &str, facts: &Facts, cases: &[Case]) -> Result<()> {
    let result = json!({
        "bench": bench,
        "machine": object(&facts.machine),
        "versions": object(&facts.versions),
        "durability": object(&facts.durability),
        "peers": object(&facts.peers),
        "cases": cases.iter().map(case_json).collect::<Vec<_>>(),
    });
    std::fs::write(file, serde_json::to_string_pretty(&result)? + "\n")
        .map_err(|error| format!("could not write `{}`: {error}", file.display()))?;
    Ok(())
}

fn case_json(case: &Case) -> Value {
    let others: Map<String, Value> =
        case.others.iter().map(|(name, samples)| ((*name).to_owned(), samples.median().into())).collect();
    let spread = |samples: &Samples| json!([samples.min(), samples.max()]);
    json!({
        "case": case.name,
        "metric": case.metric,
        "ours": case.ours.median(),
        "raw": case.raw.median(),
        "ratio": case.ratio().median(),
        "others": others,
        "spread": {"ours": spread(&case.ours), "raw": spread(&case.raw), "ratio": spread(&case.ratio())},
    })
}

fn object(facts: &[(&'static str, String)]) -> Value {
    facts
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str())))
        .collect::<Map<_, _>>()
        .into()
}

fn table(cases: &[Case]) -> Vec<Vec<String>> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in cases.iter().flat_map(|case| &case.others) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let head = ["case", "metric", "ours", "raw loop", "ratio"].into_iter().chain(names.iter().copied());
    let mut lines = vec![head.map(str::to_owned).collect::<Vec<_>>()];
    for case in cases {
        let mut line = vec![
            case.name.clone(),
            case.metric.to_owned(),
            whole(&case.ours),
            whole(&case.raw),
            hundredths(&case.ratio()),
        ];
        line.extend(names.iter().map(|name| other(case, name)));
        lines.push(line);
    }
    lines
}

fn other(case: &Case, wanted: &str) -> String {
    let found = case.others.iter().find(|(name, _)| *name == wanted);
    found.map_or_else(|| "-".to_owned(), |(_, samples)| whole(samples))
}

fn whole(samples: &Samples) -> String {
    format!("{:.0} ({:.0}–{:.0})", samples.median(), samples.min(), samples.max())
}

fn hundredths(samples: &Samples) -> String {
    format!("{:.2} ({:.2}–{:.2})", samples.median(), samples.min(), samples.max())
}

/// Lines of a Markdown table whose columns line up.
fn aligned(lines: &[Vec<String>]) -> Vec<String> {
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        lines
            .iter()
            .filter_map(|line| line.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let written = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
    };
    let mut written: Vec<String> = lines.iter().map(written).collect();
    written.insert(1.min(written.len()), format!("|-{}-|", rule.join("-|-")));
    written
}

#[cfg(test)]
mod tests {
    use super::{aligned, case_json, table};
    use crate::case::Case;
    use crate::samples::Samples;

    fn case() -> Case {
        let of = |samples: [f64; 3]| {
            let mut all = Samples::default();
            for sample in samples {
                all.push(sample);
            }
            all
        };
        Case {
            name: "relay, SQLite".into(),
            metric: "rows/s",
            ours: of([80.0, 70.0, 90.0]),
            raw: of([100.0, 100.0, 100.0]),
            others: vec![("row_by_row", of([1.0, 2.0, 3.0]))],
        }
    }

    #[test]
    fn a_table_lines_up() {
        let lines = aligned(&table(&[case()]));
        assert_eq!(
            lines[2],
            "| relay, SQLite | rows/s | 80 (70–90) | 100 (100–100) | 0.80 (0.70–0.90) | 2 (1–3)    |"
        );
        assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()), "{lines:#?}");
    }

    #[test]
    fn json_has_medians() {
        let json = case_json(&case());
        assert_eq!(json["ratio"], 0.8);
        assert_eq!(json["others"]["row_by_row"], 2.0);
    }
}
