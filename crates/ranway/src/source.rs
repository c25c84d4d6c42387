//! Which scenario a command is given.

use clap::Args as ClapArgs;

/// The scenario to load, and the changes to make to it.
#[derive(ClapArgs)]
pub(crate) struct SourceArgs {
    /// A scenario file, or the name of a built-in one (`ranway list`)
    #[arg(value_name = "FILE")]
    pub(crate) file: String,
    /// Set a parameter or any key, such as loss=1e-3, links.radio.delay="20 ms" or flows.*.cc=bbr
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of the random number generators, instead of the scenario's
    #[arg(long)]
    pub(crate) seed: Option<u64>,
}

impl SourceArgs {
    /// Returns the scenario's overrides, as `KEY=VALUE`.
    pub(crate) fn overrides(&self) -> Vec<String> {
        let seed = self.seed.map(|seed| format!("seed={seed}"));
        self.set.iter().cloned().chain(seed).collect()
    }
}
