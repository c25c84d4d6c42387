//! Builds applications and the settings of endpoints.

use crate::error::Error;
use cc::Random;
use des::Streams;
use rand_xoshiro::rand_core::Rng;
use scenario::{Flow, Gap, Size, TcpLinux, Traffic};
use units::{Span, Time};

/// An endpoint's settings.
pub(crate) fn tcp(of: &scenario::Tcp) -> tcp::Config {
    let receive_buffer = of.receive_buffer.get().min(u32::MAX.into()) as u32;
    let default = tcp::Config::default();
    tcp::Config {
        kernel: match of.linux {
            TcpLinux::V6_1 => tcp::Kernel::V6_1,
            TcpLinux::V6_18 => tcp::Kernel::V6_18,
        },
        // The scenario gives the payload of a full segment, the option counts the timestamps in.
        mss: of.mss as u16 + 12,
        ecn: of.ecn,
        receive_buffer: default.receive_buffer.min(receive_buffer),
        receive_buffer_max: receive_buffer,
        window_clamp: of.window_clamp.map(|c| c.get().min(u32::MAX.into()) as u32),
        delayed_ack: of.delayed_ack,
        slow_start_after_idle: of.slow_start_after_idle,
        send_buffer: if of.send_autotuning {
            tcp::SendBuffer::Growing(of.send_buffer.get())
        } else {
            tcp::SendBuffer::Fixed(of.send_buffer.get())
        },
        max_header: of.max_header,
        pacing: match of.pacing {
            None => tcp::Pacing::AsAsked,
            Some(true) => tcp::Pacing::Always,
            Some(false) => tcp::Pacing::Never,
        },
        tso: of.tso,
        rto_min: of.min_rto,
        ..default
    }
}

/// A moment up to `width` later, equally likely each.
pub(crate) fn jitter(width: Span, random: &mut Random) -> Span {
    width.mul_div(random.next_u64() >> 32, 1 << 32)
}

/// The application of a flow.
pub(crate) fn application(flow: &Flow) -> traffic::Config {
    match &flow.traffic {
        Traffic::Bulk => traffic::Config::Bulk,
        Traffic::Transfer { size } => traffic::Config::Transfer { bytes: *size },
        Traffic::ShortFlows { size: of, interval, count } => {
            traffic::Config::ShortFlows { size: size(of), gap: traffic::Gap::Every(length(interval)), count: *count }
        }
        Traffic::OnOff { on, off, rate } => {
            traffic::Config::OnOff { rate: *rate, write: flow.tcp.mss, on: length(on), off: length(off) }
        }
        Traffic::Steps { steps } => traffic::Config::Steps { steps: steps.clone(), write: flow.tcp.mss },
        Traffic::Pages { objects, object_size, connections, request, think, count } => traffic::Config::Pages {
            connections: *connections,
            request: *request,
            objects: vec![size(object_size); *objects as usize],
            think: length(think),
            count: *count,
        },
        Traffic::Cbr { rate, packet } => traffic::Config::Cbr { rate: *rate, packet: packet.get() as u32 },
        Traffic::Ppbp { burst_rate, mean_burst, arrival_rate, hurst, packet } => traffic::Config::Ppbp {
            bursts_per_s: *arrival_rate,
            burst: *mean_burst,
            hurst: *hurst,
            rate: *burst_rate,
            packet: packet.get() as u32,
        },
    }
}

/// Whether the application of a flow can run with its parameters.
pub(crate) fn check_application(flow: &Flow) -> Result<(), Error> {
    let app = traffic::App::new(&application(flow), Time::ZERO, None, Streams::new(0, 0).named("check"));
    app.map(drop).map_err(|e| Error::Flow { flow: flow.name.clone(), what: e.to_string() })
}

fn size(size: &Size) -> traffic::Size {
    match *size {
        Size::Constant { size } => traffic::Size::Fixed(size),
        Size::Exponential { mean } => traffic::Size::Exponential { mean },
        Size::Pareto { mean, shape } => traffic::Size::Pareto { mean, shape },
    }
}

fn length(gap: &Gap) -> traffic::Length {
    match *gap {
        Gap::Constant { time } => traffic::Length::Fixed(time),
        Gap::Exponential { mean } => traffic::Length::Exponential { mean },
        Gap::Pareto { mean, shape } => traffic::Length::Pareto { mean, shape },
    }
}
