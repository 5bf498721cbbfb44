//! Resident memory of a process.
use orders_demo::Error;

/// In MiB, as the kernel tells in `/proc`. Only Linux has that.
pub(crate) fn mib(pid: u32) -> Result<f64, Error> {
    let path = format!("/proc/{pid}/status");
    let status =
        std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}; this proof needs Linux"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    let kib: f64 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(kib / 1024.0)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn this_process_has_some() {
        assert!(super::mib(std::process::id()).unwrap() > 1.0);
        assert!(super::mib(0).is_err());
    }
}
