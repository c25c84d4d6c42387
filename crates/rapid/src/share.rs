//! Max-min shares.

/// Divides `capacity` among demands by max-min: no share can grow unless one that is not greater shrinks. `shares` holds the
/// demands, infinite for those that take everything, and afterwards the shares.
///
/// Returns the level: what each unsatisfied demand is given.
pub(crate) fn share(capacity: f64, shares: &mut [f64]) -> f64 {
    let mut sorted: Vec<f64> = shares.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let mut left = capacity.max(0.0);
    let mut level = f64::INFINITY;
    for (at, &demand) in sorted.iter().enumerate() {
        let equal = left / (sorted.len() - at) as f64;
        if demand > equal {
            level = equal;
            break;
        }
        left -= demand;
    }
    for share in shares {
        *share = share.min(level);
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_demands_are_met_and_the_rest_is_divided_equally() {
        let mut shares = [2.0, f64::INFINITY, 10.0, f64::INFINITY];
        assert_eq!(share(29.0, &mut shares), 9.0);
        assert_eq!(shares, [2.0, 9.0, 9.0, 9.0]);
    }

    #[test]
    fn without_shortage_each_has_its_demand() {
        let mut shares = [2.0, 3.0];
        assert_eq!(share(30.0, &mut shares), f64::INFINITY);
        assert_eq!(shares, [2.0, 3.0]);
    }

    #[test]
    fn shares_are_max_min_for_all_demands() {
        bolero::check!().with_type::<(u16, Vec<u16>)>().for_each(|(capacity, demands)| {
            let demands: Vec<f64> =
                demands.iter().map(|&d| if d > 60_000 { f64::INFINITY } else { d.into() }).collect();
            let mut shares = demands.clone();
            let level = share(f64::from(*capacity), &mut shares);
            let total: f64 = shares.iter().sum();
            assert!(total <= f64::from(*capacity) * (1.0 + 1e-9), "{total} of {capacity}");
            for (share, demand) in shares.iter().zip(&demands) {
                // Either the demand is met, or none has more than this one.
                assert!(share == demand || *share == level && shares.iter().all(|other| other <= share));
            }
            if shares != demands {
                assert!((total - f64::from(*capacity)).abs() <= 1e-6 * total.max(1.0), "{total} of {capacity}");
            }
        });
    }
}
