//! `ranway measure`.

pub(crate) mod capture;
mod client;
mod limits;
mod server;
mod shown;
mod told;

pub(crate) use client::read_key;

use crate::failure::Failure;
use clap::{Args as ClapArgs, Subcommand};

/// `ranway measure`.
#[derive(ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Flows transfer data to or from the server, and every 10 ms the state of each is read from the kernel (TCP_INFO). Probes \
measure the latency before, during and after: ICMP echo (if permitted), TCP handshakes, requests to the server, and datagrams with \
a small hop limit to the routers on the path. Times of the host's own packets and these probes together tell where packets wait: \
in the host, in the modem or the radio access, or behind it. The bytes of uploads are those that the server has received.

Where ModemManager runs, the results have the serving cell, its signal and its changes on the same time axis. Nothing is read that \
tells who the subscriber is.

No privileges are needed, except for ICMP echo where net.ipv4.ping_group_range does not permit it, and CAP_NET_RAW for --pcap. \
Without it, the measurement goes on without a capture.

Examples:
  In a private network, such as a laboratory's:
  ranway measure serve --open --listen '[::]:5231'           at the server
  ranway measure 192.168.1.2                                 at the client: download, then upload, four flows each
  Over the Internet, with tokens that the server gives:
  ranway measure serve --control --listen '[::]:5231'        at the server
  ranway measure 192.0.2.1 --control http://192.0.2.1:5231   at the client
  More at the client:
  ranway measure 192.168.1.2 -d up --cc cubic,bbr -t 60s     two flows of CUBIC and two of BBR
  ranway measure 192.168.1.2 -d both --flows 1               both directions at the same time
  ranway measure 192.168.1.2 -d down --protocol throughput1 --cc bbr
  ranway measure 192.168.1.2 --modem wwan0                   with this modem's cell and signal
  ranway measure 192.168.1.2 --interface wwan0               through this interface, whatever the route
  ranway measure example.org:443 --tls                       a server with a certificate
  ranway measure 192.168.1.2 --tls --ca authority.pem        signed by a private authority
  sudo ranway measure 192.168.1.2 -d up --pcap up.pcapng     with its packets, for ranway analyse
  ranway measure 192.0.2.1 --token TOKEN --json              a server that requires a token"
)]
pub(crate) struct MeasureArgs {
    #[command(subcommand)]
    command: Option<MeasureCommand>,
    #[command(flatten)]
    client: client::ClientArgs,
}

/// The subcommands of `ranway measure`.
#[derive(Subcommand)]
enum MeasureCommand {
    /// Serve tests to clients: RMBT, ndt7 and throughput1, on one port
    Serve(Box<server::ServeArgs>),
}

pub(crate) fn run(args: &MeasureArgs) -> Result<(), Failure> {
    match &args.command {
        Some(MeasureCommand::Serve(args)) => server::run(args),
        None => client::run(&args.client),
    }
}
