//! Where results of proofs are kept.
use std::fs;
use std::path::Path;

use orders_demo::Error;
use serde::Serialize;

/// Write `docs/proofs/<name>.json`.
pub(crate) fn write(name: &str, result: &impl Serialize) -> Result<(), Error> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let path = workspace.join("docs/proofs").join(format!("{name}.json"));
    fs::create_dir_all(path.parent().unwrap_or(workspace))?;
    fs::write(&path, serde_json::to_string_pretty(result)? + "\n")?;
    println!("written to {}", path.display());
    Ok(())
}
