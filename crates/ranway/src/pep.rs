//! `ranway pep`.

use crate::Failure;
use crate::args::PepArgs;
use crate::line::Line;
use ebpf::pep::{Counters, Options, Pep};
use host::attend::{Happened, Signals};
use std::io::Write;
use std::time::Duration;

/// How often it is said what goes on.
const TICK: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &PepArgs) -> Result<(), Failure> {
    let options = Options {
        all: args.all,
        every: args.every,
        flows: args.flows,
        take_over: args.take_over,
        blind: args.blind,
        ..Options::new(&args.wan, &args.ran)
    };
    let signals = Signals::take()?;
    let pep = Pep::start(&options)?;
    if !args.quiet {
        let before = if pep.took_over() { " in place of the one before" } else { "" };
        eprintln!("a PEP is at work between {} and {}{before}; Ctrl-C ends it", args.wan, args.ran);
    }
    let mut line = (!args.quiet && !args.json).then(|| Line::new(false)).flatten();
    loop {
        match signals.wait(TICK) {
            Happened::Asked { .. } => break,
            _ if pep.is_replaced() => {
                drop(line);
                if !args.quiet {
                    eprintln!("another PEP has taken over; this one ends");
                }
                return Ok(());
            }
            _ if args.json => {
                let mut stdout = std::io::stdout().lock();
                writeln!(stdout, "{}", serde_json::to_string(&pep.counters())?)?;
                stdout.flush()?;
            }
            _ => line.iter_mut().for_each(|line| line.show(&say(&pep.counters()))),
        }
    }
    drop(line);
    if !args.quiet && !args.json {
        eprintln!("{}", say(&pep.counters()));
    }
    Ok(())
}

fn say(counters: &Counters) -> String {
    let Counters { data, data_bytes, reports, nacks, withheld, flows, failed, .. } = counters;
    let mut text = format!(
        "{flows} flows  {data} segments of {:.1} MB  {reports} reports, {nacks} of something missing",
        *data_bytes as f64 / 1e6
    );
    for (count, what) in [(withheld, "withheld"), (failed, "failed")] {
        if *count > 0 {
            text += &format!("  {count} {what}");
        }
    }
    text
}
