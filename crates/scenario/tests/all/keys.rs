//! Each key of the reference has a value that is refused, and is told what would be valid.

const REFERENCE: &str = include_str!("../../../../docs/src/reference/scenario.md");
/// The tests that hold what wrong values are told.
const TESTS: [&str; 6] = [
    include_str!("keys.rs"),
    include_str!("errors.rs"),
    include_str!("emulation.rs"),
    include_str!("lte.rs"),
    include_str!("nr.rs"),
    include_str!("radio.rs"),
];

/// A dumbbell with a link of its own.
const WIRED: &str = "duration = \"10 s\"\ndumbbell = { rate = \"1 Mbit/s\", rtt = \"10 ms\" }\nflows = [{ name = \"f\" }]\n\
                     links = [{ name = \"l\", from = \"r1\", to = \"x\", rate = \"1 Mbit/s\" }]\n";
const LTE: &str =
    "duration = \"10 s\"\nflows = [{ name = \"f\" }]\nlte = { ues = [{ name = \"u\" }], cells = [{ name = \"c\" }] }\n";
const NR: &str =
    "duration = \"10 s\"\nflows = [{ name = \"f\" }]\nnr = { ues = [{ name = \"u\" }], cells = [{ name = \"c\" }] }\n";

/// A value, and what it is told.
type Case = (&'static str, &'static str);

const OF_WIRED: &[Case] = &[
    ("dumbbell.rtt=2000 h", "dumbbell.rtt: 2000 h is out of range: must be from 0 ns to 1000 h"),
    (
        "dumbbell.access_rate=0 bit/s",
        "dumbbell.access_rate: 0 bit/s is out of range: must be greater than 0 bit/s and at most 10000 Gbit/s",
    ),
    ("dumbbell.jitter=2000 h", "dumbbell.jitter: 2000 h is out of range: must be from 0 ns to 1000 h"),
    (
        "dumbbell.jitter={ kind = \"half-normal\", sigma = \"2000 h\" }",
        "dumbbell.jitter.sigma: 2000 h is out of range: must be from 0 ns to 1000 h",
    ),
    (
        "dumbbell.reordering={ share = 1.5, delay = \"1 ms\" }",
        "dumbbell.reordering.share: 1.5 is out of range: must be from 0 to 1",
    ),
    (
        "dumbbell.reordering={ share = 0.5, delay = \"2000 h\" }",
        "dumbbell.reordering.delay: 2000 h is out of range: must be from 0 ns to 1000 h",
    ),
    (
        "dumbbell.reordering={ share = 0.5, spread = \"2000 h\" }",
        "dumbbell.reordering.spread: 2000 h is out of range: must be from 0 ns to 1000 h",
    ),
    (
        "dumbbell.reordering={ share = 0.5 }",
        "dumbbell.reordering.delay: nothing overtakes a packet that is not delayed; set `delay` or `spread`",
    ),
    ("hosts.processing=2 s", "hosts.processing: 2 s is out of range: must be from 0 ns to 1 s"),
    (
        "hosts.processing={ kind = \"quantiles\", points = [[0, \"1 us\"]] }",
        "hosts.processing.points: the first share must be 0 and the last one 1",
    ),
    (
        "hosts.processing={ kind = \"quantiles\", points = [[0, \"9 us\"], [1, \"8 us\"]] }",
        "hosts.processing.points[1]: shares must increase, and times must not decrease",
    ),
    (
        "hosts.processing={ kind = \"quantiles\", points = [[0, \"9 us\"], [1, \"2 s\"]] }",
        "hosts.processing.points[1]: 2 s is out of range: must be from 0 ns to 1 s",
    ),
    (
        "hosts.named=[{ name = \"sendr\", processing = \"0 s\" }]",
        "hosts.named[0].name: unknown node `sendr`; did you mean `sender`?",
    ),
    (
        "flows.f.reader={ reads = \"0 s\", pauses = \"1 s\" }",
        "flows[0].reader.reads: 0 ns is out of range: must be from 10 us to 1000 h",
    ),
    (
        "flows.f.reader={ reads = \"1 s\", pauses = \"1 ns\" }",
        "flows[0].reader.pauses: 1 ns is out of range: must be from 10 us to 1000 h",
    ),
    ("dumbbell.senders=[]", "dumbbell.senders: at least one is required"),
    ("dumbbell.receivers=[]", "dumbbell.receivers: at least one is required"),
    (
        "dumbbell.receivers=[\"../a\"]",
        "dumbbell.receivers: invalid name `../a`; use 1 to 100 letters, digits, spaces, or - _ . :",
    ),
    ("dumbbell.overhead=65536 B", "dumbbell.overhead: 64 KiB is out of range: must be from 0 B to 65.535 kB"),
    (
        "dumbbell.loss={ kind = \"random\", probability = -0.1 }",
        "dumbbell.loss: -0.1 is out of range: must be from 0 to 1",
    ),
    (
        "dumbbell.loss={ kind = \"gilbert-elliott\", good_to_bad = 1.1, bad_to_good = 0.5 }",
        "dumbbell.loss.good_to_bad: 1.1 is out of range: must be from 0 to 1",
    ),
    (
        "dumbbell.loss={ kind = \"gilbert-elliott\", good_to_bad = 0.1, bad_to_good = 0.5, loss_bad = 2 }",
        "dumbbell.loss.loss_bad: 2 is out of range: must be from 0 to 1",
    ),
    (
        "dumbbell.loss={ kind = \"gilbert-elliott\", good_to_bad = 0.1, bad_to_good = 0.5, loss_good = -1 }",
        "dumbbell.loss.loss_good: -1 is out of range: must be from 0 to 1",
    ),
    (
        "dumbbell.reverse={ delay = \"2000 h\" }",
        "dumbbell.reverse.delay: 2000 h is out of range: must be from 0 ns to 1000 h",
    ),
    (
        "dumbbell.rate={ kind = \"trace\", file = \"x\", service = \"bits\" }",
        "dumbbell.rate.service: unknown value `bits`; did you mean `bytes`?",
    ),
    ("dumbbell.rate={ kind = \"trace\", file = \"\" }", "dumbbell.rate.file: a file name is required"),
    (
        "dumbbell.rate={ kind = \"synthetic\", mean = \"0 bit/s\", peak = \"1 Mbit/s\" }",
        "dumbbell.rate.mean: 0 bit/s is out of range: must be greater than 0 bit/s and at most 10000 Gbit/s",
    ),
    (
        "dumbbell.rate={ kind = \"synthetic\", mean = \"2 Mbit/s\", peak = \"1 Mbit/s\" }",
        "dumbbell.rate.peak: 1 Mbit/s is out of range: must be from 2 Mbit/s to 10000 Gbit/s",
    ),
    (
        "dumbbell.rate={ kind = \"synthetic\", mean = \"1 Mbit/s\", peak = \"2 Mbit/s\", spread = -1 }",
        "dumbbell.rate.spread: -1 is out of range: must be from 0 to 3",
    ),
    (
        "dumbbell.rate={ kind = \"synthetic\", mean = \"1 Mbit/s\", peak = \"2 Mbit/s\", correlation = \"0 s\" }",
        "dumbbell.rate.correlation: 0 ns is out of range: must be greater than 0 ns and at most 1000 h",
    ),
    (
        "dumbbell.rate={ kind = \"synthetic\", mean = \"1 Mbit/s\", peak = \"2 Mbit/s\", outage_every = \"0 s\" }",
        "dumbbell.rate.outage_every: 0 ns is out of range: must be greater than 0 ns and at most 1000 h",
    ),
    (
        "dumbbell.rate={ kind = \"synthetic\", mean = \"1 Mbit/s\", peak = \"2 Mbit/s\", outage_every = \"1 s\", outage = \"0 s\" }",
        "dumbbell.rate.outage: 0 ns is out of range: must be from 1 ms to 1000 h",
    ),
    (
        "dumbbell.queue={ kind = \"drop-tail\", bytes = \"0 B\" }",
        "dumbbell.queue.bytes: 0 B is out of range: must be greater than 0 B and at most 1000000 GB",
    ),
    (
        "dumbbell.queue={ kind = \"drop-tail\", drop = \"middle\" }",
        "dumbbell.queue.drop: unknown value `middle`; valid values are tail, head",
    ),
    (
        "dumbbell.queue={ kind = \"pfifo-fast\", packets = 0 }",
        "dumbbell.queue.packets: 0 is out of range: must be from 1 to 1000000000",
    ),
    (
        "dumbbell.queue={ kind = \"codel\", target = \"0 s\" }",
        "dumbbell.queue.target: 0 ns is out of range: must be greater than 0 ns and at most 1000 h",
    ),
    (
        "dumbbell.queue={ kind = \"codel\", interval = \"0 s\" }",
        "dumbbell.queue.interval: 0 ns is out of range: must be greater than 0 ns and at most 1000 h",
    ),
    (
        "dumbbell.queue={ kind = \"codel\", ce_threshold = \"2000 h\" }",
        "dumbbell.queue.ce_threshold: 2000 h is out of range: must be from 0 ns to 1000 h",
    ),
    (
        "dumbbell.queue={ kind = \"fq\", quantum = \"0 B\" }",
        "dumbbell.queue.quantum: 0 B is out of range: must be from 1 B to 1 MiB",
    ),
    (
        "dumbbell.queue={ kind = \"fq\", queues = 65537 }",
        "dumbbell.queue.queues: 65537 is out of range: must be from 1 to 65536",
    ),
    (
        "dumbbell.queue={ kind = \"fq-codel\", bytes = \"0 B\" }",
        "dumbbell.queue.bytes: 0 B is out of range: must be greater than 0 B and at most 1000000 GB",
    ),
    (
        "dumbbell.queue={ kind = \"fq-codel\", target = \"2000 h\" }",
        "dumbbell.queue.target: 2000 h is out of range: must be greater than 0 ns and at most 1000 h",
    ),
    ("links[0].delay=2000 h", "links[0].delay: 2000 h is out of range: must be from 0 ns to 1000 h"),
    (
        "links[0].delay={ kind = \"steps\", steps = [[\"1 s\", \"20 ms\"]] }",
        "links[0].delay.steps: the first step must be at \"0 s\"",
    ),
    (
        "links[0].delay={ kind = \"steps\", steps = [[\"0 s\", \"20 ms\"], [\"1 s\", \"0 s\"]] }",
        "links[0].delay.steps[1]: 0 ns is out of range: must be greater than 0 ns and at most 1000 h",
    ),
    (
        "links[0].delay={ kind = \"steps\", steps = [[\"0 s\", \"20 ms\"], [\"0 s\", \"30 ms\"]] }",
        "links[0].delay.steps[1]: 0 ns must be later than the step before it, 0 ns",
    ),
    ("links[0].delay={ kind = \"trace\", file = \"\" }", "links[0].delay.file: a file name is required"),
    (
        "links[0].delay={ kind = \"trace\", file = \"x.csv\", offset = \"2000 h\" }",
        "links[0].delay.offset: 2000 h is out of range: must be from 0 ns to 1000 h",
    ),
    ("links[0].jitter=2000 h", "links[0].jitter: 2000 h is out of range: must be from 0 ns to 1000 h"),
    ("links[0].pep_report_loss=0.5", "links[0].pep_report_loss: `pep_report_loss` needs a PEP; add `pep = true`"),
    ("links[0].pep_report_loss=1.5", "links[0].pep_report_loss: 1.5 is out of range: must be from 0 to 1"),
    (
        "flows[0]={ traffic = { kind = \"transfer\", size = \"1 kB\" }, count = 3, stagger = \"1 s\", stop = \"2 s\" }",
        "flows[0].stagger: the last of 3 flows would start after their stop, 2 s",
    ),
    (
        "flows[0]={ stop = \"2 s\", start_jitter = \"2001 ms\" }",
        "flows[0].start_jitter: 2.001 s may delay a start beyond the stop, 2 s",
    ),
    (
        "flows[0].traffic={ kind = \"short-flows\", interval = \"1 s\", size = { kind = \"log-normal\", mean = \"9 B\", sigma = 6 } }",
        "flows[0].traffic.size.sigma: 6 is out of range: must be from 0 to 5",
    ),
    (
        "flows[0].traffic={ kind = \"short-flows\", interval = \"1 s\", size = { kind = \"bounded-pareto\", min = \"2 B\", max = \"1 B\" } }",
        "flows[0].traffic.size.max: 1 B is less than the smallest amount, 2 B",
    ),
    (
        "flows[0].traffic={ kind = \"short-flows\", interval = \"1 s\", size = { kind = \"bounded-pareto\", min = \"1 B\", max = \"2 B\", shape = 0 } }",
        "flows[0].traffic.size.shape: 0 is out of range: must be greater than 0 and at most 100",
    ),
    ("flows[0].start_jitter=2000 h", "flows[0].start_jitter: 2000 h is out of range: must be from 0 ns to 1000 h"),
    (
        "flows[0].return_route=[\"bottlenek\"]",
        "flows[0].return_route[0]: unknown link `bottlenek`; did you mean `bottleneck`?",
    ),
    (
        "flows[0].repeat={ count = 0, every = \"1 s\" }",
        "flows[0].repeat.count: 0 is out of range: must be from 1 to 10000",
    ),
    (
        "flows[0].repeat={ count = 2, every = \"0 s\" }",
        "flows[0].repeat.every: 0 ns is out of range: must be from 1 ns to 1000 h",
    ),
    (
        "flows[0].repeat={ count = 20, every = \"1 s\" }",
        "flows[0].repeat.count: the last of 20 flows would start after the end, 10 s",
    ),
    (
        "flows[0].cc={ kind = \"scalable\", step = 0 }",
        "flows[0].cc.step: 0 is out of range: must be greater than 0 and at most 1",
    ),
    (
        "flows[0].cc={ kind = \"mdcc\", mode = \"paper\" }",
        "flows[0].cc.mode: unknown value `paper`; valid values are safe, published",
    ),
    (
        "flows[0].cc={ kind = \"scalable\", decrease = 1 }",
        "flows[0].cc.decrease: 1 is out of range: must be from 0.01 to 0.99",
    ),
    (
        "flows[0].cc={ kind = \"bbr\", linux = \"5.4\" }",
        "flows[0].cc.linux: unknown value `5.4`; valid values are 4.9, 6.1",
    ),
    ("tcp.initial_window=0", "tcp.initial_window: 0 is out of range: must be from 1 to 10000"),
    ("tcp.send_buffer=1 B", "tcp.send_buffer: 1 B is out of range: must be from 1.448 kB to 1 GiB"),
    ("tcp.linux=\"5.4\"", "tcp.linux: unknown value `5.4`; valid values are 6.1, 6.18"),
    ("tcp.max_header=100", "tcp.max_header: 100 is out of range: must be from 128 to 1024"),
    ("tcp.ecn=maybe", "tcp.ecn: expected `true` or `false`, found the string \"maybe\""),
    (
        "tcp.receive_buffer=1 TB",
        "tcp.receive_buffer: `TB` is not a unit of an amount of data: use one of GiB, GB, MiB, MB, KiB, kB, B",
    ),
    ("tcp.mms=100", "tcp.mms: unknown key; did you mean `mss`?"),
    ("tcp.window_clamp=1000 B", "tcp.window_clamp: 1 kB is out of range: must be from 1.448 kB to 1 GiB"),
    (
        "flows[0].traffic={ kind = \"transfer\", size = \"0 B\" }",
        "flows[0].traffic.size: 0 B is out of range: must be greater than 0 B and at most 1000000 GB",
    ),
    (
        "flows[0].traffic={ kind = \"short-flows\", size = { kind = \"pareto\", mean = \"1 kB\", shape = 1 }, interval = \"1 s\" }",
        "flows[0].traffic.size.shape: 1 is out of range: must be greater than 1 and at most 100",
    ),
    (
        "flows[0].traffic={ kind = \"short-flows\", size = { kind = \"exponential\", mean = \"0 B\" }, interval = \"1 s\" }",
        "flows[0].traffic.size.mean: 0 B is out of range: must be greater than 0 B and at most 1000000 GB",
    ),
    (
        "flows[0].traffic={ kind = \"short-flows\", size = \"1 kB\", interval = { kind = \"exponential\", mean = \"0 s\" } }",
        "flows[0].traffic.interval.mean: 0 ns is out of range: must be greater than 0 ns and at most 1000 h",
    ),
    (
        "flows[0].traffic={ kind = \"on-off\", on = \"0 s\", off = \"1 s\" }",
        "flows[0].traffic.on: 0 ns is out of range: must be from 10 us to 1000 h",
    ),
    (
        "flows[0].traffic={ kind = \"on-off\", on = \"1 s\", off = { kind = \"constant\", time = \"0 s\" } }",
        "flows[0].traffic.off: 0 ns is out of range: must be from 10 us to 1000 h",
    ),
    (
        "flows[0].traffic={ kind = \"steps\", steps = [[\"1 s\", \"1 Mbit/s\"]] }",
        "flows[0].traffic.steps: the first step must be at \"0 s\"",
    ),
    (
        "flows[0].traffic={ kind = \"pages\", objects = 0, object_size = \"1 kB\", think = \"1 s\" }",
        "flows[0].traffic.objects: 0 is out of range: must be from 1 to 10000",
    ),
    (
        "flows[0].traffic={ kind = \"pages\", objects = 1, object_size = \"0 B\", think = \"1 s\" }",
        "flows[0].traffic.object_size: 0 B is out of range: must be greater than 0 B and at most 1000000 GB",
    ),
    (
        "flows[0].traffic={ kind = \"pages\", objects = 1, object_size = \"1 kB\", think = \"2000 h\" }",
        "flows[0].traffic.think: 2000 h is out of range: must be from 0 ns to 1000 h",
    ),
    (
        "flows[0].traffic={ kind = \"pages\", objects = 1, object_size = \"1 kB\", think = \"1 s\", connections = 0 }",
        "flows[0].traffic.connections: 0 is out of range: must be from 1 to 1000",
    ),
    (
        "flows[0].traffic={ kind = \"pages\", objects = 1, object_size = \"1 kB\", think = \"1 s\", request = \"0 B\" }",
        "flows[0].traffic.request: 0 B is out of range: must be greater than 0 B and at most 1000000 GB",
    ),
    (
        "flows[0].traffic={ kind = \"cbr\", rate = \"1 Mbit/s\", packet = \"28 B\" }",
        "flows[0].traffic.packet: 28 B is out of range: must be from 29 B to 65.535 kB",
    ),
    (
        "flows[0].traffic={ kind = \"ppbp\", burst_rate = \"0 bit/s\", mean_burst = \"1 s\", arrival_rate = 1 }",
        "flows[0].traffic.burst_rate: 0 bit/s is out of range: must be greater than 0 bit/s and at most 10000 Gbit/s",
    ),
    (
        "flows[0].traffic={ kind = \"ppbp\", burst_rate = \"1 Mbit/s\", mean_burst = \"0 s\", arrival_rate = 1 }",
        "flows[0].traffic.mean_burst: 0 ns is out of range: must be greater than 0 ns and at most 1000 h",
    ),
];

const OF_LTE: &[Case] = &[
    ("lte.s1_delay=2000 h", "lte.s1_delay: 2000 h is out of range: must be from 0 ns to 1000 h"),
    (
        "lte.server_rate=0 bit/s",
        "lte.server_rate: 0 bit/s is out of range: must be greater than 0 bit/s and at most 10000 Gbit/s",
    ),
    ("lte.pep_at=cells", "lte.pep_at: `pep_at` needs a PEP; add `pep = true`"),
    ("lte.server_loss=1.5", "lte.server_loss: 1.5 is out of range: must be from 0 to 1"),
    ("lte.pep_report_loss=0.5", "lte.pep_report_loss: `pep_report_loss` needs a PEP; add `pep = true`"),
    ("lte.handover.q_out_db=-51", "lte.handover.q_out_db: -51 is out of range: must be from -50 to 50"),
    ("lte.proxy={ tick = \"2 s\" }", "lte.proxy.tick: 2 s is out of range: must be from 62.5 us to 1 s"),
    ("lte.proxy={ buffer = \"1 kB\" }", "lte.proxy.buffer: 1 kB is out of range: must be from 64 KiB to 1 GiB"),
    (
        "lte.proxy={ reports = { delay = \"11 s\" } }",
        "lte.proxy.reports.delay: 11 s is out of range: must be from 0 ns to 10 s",
    ),
    ("lte.proxy={ reports = { factor = 0 } }", "lte.proxy.reports.factor: 0 is out of range: must be from 0.01 to 100"),
    (
        "lte.proxy={ policy = { kind = \"published\", slow_threshold = 2 } }",
        "lte.proxy.policy.slow_threshold: 2 is out of range: must be from 0 to 1",
    ),
    (
        "lte.proxy={ policy = { kind = \"published\", elements = 157 } }",
        "lte.proxy.policy.elements: 157 is out of range: must be from 1 to 156",
    ),
    (
        "lte.proxy={ policy = { kind = \"best\", radio_target = \"2 s\" } }",
        "lte.proxy.policy.radio_target: 2 s is out of range: must be from 1 ms to 1 s",
    ),
    (
        "lte.proxy={ policy = { kind = \"best\", proxy_target = \"2 s\" } }",
        "lte.proxy.policy.proxy_target: 2 s is out of range: must be from 0 ns to 1 s",
    ),
    ("lte.mac.assignments=1001", "lte.mac.assignments: 1001 is out of range: must be from 2 to 1000"),
    ("lte.mac.fairness=1 ms", "lte.mac.fairness: 1 ms is out of range: must be from 2 ms to 10 s"),
    ("lte.mac.cqi=block", "lte.mac.cqi: unknown value `block`; valid values are carrier, worst-group"),
    (
        "lte.cells[0].scheduler=fifo",
        "lte.cells[0].scheduler: unknown value `fifo`; valid values are round-robin, proportional-fair, max-throughput",
    ),
    (
        "lte.cells[0].uplink_scheduler=fifo",
        "lte.cells[0].uplink_scheduler: unknown value `fifo`; valid values are round-robin, proportional-fair, max-throughput",
    ),
    (
        "lte.ues[0].bearer.rlc={ kind = \"am\", t_status_prohibit = \"200 s\" }",
        "lte.ues[0].bearer.rlc.t_status_prohibit: 200 s is out of range: must be from 0 ns to 100 s",
    ),
    (
        "lte.ues[0].modem_limit={ kind = \"bql\", min = \"2 kB\", max = \"1 kB\" }",
        "lte.ues[0].modem_limit.min: 2 kB is out of range: must be from 0 B to 1 kB",
    ),
    (
        "lte.ues[0].modem_limit={ kind = \"bql\", max = \"0 B\" }",
        "lte.ues[0].modem_limit.max: 0 B is out of range: must be greater than 0 B and at most 1000000 GB",
    ),
    (
        "lte.ues[0].modem_limit={ kind = \"bql\", hold = \"0 s\" }",
        "lte.ues[0].modem_limit.hold: 0 ns is out of range: must be greater than 0 ns and at most 1000 h",
    ),
    (
        "lte.ues[0].modem_limit={ kind = \"dyn-rlc\", target = \"0 s\" }",
        "lte.ues[0].modem_limit.target: 0 ns is out of range: must be from 1 ms to 100 s",
    ),
    (
        "lte.ues[0].modem_limit={ kind = \"dyn-rlc\", interval = \"0 s\" }",
        "lte.ues[0].modem_limit.interval: 0 ns is out of range: must be from 1 ms to 100 s",
    ),
    (
        "lte.ues[0].modem_limit={ kind = \"dyn-rlc\", min = 0 }",
        "lte.ues[0].modem_limit.min: 0 is out of range: must be from 1 to 333",
    ),
    (
        "lte.ues[0].bearer={ above = { limit = { kind = \"bql\", completed = \"received\" } } }",
        "lte.ues[0].bearer.above.limit.completed: unknown value `received`; valid values are sent, acknowledged",
    ),
    (
        "lte.ues[0].bearer={ above = { queue = { kind = \"fq-codel\", target = \"0 s\" } } }",
        "lte.ues[0].bearer.above.queue.target: 0 ns is out of range: must be greater than 0 ns and at most 1000 h",
    ),
    (
        "lte.ues[0].bearer={ above = {}, queue = \"codel\" }",
        "lte.ues[0].bearer.queue: with `above`, RLC's buffer must be a `drop-tail` queue that drops arriving packets (`drop = \"tail\"`)",
    ),
    ("lte.ues[0].modem_full=keep", "lte.ues[0].modem_full: unknown value `keep`; valid values are wait, drop"),
    (
        "lte.ues[0].host_queue={ kind = \"pfifo-fast\", packets = 0 }",
        "lte.ues[0].host_queue.packets: 0 is out of range: must be from 1 to 1000000000",
    ),
    ("lte.ues[0].modem=0 B", "lte.ues[0].modem: 0 B is out of range: must be greater than 0 B and at most 1000000 GB"),
    (
        "lte.ues[0].bearer.queue={ kind = \"drop-tail\", bytes = \"1 B\" }",
        "lte.ues[0].bearer.queue.bytes: 1 B is too small for a packet of 1.5 kB: must be at least 1.5 kB",
    ),
    (
        "lte.ues[0].bearer.nr.buffer=1 kB",
        "lte.ues[0].bearer.nr.buffer: 1 kB is too small for a packet of 1.5 kB: must be at least 1.5 kB",
    ),
];

const OF_NR: &[Case] = &[
    ("nr.n3_delay=2000 h", "nr.n3_delay: 2000 h is out of range: must be from 0 ns to 1000 h"),
    (
        "nr.n3_rate=0 bit/s",
        "nr.n3_rate: 0 bit/s is out of range: must be greater than 0 bit/s and at most 10000 Gbit/s",
    ),
    (
        "nr.server_loss={ kind = \"gilbert-elliott\", good_to_bad = 2, bad_to_good = 0.5 }",
        "nr.server_loss.good_to_bad: 2 is out of range: must be from 0 to 1",
    ),
    ("nr.server_delay=2000 h", "nr.server_delay: 2000 h is out of range: must be from 0 ns to 1000 h"),
    ("nr.servers=[]", "nr.servers: at least one is required"),
    ("nr.cells=[]", "nr.cells: at least one is required"),
    ("nr.penetration=walls", "nr.penetration: unknown value `walls`; valid values are materials, below-6-ghz"),
    ("nr.mcs_table=512qam", "nr.mcs_table: unknown value `512qam`; valid values are 64qam, 256qam, low-rate, 1024qam"),
    (
        "nr.uplink_mcs_table=512qam",
        "nr.uplink_mcs_table: unknown value `512qam`; valid values are 64qam, 256qam, low-rate, 1024qam",
    ),
    ("nr.duplex=half", "nr.duplex: unknown value `half`; valid values are fdd, tdd, flexible"),
    (
        "nr.duplex={ kind = \"tdd\", downlink_symbols = 14 }",
        "nr.duplex.downlink_symbols: 14 is out of range: must be from 0 to 13",
    ),
    (
        "nr.duplex={ kind = \"tdd\", uplink_symbols = 14, downlink_symbols = 0 }",
        "nr.duplex.uplink_symbols: 14 is out of range: must be from 0 to 13",
    ),
    (
        "nr.secondary={ frequency_mhz = 3700, resource_blocks = 0 }",
        "nr.secondary.resource_blocks: 0 is out of range: must be from 1 to 275",
    ),
    ("nr.power_control.p0_dbm=32", "nr.power_control.p0_dbm: 32 is out of range: must be from -134 to 31"),
    ("nr.power_control.alpha=0.3", "nr.power_control.alpha: 0.3 is not one of 0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1"),
    ("nr.mac.harq_transmissions=9", "nr.mac.harq_transmissions: 9 is out of range: must be from 1 to 8"),
    ("nr.mac.k2=17", "nr.mac.k2: 17 is out of range: must be from 1 to 16"),
    ("nr.mac.control_symbols=4", "nr.mac.control_symbols: 4 is out of range: must be from 1 to 3"),
    ("nr.mac.uplink_control_symbols=3", "nr.mac.uplink_control_symbols: 3 is out of range: must be from 1 to 2"),
    ("nr.mac.dmrs_symbols=5", "nr.mac.dmrs_symbols: 5 is out of range: must be from 0 to 4"),
    ("nr.mac.cqi_period=0 s", "nr.mac.cqi_period: 0 ns is out of range: must be from 500 us to 100 s"),
    ("nr.mac.cqi=block", "nr.mac.cqi: unknown value `block`; valid values are carrier, worst-group"),
    ("nr.mac.outer_loop_db=11", "nr.mac.outer_loop_db: 11 is out of range: must be from 0 to 10"),
    ("nr.mac.fairness=11 s", "nr.mac.fairness: 11 s is out of range: must be from 1 ms to 10 s"),
    ("nr.mac.sr_period=321 ms", "nr.mac.sr_period: 321 ms is out of range: must be from 71.428 us to 320 ms"),
    ("nr.mac.sr_prohibit=8", "nr.mac.sr_prohibit: 8 is out of range: must be from 0 to 7"),
    ("nr.mac.sr_maximum=65", "nr.mac.sr_maximum: 65 is out of range: must be from 4 to 64"),
    ("nr.mac.first_grant=0 B", "nr.mac.first_grant: 0 B is out of range: must be from 1 B to 100 kB"),
    ("nr.mac.bsr_period=0 s", "nr.mac.bsr_period: 0 ns is out of range: must be from 500 us to 100 s"),
    ("nr.mac.bsr_retx=0 s", "nr.mac.bsr_retx: 0 ns is out of range: must be from 1 ms to 100 s"),
    ("nr.mac.assignments=1", "nr.mac.assignments: 1 is out of range: must be from 2 to 1000"),
    ("nr.mac.configured_grant={ mcs = 29 }", "nr.mac.configured_grant.mcs: 29 is out of range: must be from 0 to 28"),
    (
        "nr.mac.configured_grant={ timer = 65 }",
        "nr.mac.configured_grant.timer: 65 is out of range: must be from 1 to 64",
    ),
    (
        "nr.buildings=[{ x = [1, 2], y = [4, 3], height = 5 }]",
        "nr.buildings[0].y: the second side, 3, must be greater than the first, 4",
    ),
    (
        "nr.buildings=[{ x = [1, 2], y = [3, 4], height = 0 }]",
        "nr.buildings[0].height: 0 is out of range: must be greater than 0 and at most 1000",
    ),
    (
        "nr.buildings=[{ x = [1, 2], y = [3, 4], height = 5, wall = \"paper\" }]",
        "nr.buildings[0].wall: unknown value `paper`; valid values are low-loss, high-loss",
    ),
    ("nr.cells[0].array={ columns = 65 }", "nr.cells[0].array.columns: 65 is out of range: must be from 1 to 64"),
    ("nr.cells[0].array={ panels = 9 }", "nr.cells[0].array.panels: 9 is out of range: must be from 1 to 8"),
    (
        "nr.cells[0].array={ azimuth_deg = 361 }",
        "nr.cells[0].array.azimuth_deg: 361 is out of range: must be from -360 to 360",
    ),
    (
        "nr.cells[0].array={ downtilt_deg = 91 }",
        "nr.cells[0].array.downtilt_deg: 91 is out of range: must be from -90 to 90",
    ),
    (
        "nr.cells[0].array={ beams = \"narrow\" }",
        "nr.cells[0].array.beams: unknown value `narrow`; valid values are ideal, codebook, oversampled",
    ),
    (
        "nr.cells[0].layout={ kind = \"row\", sites = 2, spacing_m = 9, bearing_deg = 361 }",
        "nr.cells[0].layout.bearing_deg: 361 is out of range: must be from -360 to 360",
    ),
    (
        "nr.cells[0].scheduler=fifo",
        "nr.cells[0].scheduler: unknown value `fifo`; valid values are round-robin, proportional-fair, max-throughput",
    ),
    (
        "nr.cells[0].uplink_scheduler=best",
        "nr.cells[0].uplink_scheduler: unknown value `best`; valid values are round-robin, proportional-fair, max-throughput",
    ),
    ("nr.cells[0].power_dbm=81", "nr.cells[0].power_dbm: 81 is out of range: must be from -50 to 80"),
    ("nr.cells[0].load=1.1", "nr.cells[0].load: 1.1 is out of range: must be from 0 to 1"),
    ("nr.ues[0].orientation_deg=361", "nr.ues[0].orientation_deg: 361 is out of range: must be from -360 to 360"),
    (
        "nr.ues[0].blockage={ kind = \"outdoor\", kmh = 1001 }",
        "nr.ues[0].blockage.kmh: 1001 is out of range: must be from 0 to 1000",
    ),
    (
        "nr.ues[0].blockage={ kind = \"outdoor\", blockers = -1 }",
        "nr.ues[0].blockage.blockers: expected a whole number from 0 to 255, found the number -1",
    ),
    (
        "nr.ues[0].blockage={ kind = \"indoor\", grip = \"teeth\" }",
        "nr.ues[0].blockage.grip: unknown value `teeth`; valid values are none, portrait, landscape",
    ),
    ("nr.ues[0].car=tank", "nr.ues[0].car: unknown value `tank`; valid values are plain, metallised"),
    (
        "nr.ues[0].fading={ kind = \"tdl\", profile = \"f\", delay_spread = \"30 ns\" }",
        "nr.ues[0].fading.profile: unknown value `f`; did you mean `a`?",
    ),
    (
        "nr.ues[0].fading={ kind = \"tdla30\", kmh = -1 }",
        "nr.ues[0].fading.kmh: -1 is out of range: must be from 0 to 1000",
    ),
    (
        "nr.ues[0].channel={ kind = \"umi\", sight = \"maybe\" }",
        "nr.ues[0].channel.sight: unknown value `maybe`; valid values are los, nlos, buildings, random",
    ),
    (
        "nr.ues[0].channel={ kind = \"inh\", office = \"home\" }",
        "nr.ues[0].channel.office: unknown value `home`; valid values are mixed, open",
    ),
    ("nr.ues[0].bearer.nr.rlc={ kind = \"um\", sn = 18 }", "nr.ues[0].bearer.nr.rlc.sn: 18 is not one of 6, 12"),
    (
        "nr.ues[0].bearer.nr.rlc={ kind = \"um\", t_reassembly = \"200 s\" }",
        "nr.ues[0].bearer.nr.rlc.t_reassembly: 200 s is out of range: must be from 0 ns to 100 s",
    ),
    (
        "nr.ues[0].bearer.nr.rlc={ kind = \"am\", t_poll_retransmit = \"0 s\" }",
        "nr.ues[0].bearer.nr.rlc.t_poll_retransmit: 0 ns is out of range: must be from 1 ms to 100 s",
    ),
    (
        "nr.ues[0].bearer.nr.rlc={ kind = \"am\", t_status_prohibit = \"200 s\" }",
        "nr.ues[0].bearer.nr.rlc.t_status_prohibit: 200 s is out of range: must be from 0 ns to 100 s",
    ),
    (
        "nr.ues[0].bearer.nr.rlc={ kind = \"am\", poll_pdu = 0 }",
        "nr.ues[0].bearer.nr.rlc.poll_pdu: 0 is out of range: must be from 1 to 65536",
    ),
    (
        "nr.ues[0].bearer.nr.rlc={ kind = \"am\", poll_byte = \"0 B\" }",
        "nr.ues[0].bearer.nr.rlc.poll_byte: 0 B is out of range: must be from 1 B to 40 MB",
    ),
    (
        "nr.ues[0].bearer.nr.rlc={ kind = \"am\", max_retx = 0 }",
        "nr.ues[0].bearer.nr.rlc.max_retx: 0 is out of range: must be from 1 to 32",
    ),
    (
        "nr.ues[0].bearer.nr.t_reordering=200 s",
        "nr.ues[0].bearer.nr.t_reordering: 200 s is out of range: must be from 0 ns to 100 s",
    ),
    (
        "nr.ues[0].mobility={ kind = \"disc\", centre = [0, 2e6, 0], radius_m = 1 }",
        "nr.ues[0].mobility.centre[1]: 2000000 is out of range: must be from -1000000 to 1000000",
    ),
    (
        "nr.ues[0].mobility={ kind = \"streets\", x = [0, 9], y = [0, 9], block_m = 3, height = 1001 }",
        "nr.ues[0].mobility.height: 1001 is out of range: must be from 0 to 1000",
    ),
    (
        "nr.ues[0].mobility={ kind = \"random-waypoint\", x = [0, 9], y = [0, 9], kmh = [5, 4] }",
        "nr.ues[0].mobility.kmh: the greatest speed, 4, must not be less than the least, 5",
    ),
    (
        "nr.ues[0].mobility={ kind = \"random-waypoint\", x = [0, 9], y = [0, 9], kmh = [4, 5], pause = \"2000 h\" }",
        "nr.ues[0].mobility.pause: 2000 h is out of range: must be from 0 ns to 1000 h",
    ),
    (
        "nr.ues[0].mobility={ kind = \"manhattan\", x = [0, 9], y = [0, 9], block_m = 3, kmh = [5, 5], turn = 1.5 }",
        "nr.ues[0].mobility.turn: 1.5 is out of range: must be from 0 to 1",
    ),
    ("nr.lte={ mac = { sr_period = 3 } }", "nr.lte.mac.sr_period: 3 is not one of 1, 2, 5, 10, 20, 40, 80"),
];

/// Returns what wrong values are told otherwise.
fn told_otherwise(base: &str, cases: &[(String, String)]) -> String {
    let mut wrong = String::new();
    crate::common::load(&[("s", base)], &[]).expect("without the value it is valid");
    for (value, message) in cases {
        let told = crate::common::load(&[("s", base)], &[value]).map_or_else(|told| told, |_| "accepted".to_owned());
        let told = told.strip_prefix(&format!("--set {value}: ")).unwrap_or(&told);
        // Some have consequences: a network without hosts has no place for flows.
        if told.lines().next() != Some(message) {
            wrong += &format!("{value}: {told}\n    not {message}\n");
        }
    }
    wrong
}

#[test]
fn each_wrong_value_is_told_what_would_be_valid() {
    for (base, cases) in [(WIRED, OF_WIRED), (LTE, OF_LTE), (NR, OF_NR)] {
        let cases: Vec<_> = cases.iter().map(|(value, message)| ((*value).to_owned(), (*message).to_owned())).collect();
        let wrong = told_otherwise(base, &cases);
        assert!(wrong.is_empty(), "{wrong}");
    }
}

#[test]
fn each_wrong_value_is_told_the_same_in_either_form() {
    for (base, cases, table, carriers) in
        [(LTE, OF_LTE, "lte", &crate::radio::LTE[..]), (NR, OF_NR, "nr", &crate::radio::NR[..])]
    {
        let base = base.replace(&format!("{table} = {{"), &format!("radio = {{ carriers = {{ {table} = {{}} }},"));
        let path = |text: &str| {
            let Some(rest) = text.strip_prefix(&format!("{table}.")) else { return text.to_owned() };
            let key = rest.split(['.', '[', '=', ':']).next().unwrap_or_default();
            match key.strip_prefix(if table == "lte" { "s1" } else { "n3" }) {
                Some(_) => format!("radio.core{}", &rest[2..]),
                None if table == "nr" && key == "lte" => format!("radio.carriers.{rest}"),
                None if carriers.contains(&key) => format!("radio.carriers.{table}.{rest}"),
                None => format!("radio.{rest}"),
            }
        };
        let cases: Vec<_> = cases.iter().map(|(value, message)| (path(value), path(message))).collect();
        let wrong = told_otherwise(&base, &cases);
        assert!(wrong.is_empty(), "{wrong}");
    }
}

// Rows of tables, as "| `key` | type | ...", and keys of variants, as "    - `key` (type, default): ...".
/// The keys of the reference with their types.
fn keys() -> Vec<(&'static str, &'static str)> {
    let of = |line: &'static str| {
        if let Some(row) = line.strip_prefix("| `") {
            let (key, row) = row.split_once("` | ")?;
            return Some((key, row.split_once(" | ")?.0));
        }
        let (key, item) = line.strip_prefix("    - `")?.split_once("` (")?;
        Some((key, item.split([',', ')']).next()?))
    };
    REFERENCE.lines().filter_map(of).collect()
}

#[test]
fn each_key_that_takes_a_number_has_a_value_that_is_refused() {
    let keys = keys();
    let numbers = keys.iter().filter(|(_, of)| ["number", "whole number", "time", "amount", "rate"].contains(of));
    // A bare number is a loss's probability, and is told under `loss`. A message names the key: `nr.mac.k2: 17 is ...`, `...kmh[0]: ...`.
    let is_refused = |key: &str| {
        let named = [format!(".{key}: "), format!(".{key}["), format!(" {key}: ")];
        TESTS.iter().any(|test| named.iter().any(|name| test.contains(name)))
    };
    let missing: Vec<&str> =
        numbers.clone().map(|(key, _)| *key).filter(|key| *key != "probability" && !is_refused(key)).collect();
    assert!(numbers.count() > 150 && missing.is_empty(), "no test refuses a value of {missing:?}");
}

#[test]
fn a_fault_of_the_table_tcp_is_told_once_however_many_flows_have_it() {
    let base = WIRED
        .replace("[{ name = \"f\" }]", "[{ name = \"f\" }, { name = \"g\", tcp = { mss = 9 } }, { name = \"h\" }]");
    let told = crate::common::load(&[("s", &base)], &["tcp.initial_window=0"]).expect_err("both are wrong");
    let expected = "--set tcp.initial_window=0: tcp.initial_window: 0 is out of range: must be from 1 to 10000\n\
                    s:3:54: flows[1].tcp.mss: 9 is out of range: must be from 64 to 65483";
    assert_eq!(told, expected);
}
