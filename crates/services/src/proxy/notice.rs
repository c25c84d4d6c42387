//! What the proxy tells its operator.

use std::borrow::Cow;

/// What an operator should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Something was amiss, and has been repaired.
    Repaired(Cow<'static, str>),
    /// Something has failed, and the proxy goes on without it.
    Failed(Cow<'static, str>),
    /// Something may be amiss.
    Doubtful(Cow<'static, str>),
}
