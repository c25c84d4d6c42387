//! `ranway init`: template scenario files.

use crate::args::{InitArgs, Starter};
use crate::failure::Failure;
use std::fs::OpenOptions;
use std::io::{self, Write};

impl Starter {
    /// Returns the file's text, with its comments.
    fn text(self) -> &'static str {
        match self {
            Starter::Bottleneck => include_str!("../starters/bottleneck.toml"),
            Starter::Trace => include_str!("../starters/trace.toml"),
            Starter::Lte => include_str!("../starters/lte.toml"),
            Starter::Sweep => include_str!("../starters/sweep.toml"),
            Starter::Emulate => include_str!("../starters/emulate.toml"),
        }
    }
}

pub(crate) fn init(args: &InitArgs) -> Result<(), Failure> {
    let shown = args.file.display();
    let mut file = OpenOptions::new().write(true).create_new(true).open(&args.file).map_err(|error| {
        if error.kind() == io::ErrorKind::AlreadyExists {
            return Failure::Invalid(format!("{shown} already exists and was not changed; choose another name"));
        }
        anyhow::Error::new(error).context(format!("cannot write {shown}")).into()
    })?;
    if let Err(error) = file.write_all(args.kind.text().as_bytes()) {
        // This call has just created the file.
        let _ = std::fs::remove_file(&args.file);
        return Err(anyhow::Error::new(error).context(format!("cannot write {shown}")).into());
    }
    let next = match args.kind {
        Starter::Emulate => format!("sudo ranway emulate {shown} -- ping -c 10 server"),
        _ => format!("ranway run {shown}"),
    };
    writeln!(crate::terminal::stdout(), "wrote {shown}; next: {next}")?;
    Ok(())
}
