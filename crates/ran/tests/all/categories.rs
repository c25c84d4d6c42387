//! A UE's category limits what a TTI carries for it, in sizes that the standard's tables have.

use crate::support::{World, am, loss_for, ms, network, ue};
use channel::tables::lte::{CATEGORIES, Category};
use channel::{Bandwidth, Direction};
use ran::{Event, Transmission};

/// Both directions of a UE of `category` with a very good channel on 20 MHz, saturated: the rates in Mbit/s, and the
/// transmissions.
fn saturated(category: Category, layers: u8) -> ([f64; 2], Vec<Transmission>) {
    let mut config = network(Bandwidth::Mhz20, vec![ue(am(), loss_for(45.0))]);
    config.ues[0].category = category;
    config.ues[0].layers = layers;
    config.ues[0].host.room.bytes = Some(1_000_000);
    let mut world = World::new(&config);
    let rates = [Direction::Downlink, Direction::Uplink].map(|direction| {
        let from = world.now;
        world.saturate(direction, &[0], 600, from + units::Span::from_millis(1000));
        world.bytes(direction, 0, from + units::Span::from_millis(100)) as f64 * 8.0 / 0.9e6
    });
    let sent = world.events.iter().filter_map(|(at, event)| match event {
        Event::Transmission(t) if *at >= ms(0) => Some(*t),
        _ => None,
    });
    (rates, sent.collect())
}

#[test]
fn no_tti_carries_more_than_the_category_allows() {
    for (number, category) in (1u8..).zip(CATEGORIES) {
        assert_eq!(Category::numbered(number), Some(category));
        for layers in [1, 2] {
            let (rates, sent) = saturated(category, layers);
            for t in &sent {
                match t.direction {
                    Direction::Downlink => {
                        assert!(t.layers <= category.layers.min(layers), "category {number}: {t:?}");
                        assert!(t.bits <= category.downlink_bits, "category {number}: {t:?}");
                        assert!(
                            t.bits / u32::from(t.layers) <= category.downlink_block_bits,
                            "category {number}: {t:?}"
                        );
                    }
                    Direction::Uplink => {
                        assert!(t.bits <= category.uplink_block_bits, "category {number}: {t:?}");
                        assert!(t.mcs <= if category.uplink_64qam { 28 } else { 23 }, "category {number}: {t:?}");
                    }
                }
            }
            // The limits are reached, less headers, what the control channel takes, and the steps of resource block groups.
            let whole = 75.376 * f64::from(layers.min(category.layers));
            let down = whole.min(f64::from(category.downlink_bits) / 1e3);
            let up = 71.0f64.min(f64::from(category.uplink_block_bits) / 1e3);
            assert!(
                rates[0] > 0.88 * down && rates[0] <= down,
                "category {number}, {layers} layers: {rates:?}, {down}"
            );
            assert!(rates[1] > 0.90 * up && rates[1] <= up, "category {number}, {layers} layers: {rates:?}, {up}");
        }
    }
}

#[test]
fn a_phone_without_64qam_sends_less() {
    let [_, with] = saturated(Category::UNLIMITED, 1).0;
    let [_, without] = saturated(CATEGORIES[5], 1).0;
    assert!(with > 65.0 && (45.0..51.1).contains(&without), "{with} {without}");
}
