use super::*;

/// The example of the article on percentiles in Wikipedia, section "The nearest-rank method".
const FIVE: [f64; 5] = [15.0, 20.0, 35.0, 40.0, 50.0];

#[test]
fn nearest_ranks_are_those_of_the_worked_example() {
    // Ranks 0.05 * 5 = 0.25, 0.3 * 5 = 1.5, 2, 2.5 and 5, rounded up.
    let found = [0.05, 0.3, 0.4, 0.5, 1.0].map(|share| nearest_rank(&FIVE, share));
    assert_eq!(found, [15.0, 20.0, 20.0, 35.0, 50.0].map(Some));
    let mut shuffled = [40.0, 15.0, 50.0, 35.0, 20.0];
    assert_eq!(found, [0.05, 0.3, 0.4, 0.5, 1.0].map(|share| select_nearest_rank(&mut shuffled, share)));
    assert_eq!(nearest_rank(&FIVE, 0.0), Some(15.0));
    assert_eq!(nearest_rank::<f64>(&[], 0.5), None);
    assert_eq!(select_nearest_rank(&mut [], 0.5), None);
}

#[test]
fn interpolated_quantiles_are_those_of_the_worked_example() {
    // Places 0.05 * 4 = 0.2, 1.2, 1.6, 2 and 4: 15 + 0.2 * 5, 20 + 0.2 * 15, 20 + 0.6 * 15.
    for (share, expected) in [(0.05, 16.0), (0.3, 23.0), (0.4, 29.0), (0.5, 35.0), (1.0, 50.0), (0.0, 15.0)] {
        let found = interpolated(&FIVE, share).expect("there are values");
        assert!((found - expected).abs() < 1e-12, "{share}: {found}");
    }
    // R and numpy for 1, 2, 3, 4: 1.75, 2.5 and 3.25.
    let four = [1.0, 2.0, 3.0, 4.0];
    assert_eq!([0.25, 0.5, 0.75].map(|share| interpolated(&four, share)), [1.75, 2.5, 3.25].map(Some));
    assert_eq!(interpolated(&[7.0], 0.9), Some(7.0));
    assert_eq!(interpolated(&[], 0.9), None);
}

#[test]
fn places_are_rounded_as_their_names_say() {
    // Of 10 to 40, the places of 0.3, 0.5 and 0.9 are 0.9, 1.5 and 2.7.
    let four = [10, 20, 30, 40];
    assert_eq!([0.3, 0.5, 0.9, 1.0].map(|share| nearest_place(&four, share)), [20, 30, 40, 40].map(Some));
    assert_eq!([0.3, 0.5, 0.9, 1.0].map(|share| lower_place(&four, share)), [10, 20, 30, 40].map(Some));
    assert_eq!((nearest_place::<u8>(&[], 0.5), lower_place::<u8>(&[], 0.5)), (None, None));
}

#[test]
fn four_values_have_three_medians() {
    let values = [4.0, 1.0, 9.0, 2.0];
    let mut sorted = values;
    sorted.sort_by(f64::total_cmp);
    assert_eq!((nearest_rank(&sorted, 0.5), lower_place(&sorted, 0.5)), (Some(2.0), Some(2.0)));
    assert_eq!((median(&mut values.clone()), interpolated(&sorted, 0.5)), (Some(3.0), Some(3.0)));
    assert_eq!((upper_median(&mut values.clone()), nearest_place(&sorted, 0.5)), (Some(4.0), Some(4.0)));
    let odd = [9.0, 1.0, 4.0];
    assert_eq!((median(&mut odd.clone()), upper_median(&mut odd.clone())), (Some(4.0), Some(4.0)));
    assert_eq!(median(&mut [2.0, 2.0, 1.0, 9.0]), Some(2.0));
    assert_eq!((median(&mut []), upper_median(&mut [])), (None, None));
}

#[test]
fn values_with_counts_have_the_quantiles_of_as_many_values() {
    let buckets = [(1.0, 3), (2.0, 0), (5.0, 5), (8.0, 2)];
    let all = [1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0, 5.0, 8.0, 8.0];
    for share in [0.0, 0.05, 0.3, 0.31, 0.5, 0.8, 0.81, 0.95, 1.0] {
        assert_eq!(rank_of_weighted(&buckets, share), nearest_rank(&all, share), "{share}");
    }
    assert_eq!((rank_of_weighted(&[], 0.5), rank_of_weighted(&[(1.0, 0)], 0.5)), (None, None));
}

#[test]
fn shares_of_percentiles_do_not_cross_a_rank_by_rounding() {
    for percent in [5, 25, 50, 75, 95, 99] {
        for count in 1..=20_000_u64 {
            assert_eq!(rank(count, percent as f64 / 100.0), (percent * count).div_ceil(100), "{percent} % of {count}");
        }
    }
    let numbers: Vec<usize> = (0..5_000).collect();
    for count in 1..numbers.len() {
        assert_eq!(lower_place(&numbers[..count], 0.95), Some((count - 1) * 95 / 100));
    }
}

#[test]
fn a_percentile_interval_has_the_quantiles_of_its_definition() {
    // Of 1 to 1000, ranks 25 and 975; places 0.025 * 999 = 24.975 and 974.025.
    let resamples: Vec<f64> = (1..=1000).map(f64::from).collect();
    assert_eq!(percentiles_95(&resamples, nearest_rank), Some((25.0, 975.0)));
    let (low, high) = percentiles_95(&resamples, interpolated).expect("there are values");
    assert!((low - 25.975).abs() < 1e-9 && (high - 975.025).abs() < 1e-9, "{low} {high}");
    assert_eq!(percentiles_95(&[], nearest_rank), None);
}
