//! Labels for the cells of real modems: what is published tells when the cell changed, and not where that was.

use std::collections::BTreeMap;

use record::Tables;
use record::tables::{Mobility, MobilityRow, ModemRow, Modems};

/// The numbers of cells, from 1 in the order of their first appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells(BTreeMap<String, u64>);

impl Cells {
    fn number(&mut self, name: &str) -> u64 {
        let next = self.0.len() as u64 + 1;
        *self.0.entry(name.to_owned()).or_insert(next)
    }

    /// Replaces the identities of cells by their numbers (`cell` of the table `modem`) and labels (`cell-NUMBER` in `mobility`), and
    /// removes the physical ones. A cell that is known by its physical identity alone has a number, too. Cells of scenarios keep
    /// their names.
    pub(crate) fn relabel(&mut self, tables: &mut Tables) {
        let mut modem = Modems::default();
        for row in tables.modem.iter() {
            let cell = name(&row).map(|name| self.number(&name));
            modem.push(&ModemRow { cell, pci: None, ..row });
        }
        let mut mobility = Mobility::default();
        for row in tables.mobility.iter() {
            let is_real = row.event == "changed" && !row.cell.is_empty();
            let label = if is_real { format!("cell-{}", self.number(row.cell)) } else { row.cell.to_owned() };
            mobility.push(&MobilityRow { cell: &label, ..row });
        }
        (tables.modem, tables.mobility) = (modem, mobility);
    }
}

/// The cell's name in `mobility`, as a measurement writes it.
fn name(row: &ModemRow<'_>) -> Option<String> {
    row.cell.map(|cell| cell.to_string()).or_else(|| Some(format!("PCI {}", row.pci?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_the_same_label_in_all_tables_and_cells_of_scenarios_keep_their_names() {
        let tables = |cells: &[(Option<u64>, Option<u64>)], changed: &str| {
            let mut tables = Tables::default();
            for &(cell, pci) in cells {
                tables.modem.push(&ModemRow { cell, pci, rsrp_dbm: Some(-90.0), ..ModemRow::default() });
            }
            tables.mobility.push(&MobilityRow { event: "changed", cell: changed, ..MobilityRow::default() });
            tables.mobility.push(&MobilityRow { event: "connected", cell: "north", ..MobilityRow::default() });
            tables
        };
        let mut cells = Cells::default();
        let mut first = tables(&[(Some(27_447_297), Some(301)), (Some(99), None), (None, Some(7)), (None, None)], "99");
        let mut second = tables(&[(Some(99), Some(302))], "PCI 7");
        cells.relabel(&mut first);
        cells.relabel(&mut second);
        let modem: Vec<_> = first.modem.iter().map(|row| (row.cell, row.pci, row.rsrp_dbm)).collect();
        let with = |cell| (cell, None, Some(-90.0));
        assert_eq!(modem, [with(Some(1)), with(Some(2)), with(Some(3)), with(None)]);
        assert_eq!((second.modem.row(0).cell, second.modem.row(0).pci), (Some(2), None));
        let names = |tables: &Tables| tables.mobility.iter().map(|row| row.cell.to_owned()).collect::<Vec<_>>();
        assert_eq!(
            (names(&first), names(&second)),
            (["cell-2", "north"].map(str::to_owned).into(), ["cell-3", "north"].map(str::to_owned).into())
        );
    }
}
