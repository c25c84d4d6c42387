//! The form of a proxy's policy on the command line.

use crate::ProxyPolicy;
use crate::de::read;
use crate::error::{Fault, Origin};
use crate::faults::Check;
use crate::load::value_of;
use crate::tree::{Node, Table, Value, show};

/// Returns the form of `ranway proxy --policy`: the kind, and after a colon its parameters as `KEY=VALUE` with commas between them.
pub fn policy_text(policy: &ProxyPolicy) -> String {
    let table = serde_json::to_value(policy).unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let parameters = table.as_object().into_iter().flatten().filter(|(key, _)| *key != "kind");
    let parameters: Vec<String> = parameters.map(|(key, value)| format!("{key}={}", text(value))).collect();
    let colon = if parameters.is_empty() { "" } else { ":" };
    format!("{}{colon}{}", text(&table["kind"]), parameters.join(","))
}

/// Reads [`policy_text`].
///
/// # Errors
/// What is wrong, and what would be valid.
pub fn policy_of(text: &str) -> Result<ProxyPolicy, String> {
    let (kind, parameters) = text.split_once(':').unwrap_or((text, ""));
    let origin = Origin { source: text.into(), position: None };
    let mut table = Table::from([("kind".to_owned(), Node::new(&origin, Value::Text(kind.to_owned())))]);
    for parameter in parameters.split(',').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').ok_or_else(|| format!("expected KEY=VALUE, not `{parameter}`"))?;
        table.insert(key.trim().to_owned(), value_of(value.trim(), &origin));
    }
    let policy: ProxyPolicy =
        read(&Node::new(&origin, Value::Table(table))).map_err(|fault| Fault { origin: None, ..fault }.to_string())?;
    let mut check = Check::default();
    policy.check(&mut check);
    match check.faults.pop() {
        Some((path, message)) => Err(Fault { origin: None, key: show(&path), message }.to_string()),
        None => Ok(policy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rapid::policies::{BlockTable, Code};
    use units::Span;

    #[test]
    fn a_policy_and_its_form_on_the_command_line_are_the_same() {
        let published = ProxyPolicy::Published {
            slow_threshold: 0.75,
            alpha: 0.4,
            blocks: Some(BlockTable::Nr256qam),
            elements: Some(132),
        };
        let plain = ProxyPolicy::Published { slow_threshold: 0.8, alpha: 0.125, blocks: None, elements: None };
        let artefact = ProxyPolicy::Artefact { code: Code::KernelModule };
        let best = ProxyPolicy::Best { radio_target: Span::from_micros(2500), proxy_target: Span::ZERO };
        for policy in [published, plain, artefact, best, ProxyPolicy::MilliProxy, ProxyPolicy::Split, ProxyPolicy::None]
        {
            let text = policy_text(&policy);
            assert_eq!(policy_of(&text), Ok(policy), "{text}");
        }
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        let policy = |text: &str| policy_of(text).expect_err("it is wrong");
        insta::assert_snapshot!(
            [
                "worst", "best:radio_target", "best:radio_target=2 s", "best:radio_target=x", "best:alpha=0.5",
                "published:alpha=2", "published:alpha=x", "published:blocks=x", "published:elements=0", "artefact:code=x",
                "milli-proxy:alpha=0",
            ]
            .map(policy)
            .join("\n"),
            @"
        kind: unknown value `worst`; valid values are none, split, published, artefact, best, milli-proxy
        expected KEY=VALUE, not `radio_target`
        radio_target: 2 s is out of range: must be from 1 ms to 1 s
        radio_target: `x` is not a time: it needs a number and a unit (h, min, s, ms, us, ns)
        alpha: unknown key; valid keys are radio_target, proxy_target
        alpha: 2 is out of range: must be from 0 to 1
        alpha: expected a number, found the string \"x\"
        blocks: unknown value `x`; valid values are lte, nr-64qam, nr-256qam, nr-low-rate, nr-1024qam, reported
        elements: 0 is out of range: must be from 1 to 156
        code: unknown value `x`; valid values are simulator, kernel-module
        alpha: unknown key; `milli-proxy` has no keys
        "
        );
    }
}
