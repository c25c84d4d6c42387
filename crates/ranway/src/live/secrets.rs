//! Secrets of commands: from files that others cannot read, or from systemd, never from the command line.

use crate::failure::Failure;
use clap::Args as ClapArgs;
use services::rnis::{Broker, Credentials, Error, Input};
use services::{MetricsAccess, MetricsListener};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The longest token, in bytes.
const LONGEST: u64 = 1024;

/// Returns the file of a secret: the one of an option, or else the systemd credential of this name, if there is one.
pub(crate) fn file(given: Option<&Path>, credential: &str) -> Option<PathBuf> {
    given.map(Path::to_owned).or_else(|| {
        let path = Path::new(&std::env::var_os("CREDENTIALS_DIRECTORY")?).join(credential);
        path.exists().then_some(path)
    })
}

/// Where metrics are served, and who may read them.
#[derive(Clone, Debug, PartialEq, Eq, ClapArgs)]
pub(crate) struct MetricsArgs {
    /// Serve metrics for Prometheus at this address, such as 127.0.0.1:9180; beyond this machine, only with a token
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) metrics: Option<SocketAddr>,
    /// File with the token that readers of the metrics present (`Authorization: Bearer TOKEN`): at least 16 letters and digits, in a
    /// file that others than its owner and its group cannot read [default: the systemd credential `metrics-token`, if there is one]
    #[arg(long, value_name = "FILE")]
    metrics_token: Option<PathBuf>,
}

impl MetricsArgs {
    /// Returns where metrics are served, if they are.
    pub(crate) fn access(&self) -> Result<Option<MetricsAccess>, Failure> {
        let Some(address) = self.metrics else { return Ok(None) };
        let token = file(self.metrics_token.as_deref(), "metrics-token").map(|path| read(&path)).transpose()?;
        MetricsAccess::new(address, token).map(Some).map_err(Failure::Invalid)
    }

    /// Reserves the address at which metrics are served, if they are.
    pub(crate) fn listen(&self) -> Result<Option<MetricsListener>, Failure> {
        Ok(self.access()?.map(MetricsListener::bind).transpose()?)
    }
}

/// Reads a file with a token.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    disk::secret(path, LONGEST).map_err(|why| Failure::Invalid(format!("{}: {why}", path.display())))
}

/// How to reach a broker.
#[derive(Clone, Debug, PartialEq, Eq, ClapArgs)]
pub(crate) struct BrokerArgs {
    /// File with the broker's user and password, as a line USER:PASSWORD, which others than its owner and its group cannot read
    /// [default: the systemd credential `amqp-credentials`, or else the user guest]
    #[arg(long, value_name = "FILE")]
    amqp_credentials: Option<PathBuf>,
    /// File with the authorities (PEM) that may sign the certificate of a broker at amqps:// [default: those that this system trusts]
    #[arg(long, value_name = "FILE")]
    amqp_ca: Option<PathBuf>,
}

impl BrokerArgs {
    /// Returns the broker at a URL.
    pub(crate) fn broker(&self, url: &str) -> Result<Broker, Failure> {
        Broker::parse(url).and_then(|broker| self.complete(broker)).map_err(refused)
    }

    /// Returns an input, with what its broker needs if it has one.
    pub(crate) fn input(&self, text: &str) -> Result<Input, Failure> {
        let input: Input = text.parse().map_err(Failure::Invalid)?;
        input.with_broker(|broker| self.complete(broker)).map_err(refused)
    }

    fn complete(&self, broker: Broker) -> Result<Broker, Error> {
        let broker = broker.with_authorities(self.amqp_ca.as_deref())?;
        match file(self.amqp_credentials.as_deref(), "amqp-credentials") {
            Some(path) => Ok(broker.with_credentials(Credentials::read(&path)?)),
            None => Ok(broker),
        }
    }

    /// Whether an option is given.
    pub(crate) fn is_given(&self) -> bool {
        self.amqp_credentials.is_some() || self.amqp_ca.is_some()
    }
}

fn refused(Error(why): Error) -> Failure {
    Failure::Invalid(why)
}
