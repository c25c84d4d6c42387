//! Rows of runs: of simulations, and of emulations as far as they have them.

use crate::table::{column_of, item_of, table};
use units::{Distribution, Span};

table! {
    /// A flow's copy in one run: what it achieved and what held it back. A connection of real hosts of which the packets
    /// alone were seen is a flow too, `PROTOCOL SENDER > RECEIVER`. What is not known of a flow is empty or missing.
    pub struct FlowRow<'a> in Flows "flows" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The flow's name in the scenario.
        "" flow: str,
        /// The copy of the flow, from 0.
        "" conn: u32,
        /// The transport protocol: `tcp` or `udp`; of real hosts also `icmp`, or `ip` for any other.
        "" transport: str,
        /// The congestion control; missing for UDP, and where it is not known.
        "" cc: opt_str,
        /// The host that sends the data.
        "" from: str,
        /// The host that receives the data.
        "" to: str,
        /// When its application began.
        "s" start_s: f64,
        /// When its last data arrived, if its application ended and all was delivered.
        "s" end_s: opt_f64,
        /// Whether its application ended within the run and all was delivered.
        "" completed: bool,
        /// Start of the measured interval: the flow's start, or the end of the warm-up if that is later.
        "s" measured_from_s: f64,
        /// End of the measured interval: the last delivery if the flow completed, else the end of the run. A flow of
        /// real hosts without TCP never completes; if it was silent for the last 10 s of the run, its interval ends
        /// with its last delivery.
        "s" measured_to_s: f64,
        /// Payload that the receiving application could read in the measured interval: of TCP, what arrived in order. Data behind a
        /// hole counts once the hole is filled.
        "B" bytes: u64,
        /// `bytes` over the measured interval.
        "Mbit/s" goodput_mbps: f64,
        /// IP bytes that arrived at the receiver, headers and retransmissions included, over the measured interval.
        "Mbit/s" throughput_mbps: f64,
        /// Mean completion time of its finished transfers (table `transfers`); missing if it finished none.
        "s" completion_s: opt_f64,
        /// Smallest round-trip time seen by the sender.
        "ms" rtt_min_ms: opt_f64,
        /// 5th percentile of the round-trip time samples.
        "ms" rtt_p5_ms: opt_f64,
        /// Median of the round-trip time samples.
        "ms" rtt_p50_ms: opt_f64,
        /// Mean of the round-trip time samples.
        "ms" rtt_mean_ms: opt_f64,
        /// 95th percentile of the round-trip time samples.
        "ms" rtt_p95_ms: opt_f64,
        /// 99th percentile of the round-trip time samples.
        "ms" rtt_p99_ms: opt_f64,
        /// Largest round-trip time seen by the sender.
        "ms" rtt_max_ms: opt_f64,
        /// 5th percentile of the data packets' one-way delay.
        "ms" owd_p5_ms: opt_f64,
        /// 25th percentile of the data packets' one-way delay.
        "ms" owd_p25_ms: opt_f64,
        /// Median of the data packets' one-way delay.
        "ms" owd_p50_ms: opt_f64,
        /// 75th percentile of the data packets' one-way delay.
        "ms" owd_p75_ms: opt_f64,
        /// 95th percentile of the data packets' one-way delay.
        "ms" owd_p95_ms: opt_f64,
        /// Data segments sent, retransmissions included.
        "" segments_sent: opt_u64,
        /// Segments retransmitted for any reason: data, FIN, and SYN or SYN-ACK (`tcpi_total_retrans`).
        "" retransmitted: opt_u64,
        /// Of these, in fast recovery.
        "" retrans_fast: opt_u64,
        /// Of these, after a retransmission timeout, SYN and SYN-ACK included.
        "" retrans_rto: opt_u64,
        /// Of these, as tail loss probes.
        "" retrans_tlp: opt_u64,
        /// Of all, SYN, SYN-ACK and FIN without payload, which `segments_sent` does not count; missing if it is not known, as of a
        /// kernel's count.
        "" retrans_control: opt_u64,
        /// Retransmission timeouts, those of a SYN or SYN-ACK included (`tcpi_total_rto`).
        "" rtos: opt_u64,
        /// Congestion window reductions that were undone as spurious.
        "" undos: opt_u64,
        /// Duplicate acknowledgements that the sender received.
        "" dup_acks: opt_u64,
        /// The most of them in succession, without an acknowledgement of new data between them, since the start.
        "" max_dup_acks: opt_u64,
        /// Its packets that were marked with congestion experienced. With one vantage point, those that were marked in front of it;
        /// missing if there are none and packets could be marked behind it.
        "" ce_marks: opt_u64,
        /// Its packets that were lost on the way, in either direction. Missing if that is not known, as with one vantage point.
        "" lost_packets: opt_u64,
        /// Jitter of the datagrams' arrivals (RFC 3550, section 6.4.1), if their receiver told it.
        "ms" jitter_ms: opt_f64,
        /// Share of its connections' time in which the application had nothing to send (0 to 1). Like the other shares,
        /// it is missing if it is not known what limited the sender.
        "1" limited_app: opt_f64,
        /// Share of its connections' time in which the congestion window held the sender back (0 to 1).
        "1" limited_cwnd: opt_f64,
        /// Share of its connections' time in which the receive window held the sender back (0 to 1).
        "1" limited_rwnd: opt_f64,
        /// Share of its connections' time in which pacing held the sender back (0 to 1).
        "1" limited_pacing: opt_f64,
        /// Share of its connections' time in which a full send buffer held the sender back (0 to 1). Missing in results
        /// of earlier versions, where it is part of `limited_other`.
        "1" limited_sndbuf: opt_f64,
        /// The rest of its connections' time, such as the handshake and the queue of its own host (0 to 1).
        "1" limited_other: opt_f64,
        /// Mean congestion window of a connection over time.
        "B" mean_cwnd_bytes: opt_f64,
        /// Largest congestion window of a connection.
        "B" max_cwnd_bytes: opt_u64,
        /// Mean of a connection's bytes in flight over time.
        "B" mean_in_flight_bytes: opt_f64,
        /// Most bytes in flight of a connection. Missing, like their mean, if they are not known: without TCP's acknowledgements.
        "B" max_in_flight_bytes: opt_u64,
        /// Identifier of the GTP-U tunnel (TEID) that its data came in, the latest one; missing without a tunnel.
        "" teid: opt_u64,
    }
}

table! {
    /// A flow's copy at a sampling moment: its goodput over all its connections, and the state of the newest of them,
    /// which is zero, empty or missing while there is none and for UDP, and empty or missing if it is not known. The last row
    /// of a TCP flow is the first after everything was sent and acknowledged.
    pub struct SampleRow<'a> in Samples "samples" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The flow's name in the scenario.
        "" flow: str,
        /// The copy of the flow, from 0.
        "" conn: u32,
        /// The moment.
        "s" t_s: f64,
        /// Payload that the application could read since the previous sample, over that interval. Data behind a hole counts once
        /// the hole is filled.
        "Mbit/s" goodput_mbps: f64,
        /// IP bytes that arrived at the receiver since the previous sample, headers and retransmissions included, over that
        /// interval; missing if it is not known.
        "Mbit/s" throughput_mbps: opt_f64,
        /// Congestion window.
        "B" cwnd_bytes: opt_u64,
        /// With `mdcc`, the window of the wired domain, which is clocked by a PEP's reports.
        "B" cwnd_pep_bytes: opt_u64,
        /// With `mdcc`, the window of the whole path; missing while no PEP reports.
        "B" cwnd_e2e_bytes: opt_u64,
        /// Slow start threshold; missing while infinite.
        "B" ssthresh_bytes: opt_u64,
        /// Bytes in flight as the sender estimates them.
        "B" in_flight_bytes: opt_u64,
        /// Smoothed round-trip time; missing before the first sample.
        "ms" srtt_ms: opt_f64,
        /// The latest round-trip time sample; missing if there was none since the previous sample.
        "ms" rtt_ms: opt_f64,
        /// Mean one-way delay of the data packets that arrived since the previous sample; missing if none did.
        "ms" owd_ms: opt_f64,
        /// Its packets that were lost since the previous sample, in either direction.
        "" lost: opt_u64,
        /// Retransmission timeout.
        "ms" rto_ms: opt_f64,
        /// Pacing rate; missing if the sender does not pace.
        "Mbit/s" pacing_mbps: opt_f64,
        /// What limits the sender: `app`, `cwnd`, `rwnd`, `pacing`, `sndbuf` (the send buffer), `hostq` (the queue of
        /// its own host) or `idle`.
        "" limit: str,
        /// The sender's state, such as `slow-start` or `recovery`; `closed` without a connection.
        "" state: str,
    }
}

table! {
    /// A bucket of the round-trip time distribution of a flow's copy (see [`crate::Distribution`]).
    pub struct RttRow<'a> in Rtts "rtts" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The flow's name in the scenario.
        "" flow: str,
        /// The copy of the flow, from 0.
        "" conn: u32,
        /// The bucket's upper value.
        "ms" rtt_ms: f64,
        /// Samples in the bucket; a bucket without any is left out.
        "" count: u64,
    }
}

table! {
    /// A bucket of the distribution of the one-way delay of a flow's copy, over its data packets (see
    /// [`crate::Distribution`]).
    pub struct OwdRow<'a> in Owds "owds" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The flow's name in the scenario.
        "" flow: str,
        /// The copy of the flow, from 0.
        "" conn: u32,
        /// The bucket's upper value.
        "ms" owd_ms: f64,
        /// Packets in the bucket; a bucket without any is left out.
        "" count: u64,
    }
}

table! {
    /// A link's queue at a sampling moment.
    pub struct QueueRow<'a> in Queues "queues" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The link's name in the scenario, with its direction.
        "" link: str,
        /// The moment.
        "s" t_s: f64,
        /// Packets held.
        "" packets: u64,
        /// Bytes held.
        "B" bytes: u64,
        /// Packets dropped since the start, for any reason.
        "" dropped: u64,
        /// Packets marked with congestion experienced since the start.
        "" marked: u64,
        /// Rate at which the link carried packets since the previous sample.
        "Mbit/s" served_mbps: f64,
        /// Rate at which the link could have carried packets since the previous sample; missing for a link without a
        /// rate and after its rate was changed by hand.
        "Mbit/s" capacity_mbps: opt_f64,
        /// Mean time in the queue of the packets that left since the previous sample; missing if none left.
        "ms" sojourn_ms: opt_f64,
        /// The longest of these times; missing also where it is not measured.
        "ms" sojourn_max_ms: opt_f64,
    }
}

table! {
    /// A link's totals over a run.
    pub struct LinkRow<'a> in Links "links" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The link's name in the scenario, with its direction.
        "" link: str,
        /// Packets that arrived at the link.
        "" packets_in: u64,
        /// Packets that the link carried.
        "" packets_out: u64,
        /// IP bytes that the link carried.
        "B" bytes_out: u64,
        /// Packets dropped because a limit of the queue was reached.
        "" dropped_overflow: u64,
        /// Packets dropped by the queue's control law.
        "" dropped_control: u64,
        /// Packets lost to the link's random loss.
        "" dropped_loss: u64,
        /// Packets marked with congestion experienced.
        "" marked: u64,
        /// Bytes carried over the bytes that the link could have carried (0 to 1); 0 for a link without a rate.
        "1" utilisation: f64,
        /// Median time in the queue.
        "ms" sojourn_p50_ms: opt_f64,
        /// 95th percentile of the time in the queue.
        "ms" sojourn_p95_ms: opt_f64,
        /// 99th percentile of the time in the queue.
        "ms" sojourn_p99_ms: opt_f64,
    }
}

table! {
    /// Something that happened to a packet or a connection, on request only; and what was changed while an emulation ran.
    pub struct EventRow<'a> in Events "events" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The moment, exactly.
        "ns" t_ns: u64,
        /// What happened: `enqueue`, `dequeue`, `drop`, `mark`, `send`, `receive`, `deliver`, `state`,
        /// `command`.
        "" kind: str,
        /// The flow's name in the scenario.
        "" flow: str,
        /// The connection's number within its run.
        "" conn: u32,
        /// The link on which it happened, or that was changed; empty if at a host.
        "" link: str,
        /// The end of the flow that the packet goes to: `from` or `to`; empty if the event is not about a packet.
        "" towards: str,
        /// Sequence number as in the packet, modulo 2^32 from the connection's initial one; of UDP, the datagram's number.
        "" seq: u64,
        /// Acknowledgement number as in the packet; 0 without one.
        "" ack: u64,
        /// Bytes of the packet, IP header included.
        "B" len: u32,
        /// Further details: the reason of a drop, the state entered, or the command.
        "" detail: str,
    }
}

table! {
    /// A transfer of a flow's copy: data of a known size, or a page with all its objects.
    pub struct TransferRow<'a> in Transfers "transfers" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The flow's name in the scenario.
        "" flow: str,
        /// The copy of the flow, from 0.
        "" conn: u32,
        /// The transfer's number within the copy, from 0 in the order of their starts.
        "" index: u32,
        /// When it was requested.
        "s" start_s: f64,
        /// Time from then to its last byte; missing if it was not finished.
        "s" completion_s: opt_f64,
        /// The bytes delivered.
        "B" bytes: u64,
    }
}

table! {
    /// A UE's share of the air in one direction of one run, after the warm-up. What concerns both directions together is
    /// in the `uplink` row and 0 in the other.
    pub struct UeRow<'a> in Ues "ues" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The UE's name in the scenario.
        "" ue: str,
        /// The direction: `downlink` or `uplink`.
        "" direction: str,
        /// The time that is counted: from the end of the warm-up to the end of the run.
        "s" measured_s: f64,
        /// Transport blocks sent, each counted once however often it was retransmitted.
        "" blocks: u64,
        /// The bits of these blocks, in 10^6.
        "Mbit" mbits: f64,
        /// HARQ retransmissions: transmissions of a block beyond its first.
        "" retransmissions: u64,
        /// Share of the blocks whose first transmission was not decoded (0 to 1).
        "1" block_error_rate: f64,
        /// Blocks that HARQ gave up and left to RLC.
        "" residual_errors: u64,
        /// Resource blocks (PRB, each for one TTI or slot) that it was given, retransmissions included.
        "" prbs: u64,
        /// `prbs` over all resource blocks of the carrier in the measured time (0 to 1); missing if it is not known.
        "1" utilisation: opt_f64,
        /// Bytes of the blocks that carried nothing.
        "B" padding_bytes: u64,
        /// Blocks with room left while packets waited above PDCP and RLC.
        "" starved_blocks: u64,
        /// PDUs that RLC sent again, whole or in segments.
        "" rlc_retx_pdus: u64,
        /// The bytes of these PDUs.
        "B" rlc_retx_bytes: u64,
        /// Scheduling requests sent; both directions together.
        "" scheduling_requests: u64,
        /// Random accesses because scheduling requests went unanswered; both directions together.
        "" random_accesses: u64,
        /// Handovers that reached their target; both directions together.
        "" handovers: u64,
        /// Handovers that did not reach their target; both directions together.
        "" handover_failures: u64,
        /// Radio links lost; both directions together.
        "" link_failures: u64,
        /// Share of the measured time in which the UE slept (0 to 1), by discontinuous reception; the same in both directions.
        "1" asleep: f64,
        /// Mean time of the delivered packets outside the radio: before they reached the cell (downlink), or from the
        /// cell to their destination (uplink); 0 if none was delivered.
        "ms" core_ms: f64,
        /// Mean time of the delivered packets from their arrival at the cell (downlink) or the host (uplink) until
        /// their first byte was sent over the air; 0 if none was delivered.
        "ms" queue_ms: f64,
        /// Mean time from then until their last byte was sent: segmentation and scheduling; 0 if none was delivered.
        "ms" air_ms: f64,
        /// Mean time from then until their last byte was decoded: HARQ and RLC's retransmissions; 0 if none was
        /// delivered.
        "ms" harq_ms: f64,
        /// Mean time from then until delivery: the wait in RLC for missing earlier data; 0 if none was delivered.
        "ms" rlc_ms: f64,
        /// Packets delivered, over which the means above are taken.
        "" packets: u64,
        /// Time that is covered by the cells' reports on the UE to the proxy; in the downlink's row.
        "s" reported_s: f64,
        /// Bytes of these reports, lost ones included, as the JSON that `ranway rnis` sends, without the overhead of
        /// transports; in the downlink's row.
        "B" report_bytes: u64,
    }
}

table! {
    /// A UE at a sampling moment: its measurements, its grants and its queues.
    pub struct RadioRow<'a> in Radio "radio" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The UE's name in the scenario.
        "" ue: str,
        /// The moment.
        "s" t_s: f64,
        /// The serving cell's name in the scenario; empty while none serves.
        "" cell: str,
        /// Reference signal received power of the serving cell, or the last that served.
        "dBm" rsrp_dbm: f64,
        /// Reference signal received quality of the same cell.
        "dB" rsrq_db: f64,
        /// Signal to interference and noise of the downlink; missing while no cell serves.
        "dB" sinr_db: opt_f64,
        /// The latest wideband channel quality indicator that the cell has (0 to 15).
        "" cqi: u32,
        /// Mean modulation and coding scheme of the downlink transmissions since the previous sample; missing if there
        /// were none.
        "" dl_mcs: opt_f64,
        /// Mean modulation and coding scheme of the uplink transmissions since the previous sample; missing if there
        /// were none.
        "" ul_mcs: opt_f64,
        /// Bits of the downlink transport blocks first sent since the previous sample, over that interval.
        "Mbit/s" dl_mbps: f64,
        /// Bits of the uplink transport blocks first sent since the previous sample, over that interval.
        "Mbit/s" ul_mbps: f64,
        /// Share of the resource blocks of its downlink carriers that it was given since the previous sample (0 to 1);
        /// missing if it is not known.
        "1" dl_prbs: opt_f64,
        /// Share of the uplink carrier's resource blocks that it was given since the previous sample (0 to 1).
        "1" ul_prbs: f64,
        /// The same as a share of all downlink carriers of the cell, whether the UE receives them or not, so that the
        /// shares of the cell's UEs add up. Blocks that another cell gave it before a handover do not count. Missing if
        /// it is not known.
        "1" dl_cell_prbs: opt_f64,
        /// Bytes that wait for it in the base station (PDCP and RLC); missing if they are not known.
        "B" dl_queue_bytes: opt_u64,
        /// Bytes that wait in its modem (PDCP and RLC).
        "B" ul_queue_bytes: u64,
        /// Bytes that wait in its host, before the modem.
        "B" host_queue_bytes: u64,
        /// Bytes that wait for it above the base station's PDCP and RLC, if there is a queue there.
        "B" dl_above_bytes: u64,
        /// Bytes that byte queue limits admit to PDCP and RLC of the base station.
        "B" dl_limit_bytes: opt_u64,
        /// Bytes that byte queue limits admit to the modem.
        "B" ul_limit_bytes: opt_u64,
        /// HARQ retransmissions since the previous sample, both directions together.
        "" harq_retx: u64,
        /// Of the downlink transport blocks first sent since the previous sample, the share that was not decoded at
        /// once (0 to 1); missing if there were none.
        "1" dl_bler: opt_f64,
        /// The same for the uplink.
        "1" ul_bler: opt_f64,
        /// Bytes of packets that PDCP and RLC of the base station hold for it: those that wait and, in AM, those that
        /// were sent and are not acknowledged.
        "B" dl_buffer_bytes: u64,
        /// The same for its modem.
        "B" ul_buffer_bytes: u64,
        /// Whether it has line of sight to the serving cell, or the last that served; true for channels that do not
        /// distinguish.
        "" los: bool,
        /// The beam of that cell's antenna array; missing without an array at either end.
        "" cell_beam: opt_u64,
        /// The beam of its own antenna array; missing without an array at either end.
        "" ue_beam: opt_u64,
        /// Loss by blockers between it and that cell.
        "dB" blocked_db: f64,
    }
}

table! {
    /// Something that happened to a UE's connection to the cells.
    pub struct MobilityRow<'a> in Mobility "mobility" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The moment.
        "s" t_s: f64,
        /// The UE's name in the scenario; the network interface of a real modem.
        "" ue: str,
        /// What happened: `triggered` (event A3 has triggered and the UE sends a report), `preparing` (its cell has the report
        /// and prepares a handover), `left` (the UE has the command and leaves its cell), `connected` (a cell serves it
        /// again), `failed` (the target was not reached before T304 ended), `link-lost`, `command-lost` (RLC gave the command
        /// up); of a real modem, `changed` (it was found in another cell than before).
        "" event: str,
        /// The cell concerned: the target, or the one that it connected to or lost; empty if there is none.
        "" cell: str,
        /// For `connected`, the time for which no cell served it; missing for other events.
        "ms" interruption_ms: opt_f64,
    }
}

table! {
    /// Something that was changed from outside while an emulation ran (`ranway control`).
    pub struct CommandRow<'a> in Commands "commands" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The moment.
        "s" t_s: f64,
        /// What was changed: `rate`, `loss`, `outage`, `sinr`, `handover` or `load`.
        "" command: str,
        /// The link, UE or cell; empty if all links.
        "" subject: str,
        /// The new value as it is written in commands, such as `5 Mbit/s` or `off`; the duration of an outage, the target of a handover.
        "" value: str,
        /// When it ended: missing of what holds until it is changed again.
        "s" until_s: opt_f64,
    }
}

table! {
    /// A transmission of a transport block. Recorded on request only.
    pub struct TransmissionRow<'a> in Transmissions "transmissions" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// When its subframe or slot began, exactly.
        "ns" t_ns: u64,
        /// The UE's name in the scenario.
        "" ue: str,
        /// The UE's radio network temporary identifier: 61 and up, in the order of the scenario.
        "" rnti: u32,
        /// The cell's name in the scenario.
        "" cell: str,
        /// The direction: `downlink` or `uplink`.
        "" direction: str,
        /// HARQ process.
        "" process: u32,
        /// 1 for the block's first transmission, 2 for the next, and so on.
        "" attempt: u32,
        /// Whether the receiver could decode the block after this transmission.
        "" decoded: bool,
        /// Index of the modulation and coding scheme.
        "" mcs: u32,
        /// Spatial layers.
        "" layers: u32,
        /// The channel quality indicator that the UE reported last; 0 in the uplink.
        "" cqi: u32,
        /// Signal to interference and noise, the linear mean over its resource blocks.
        "dB" sinr_db: f64,
        /// The first resource block.
        "" first_prb: u32,
        /// Resource blocks.
        "" prbs: u32,
        /// The block's size.
        "bit" bits: u32,
        /// Bytes of the block that carry nothing.
        "B" padding_bytes: u32,
        /// Bytes that still waited at the sender, in RLC and above it, after the block was filled.
        "B" queued_bytes: u64,
    }
}

table! {
    /// What a lightweight PEP did in one run.
    pub struct PepRow<'a> in Peps "peps" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The node where it is.
        "" node: str,
        /// Data segments that passed it.
        "" segments: u64,
        /// Bytes of the IP packets of these segments.
        "B" bytes: u64,
        /// Reports that it sent (PEP-ACKs and PEP-NACKs).
        "" reports: u64,
        /// Of these, those that named missing ranges (PEP-NACKs).
        "" nacks: u64,
        /// Bytes of the reports' IP packets.
        "B" report_bytes: u64,
        /// Reports that were due, but not sent because they would have exceeded the bytes received from the sender's
        /// side.
        "" withheld: u64,
        /// Flows that it remembered at the end.
        "" flows: u64,
        /// Flows that it forgot to make room for others.
        "" evicted: u64,
    }
}

table! {
    /// A connection that a proxy splits, at a sampling moment.
    pub struct ProxyRow<'a> in Proxies "proxies" {
        /// Point of the sweep.
        "" point: u32,
        /// Repetition of the point.
        "" run: u32,
        /// The flow's name in the scenario.
        "" flow: str,
        /// The copy of the flow, from 0.
        "" conn: u32,
        /// The UE.
        "" ue: str,
        /// The moment.
        "s" t_s: f64,
        /// RAPID's classification of the flow: `fast`, `slow` or `idle`; empty without RAPID.
        "" category: str,
        /// The payload rate that RAPID promises it.
        "Mbit/s" promised_mbps: opt_f64,
        /// The receive window of the wired leg that RAPID sets.
        "B" receive_window_bytes: opt_u64,
        /// The congestion window of the radio leg.
        "B" window_bytes: u64,
        /// Bytes in flight on the radio leg.
        "B" in_flight_bytes: u64,
        /// Bytes to the UE that the proxy holds and has not sent.
        "B" held_bytes: u64,
        /// Smoothed round-trip time of the wired leg.
        "ms" wired_rtt_ms: opt_f64,
        /// Smoothed round-trip time of the radio leg.
        "ms" radio_rtt_ms: opt_f64,
    }
}

/// A span in milliseconds, the unit of the columns.
pub fn ms(span: Span) -> f64 {
    span.as_nanos() as f64 / 1e6
}

impl FlowRow<'_> {
    /// Whether a connection of strangers was there for something else than to carry data: requests, keep-alives, the control
    /// connection of a test. One of TCP is if it carried no more than 10 kB, or less than a hundredth of what the largest flow of its
    /// point did (`most` bytes) unless something else than its application held it back.
    pub fn is_aside(&self, most: u64) -> bool {
        let is_small = self.bytes <= 10_000 && most > 10_000;
        let is_minor = self.bytes.saturating_mul(100) < most && self.limited_app.is_none_or(|share| share > 0.5);
        self.transport == "tcp" && (is_small || is_minor)
    }

    /// Data segments that were sent again: of a kernel, which tells of all together, with those of SYN and FIN.
    pub fn retransmitted_data(&self) -> Option<u64> {
        self.retransmitted.map(|all| all.saturating_sub(self.retrans_control.unwrap_or(0)))
    }

    /// The share of the data segments sent that were retransmissions (0 to 1), of TCP; missing if none were sent, or where more were
    /// retransmitted than were sent: then they were SYNs.
    pub fn retransmitted_share(&self) -> Option<f64> {
        let sent = self.segments_sent.filter(|sent| *sent > 0 && self.transport == "tcp")?;
        self.retransmitted_data().filter(|again| *again <= sent).map(|again| again as f64 / sent as f64)
    }
}

impl<'a> SampleRow<'a> {
    /// A sample of copy `conn` of `flow` at `point` for which the bytes that arrived were counted, and nothing else is known.
    pub fn counted((point, flow, conn): (u32, &'a str, u32), t_s: f64, goodput_mbps: f64) -> SampleRow<'a> {
        SampleRow {
            point,
            run: 0,
            flow,
            conn,
            t_s,
            goodput_mbps,
            throughput_mbps: None,
            cwnd_bytes: None,
            cwnd_pep_bytes: None,
            cwnd_e2e_bytes: None,
            ssthresh_bytes: None,
            in_flight_bytes: None,
            srtt_ms: None,
            rtt_ms: None,
            owd_ms: None,
            lost: None,
            rto_ms: None,
            pacing_mbps: None,
            limit: "",
            state: "",
        }
    }
}

/// The columns of [`FlowRow`] about round-trip times and one-way delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delays {
    /// Smallest round-trip time seen by the sender.
    pub rtt_min_ms: Option<f64>,
    /// 5th percentile of the round-trip time samples.
    pub rtt_p5_ms: Option<f64>,
    /// Median of the round-trip time samples.
    pub rtt_p50_ms: Option<f64>,
    /// Mean of the round-trip time samples.
    pub rtt_mean_ms: Option<f64>,
    /// 95th percentile of the round-trip time samples.
    pub rtt_p95_ms: Option<f64>,
    /// 99th percentile of the round-trip time samples.
    pub rtt_p99_ms: Option<f64>,
    /// Largest round-trip time seen by the sender.
    pub rtt_max_ms: Option<f64>,
    /// 5th percentile of the data packets' one-way delay.
    pub owd_p5_ms: Option<f64>,
    /// 25th percentile of the data packets' one-way delay.
    pub owd_p25_ms: Option<f64>,
    /// Median of the data packets' one-way delay.
    pub owd_p50_ms: Option<f64>,
    /// 75th percentile of the data packets' one-way delay.
    pub owd_p75_ms: Option<f64>,
    /// 95th percentile of the data packets' one-way delay.
    pub owd_p95_ms: Option<f64>,
}

impl Delays {
    /// Takes them from distributions.
    pub fn of(rtts: &Distribution, owds: &Distribution) -> Delays {
        let quantile = |spans: &Distribution, q| spans.quantile(q).map(ms);
        Delays {
            rtt_min_ms: rtts.min().map(ms),
            rtt_p5_ms: quantile(rtts, 0.05),
            rtt_p50_ms: quantile(rtts, 0.5),
            rtt_mean_ms: rtts.mean().map(ms),
            rtt_p95_ms: quantile(rtts, 0.95),
            rtt_p99_ms: quantile(rtts, 0.99),
            rtt_max_ms: rtts.max().map(ms),
            owd_p5_ms: quantile(owds, 0.05),
            owd_p25_ms: quantile(owds, 0.25),
            owd_p50_ms: quantile(owds, 0.5),
            owd_p75_ms: quantile(owds, 0.75),
            owd_p95_ms: quantile(owds, 0.95),
        }
    }
}
