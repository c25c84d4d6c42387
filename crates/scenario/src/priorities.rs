//! Checks whether a scenario expects priorities between UEs.

use crate::Scenario;
use crate::error::Fault;

/// Returns a warning for a scenario with several UEs whose bearers differ in their class at any point: a class only orders
/// the bearers of one UE.
pub(crate) fn warning(points: &[&Scenario]) -> Option<Fault> {
    points.iter().any(|point| expects(point)).then(|| {
        let message = "the bearers of several UEs have different classes (`qci`), but the scheduler of a cell does not \
                       prefer one UE to another for them: a class only orders the bearers of one UE";
        Fault::new(None, "qci", message)
    })
}

/// Returns whether bearers of a network with several UEs have different classes.
fn expects(scenario: &Scenario) -> bool {
    let Some(radio) = &scenario.radio else { return false };
    let count: u32 = radio.ues.iter().map(|ue| ue.count).sum();
    let dedicated = radio.ues.iter().flat_map(|ue| &ue.dedicated).map(|dedicated| dedicated.bearer.qci);
    let mut classes = radio.ues.iter().map(|ue| ue.bearer.qci).chain(dedicated);
    let first = classes.next();
    count > 1 && classes.any(|class| Some(class) != first)
}
