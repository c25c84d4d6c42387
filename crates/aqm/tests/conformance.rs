//! Every discipline passes the suite of `testkit::queue`.

use aqm::{AnyQueue, Config, codel, drop_tail, fq, fq_codel, pfifo_fast};
use bolero::check;
use testkit::queue::{Op, Promise, conforms};
use units::Span;

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
        Config::DropTail(drop_tail::Config { bytes: Some(50_000), ..Default::default() }),
        Promise { bytes: Some(50_000), ..Promise::default() };
    drop_tail_that_holds_nothing_conforms:
        Config::DropTail(drop_tail::Config { packets: Some(0), ..Default::default() }),
        Promise { packets: Some(0), ..Promise::default() };
    head_drop_conforms:
        Config::DropTail(drop_tail::Config {
            packets: Some(20), bytes: Some(50_000), victim: drop_tail::Victim::Oldest,
        }),
        Promise { packets: Some(20), bytes: Some(50_000), ..Promise::default() };
    head_drop_that_holds_nothing_conforms:
        Config::DropTail(drop_tail::Config { packets: Some(0), victim: drop_tail::Victim::Oldest, bytes: None }),
        Promise { packets: Some(0), ..Promise::default() };
    pfifo_fast_conforms:
        Config::PfifoFast(pfifo_fast::Config { packets_per_band: Some(10) }),
        Promise { packets: Some(30), ..Promise::default() };
    codel_conforms:
        Config::Codel(codel::Config { packets: Some(50), params: quick(false) }),
        Promise { packets: Some(50), control: true, ..Promise::default() };
    codel_with_ecn_conforms:
        Config::Codel(codel::Config {
            packets: None,
            params: codel::Params { ce_threshold: Some(Span::from_millis(1)), ..quick(true) },
        }),
        Promise { control: true, marks: true, ..Promise::default() };
    fq_conforms:
        Config::Fq(fq::Config { packets: Some(30), flows: 8, ..Default::default() }),
        Promise { packets: Some(30), ..Promise::default() };
    fq_without_limit_conforms:
        Config::Fq(fq::Config { packets: None, flows: 1, quantum: 0, salt: 7 }),
        Promise::default();
    fq_codel_conforms:
        Config::FqCodel(fq_codel::Config { packets: Some(100), params: quick(false), ..Default::default() }),
        Promise { packets: Some(100), control: true, ..Promise::default() };
    fq_codel_with_ecn_conforms:
        Config::FqCodel(fq_codel::Config {
            packets: None, memory: Some(200_000), flows: 4, quantum: 300, salt: 1, params: quick(true),
        }),
        Promise { bytes: Some(200_000), control: true, marks: true, ..Promise::default() };
}

/// A control law that acts within the few operations of a list.
fn quick(ecn: bool) -> codel::Params {
    codel::Params { target: Span::from_millis(1), interval: Span::from_millis(5), ecn, ..Default::default() }
}

#[test]
fn the_defaults_are_linuxs() {
    // `codel_params_init`, `codel_init`, `fq_codel_init`, `pfifo_fast` with `tx_queue_len`; Linux's `codel` does not mark.
    let params = codel::Params {
        target: Span::from_millis(5),
        interval: Span::from_millis(100),
        ecn: false,
        ce_threshold: None,
        mtu: 1_514,
    };
    assert_eq!(codel::Config::default(), codel::Config { packets: Some(1_000), params });
    let fq_codel = fq_codel::Config {
        packets: Some(10_240),
        memory: Some(33_554_432),
        flows: 1_024,
        quantum: 1_514,
        salt: 0,
        params: codel::Params { ecn: true, ..params },
    };
    assert_eq!(fq_codel::Config::default(), fq_codel);
    let fq = fq::Config { packets: Some(10_240), flows: 1_024, quantum: 1_514, salt: 0 };
    assert_eq!(fq::Config::default(), fq);
    assert_eq!(pfifo_fast::Config::default(), pfifo_fast::Config { packets_per_band: Some(1_000) });
    assert_eq!((drop_tail::Config::default().packets, drop_tail::Config::default().bytes), (None, None));
}
