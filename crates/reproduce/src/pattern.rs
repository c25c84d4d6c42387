//! Patterns of flows' names.

/// Returns whether a flow matches; `*` matches any text.
pub(crate) fn is_flow(pattern: &str, flow: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == flow,
        Some((before, rest)) => flow.strip_prefix(before).is_some_and(|tail| {
            tail.char_indices().map(|(i, _)| i).chain([tail.len()]).any(|i| is_flow(rest, &tail[i..]))
        }),
    }
}
