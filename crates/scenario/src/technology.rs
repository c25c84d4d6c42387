//! The technologies of cells.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A radio access technology.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Technology {
    /// LTE.
    Lte,
    /// NR.
    Nr,
}
