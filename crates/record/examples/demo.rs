//! Writes made-up results, to look at the report: `cargo run -p record --example demo -- DIR`.

#[path = "../tests/made_up/mod.rs"]
mod made_up;

use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "demo-results".to_owned());
    let dir = Path::new(&dir);
    made_up::single("A download on a cell with a deep buffer", 600).write(&dir.join("single"))?;
    let sweep = made_up::sweep("CUBIC and BBR against random loss", 5, 600);
    sweep.write(&dir.join("sweep"))?;
    made_up::cells("Walks between two cells", 5, 600, 3).write(&dir.join("cells"))?;
    let other = made_up::sweep("The same on a quiet cell </script><b>&", 5, 600);
    std::fs::write(dir.join("compared.html"), record::report::compare(&[sweep, other]))?;
    Ok(())
}
