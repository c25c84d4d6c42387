//! Every discipline passes the suite of `testkit::queue`.

use aqm::{AnyQueue, Config, codel, drop_tail, fq, fq_codel, pfifo_fast};
use bolero::check;
use testkit::queue::{Op, Promise, conforms};
use units::{Bytes, Span};

macro_rules! suite {
    ($($name:ident: $config:expr, $promise:expr;)*) => {$(
        #[test]
        fn $name() {
            let (config, promise): (Config, Promise) = ($config, $promise);
            check!().with_type::<Vec<Op>>().for_each(|ops| conforms(AnyQueue::new(&config), promise, ops));
        }
    )*};
}

suite! {
    drop_tail_without_limit_conforms: Config::default(), Promise::default();
    drop_tail_by_packets_conforms:
        Config::DropTail(drop_tail::Config { packets: Some(20), ..Default::default() }),
        Promise { packets: Some(20), ..Promise::default() };
    drop_tail_by_bytes_conforms:
        Config::DropTail(drop_tail::Config { bytes: Some(Bytes::new(50_000)), ..Default::default() }),
        Promise { bytes: Some(50_000), ..Promise::default() };
    drop_tail_that_holds_nothing_conforms:
        Config::DropTail(drop_tail::Config { packets: Some(0), ..Default::default() }),
        Promise { packets: Some(0), ..Promise::default() };
    head_drop_conforms:
        Config::DropTail(drop_tail::Config {
            packets: Some(20), bytes: Some(Bytes::new(50_000)), victim: drop_tail::Victim::Oldest,
        }),
        Promise { packets: Some(20), bytes: Some(50_000), ..Promise::default() };
    head_drop_that_holds_nothing_conforms:
        Config::DropTail(drop_tail::Config { packets: Some(0), victim: drop_tail::Victim::Oldest, bytes: None }),
        Promise { packets: Some(0), ..Promise::default() };
    pfifo_fast_conforms:
        Config::PfifoFast(pfifo_fast::Config { packets: 10 }),
        Promise { packets: Some(30), ..Promise::default() };
    codel_conforms:
        Config::Codel(codel::Config { packets: 50, ecn: false, ..QUICK }),
        Promise { packets: Some(50), control: true, ..Promise::default() };
    codel_with_ecn_conforms:
        Config::Codel(codel::Config { ce_threshold: Some(Span::from_millis(1)), ..QUICK }),
        Promise { control: true, marks: true, ..Promise::default() };
    fq_conforms:
        Config::Fq(fq::Config { packets: 30, queues: 8, ..Default::default() }),
        Promise { packets: Some(30), ..Promise::default() };
    fq_without_limit_conforms:
        Config::Fq(fq::Config { packets: u32::MAX, queues: 1, quantum: Bytes::ZERO, salt: 7 }),
        Promise::default();
    fq_codel_conforms:
        Config::FqCodel(fq_codel::Config {
            target: QUICK.target, interval: QUICK.interval, packets: 100, ecn: false, ..Default::default()
        }),
        Promise { packets: Some(100), control: true, ..Promise::default() };
    fq_codel_with_ecn_conforms:
        Config::FqCodel(fq_codel::Config {
            target: QUICK.target, interval: QUICK.interval, packets: u32::MAX, bytes: Bytes::new(200_000), queues: 4,
            quantum: Bytes::new(300), salt: 1, ..Default::default()
        }),
        Promise { bytes: Some(200_000), control: true, marks: true, ..Promise::default() };
}

/// A control law that acts within the few operations of a list.
const QUICK: codel::Config = codel::Config {
    target: Span::from_millis(1),
    interval: Span::from_millis(5),
    packets: u32::MAX,
    ecn: true,
    ce_threshold: None,
};

#[test]
fn the_defaults_are_linuxs() {
    // `codel_params_init`, `codel_init`, `fq_codel_init`, `pfifo_fast` with `tx_queue_len`. Linux's `codel` alone does not mark.
    let (target, interval) = (Span::from_millis(5), Span::from_millis(100));
    let codel = codel::Config { target, interval, packets: 1_000, ecn: true, ce_threshold: None };
    assert_eq!(codel::Config::default(), codel);
    let fq_codel = fq_codel::Config {
        target,
        interval,
        packets: 10_240,
        bytes: Bytes::new(33_554_432),
        queues: 1_024,
        quantum: Bytes::new(1_514),
        ecn: true,
        ce_threshold: None,
        salt: 0,
    };
    assert_eq!(fq_codel::Config::default(), fq_codel);
    let fq = fq::Config { packets: 10_240, queues: 1_024, quantum: Bytes::new(1_514), salt: 0 };
    assert_eq!(fq::Config::default(), fq);
    assert_eq!(pfifo_fast::Config::default(), pfifo_fast::Config { packets: 1_000 });
    assert_eq!(drop_tail::Config::default(), drop_tail::Config::UNLIMITED);
    let interface = drop_tail::Config { packets: Some(1_000), bytes: None, victim: drop_tail::Victim::Arriving };
    assert_eq!(Config::default(), Config::DropTail(interface));
}
