//! `ranway measure`.

mod client;

use crate::failure::Failure;
use clap::Args as ClapArgs;

/// `ranway measure`.
#[derive(ClapArgs)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    client: client::ClientArgs,
}

pub(crate) fn run(args: &MeasureArgs) -> Result<(), Failure> {
    client::run(&args.client)
}
