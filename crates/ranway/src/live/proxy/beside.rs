//! What a proxy has beside its connections: metrics, a page, a log, and reports for RAPID.

use super::args::{ProxyArgs, refusal};
use crate::live::dashboard::untitled;
use crate::{failure::Failure, terminal};
use rapid::Rapid;
use services::Log;
use services::MetricsListener;
use services::dashboard::Dashboard;
use services::proxy::{ExportSettings, Governor, Inbox, LogSettings, Notice, Proxy, RadioWindows};
use services::rnis::Follower;
use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// What a proxy has beside its connections.
pub(super) struct Beside {
    metrics: Option<MetricsListener>,
    pub(super) metrics_at: Option<SocketAddr>,
    pub(super) feed: Option<Feed>,
    pub(super) governor: Option<Governor>,
    /// Why RAPID has no congestion windows, if it has none.
    pub(super) without: Option<ebpf::Error>,
    pub(super) dashboard: Option<Dashboard>,
}

impl Beside {
    /// Checks what a process that takes over can open only later, because another one has it.
    pub(super) fn check(args: &ProxyArgs) -> Result<(), Failure> {
        args.metrics.access()?;
        args.reports.as_ref().map(|input| args.broker.input(input)).transpose()?;
        if let Some(file) = &args.connection_log {
            let opened = std::fs::OpenOptions::new().append(true).create(true).open(file);
            opened.map_err(|why| Failure::Invalid(format!("{}: {why}", file.display())))?;
        }
        Ok(())
    }

    /// Opens everything. `failed` decides about what cannot be opened: without an error, the proxy goes on without it.
    pub(super) fn open(args: &ProxyArgs, failed: impl Fn(Failure) -> Result<(), Failure>) -> Result<Beside, Failure> {
        let metrics = unless(args.metrics.listen(), &failed)?;
        let feed = unless(Feed::open(args), &failed)?;
        let (governor, without) = governor(args, feed.as_ref());
        let title = || untitled(format!("Proxy from {} to {}", args.wan.join(", "), args.ran.join(", ")));
        // The addresses of UEs are nobody else's business.
        let dashboard = args.dashboard.start("proxy", title, args.quiet, |options| options.is_private = true);
        let dashboard = unless(dashboard, &failed)?;
        Ok(Beside { metrics, metrics_at: None, feed, governor, without, dashboard })
    }

    /// Lets the log of connections, flow records and the metrics follow the proxy. `failed` decides as in [`Beside::open`].
    pub(super) fn attach(
        &mut self,
        args: &ProxyArgs,
        proxy: &mut Proxy,
        failed: impl Fn(Failure) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let logged = log_settings(args).map(|log| proxy.log_connections(&log)).transpose();
        logged.map_err(refusal).map(drop).or_else(&failed)?;
        proxy.export_flows(export_settings(args)).map_err(Failure::from).or_else(&failed)?;
        let served = self.metrics.take().map(|metrics| proxy.serve_metrics(metrics)).transpose();
        self.metrics_at = unless(served.map_err(Failure::from), &failed)?;
        Ok(())
    }
}

fn unless<T>(
    opened: Result<Option<T>, Failure>,
    failed: impl Fn(Failure) -> Result<(), Failure>,
) -> Result<Option<T>, Failure> {
    opened.or_else(|why| failed(why).map(|()| None))
}

/// Tells of something that a proxy with connections cannot have.
#[expect(clippy::needless_pass_by_value, reason = "it stands where `Err` does")]
pub(super) fn go_without(why: Failure) -> Result<(), Failure> {
    let why = why.message().unwrap_or_default();
    terminal::message!("error: {why}; the proxy goes on without that");
    Ok(())
}

/// Returns where connections are logged, if they are.
pub(super) fn log_settings(args: &ProxyArgs) -> Option<LogSettings> {
    let file = args.connection_log.clone()?;
    Some(LogSettings { file, size: args.connection_log_size.get(), keep: args.connection_log_files })
}

/// Returns where flow records go, if they do.
pub(super) fn export_settings(args: &ProxyArgs) -> Option<ExportSettings> {
    let refresh = Duration::from_nanos(args.ipfix_templates.as_nanos());
    Some(ExportSettings { collector: args.ipfix?, domain: args.ipfix_domain, refresh })
}

/// Reports of an input, from which a control takes them.
pub(super) struct Feed {
    inbox: Inbox,
    follower: Follower,
}

impl Feed {
    /// Opens the input of `--reports`, if there is one.
    pub(super) fn open(args: &ProxyArgs) -> Result<Option<Feed>, Failure> {
        let Some(input) = &args.reports else { return Ok(None) };
        let input = args.broker.input(input)?;
        let log = Log::new(|text| terminal::message!("{text}"));
        let inbox = Inbox::default();
        let filled = inbox.clone();
        let follower = Follower::start(input, log, move |report| filled.put(report));
        Ok(Some(Feed { inbox, follower: follower.map_err(|why| Failure::Invalid(why.to_string()))? }))
    }
}

/// Returns RAPID with the reports of `feed`, and why it has no congestion windows, if it has none.
pub(super) fn governor(args: &ProxyArgs, feed: Option<&Feed>) -> (Option<Governor>, Option<ebpf::Error>) {
    let Some(feed) = feed else { return (None, None) };
    let config = rapid::Config { policy: args.policy, tick: args.tick, ..rapid::Config::default() };
    let (windows, without) = match ebpf::rapid::Windows::load() {
        Ok(windows) => (Some(Box::new(Windows(windows)) as Box<dyn RadioWindows>), None),
        Err(why) => (None, Some(why)),
    };
    let control = Box::new(Rapid::new(config));
    let (reports, reports_socket) = (feed.inbox.clone(), feed.follower.socket_file());
    (Some(Governor { control, reports, reports_socket, ipv6_prefix: args.ipv6_prefix, windows }), without)
}

/// Says why there are no congestion windows.
pub(super) fn warn(why: Option<&ebpf::Error>) {
    if let Some(why) = why {
        terminal::message!("warning: RAPID sets no congestion windows towards UEs, only rates: {why}");
    }
}

/// The congestion windows of RAPID, in the kernel.
struct Windows(ebpf::rapid::Windows);

impl RadioWindows for Windows {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn set(&mut self, socket: BorrowedFd, segments: u32) -> io::Result<()> {
        self.0.set(socket, segments).map_err(io::Error::other)
    }

    fn clear(&mut self, socket: BorrowedFd) -> io::Result<()> {
        self.0.clear(socket).map_err(io::Error::other)
    }

    fn renew(&mut self, time: Duration) -> io::Result<()> {
        self.0.renew(time).map_err(io::Error::other)
    }
}

/// Tells the operator what the proxy has found.
pub(super) fn show(notice: Option<Notice>, quiet: bool) {
    match notice {
        Some(Notice::Failed(what)) => {
            terminal::message!("error: {what}");
        }
        Some(Notice::Repaired(what) | Notice::Doubtful(what)) if !quiet => terminal::message!("warning: {what}"),
        _ => {}
    }
}
