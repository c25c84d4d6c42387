// Tables as LaTeX, for papers: as `record::means` writes them.

const NAMES: Record<string, string> = {
  "\\": "\\textbackslash{}",
  "~": "\\textasciitilde{}",
  "^": "\\textasciicircum{}",
  "±": "$\\pm$",
  "–": "--",
  "\u202f": "\\,",
  "\u00a0": "~",
};

/** A `tabular` with the rules of booktabs; columns of numbers are aligned to the right. */
export function latex(head: string[], isNumber: boolean[], rows: string[][]): string {
  const line = (cells: string[]): string => `${cells.map(escaped).join(" & ")} \\\\\n`;
  const columns = isNumber.map((right) => (right ? "r" : "l")).join("");
  return `% \\usepackage{booktabs}\n\\begin{tabular}{${columns}}\n\\toprule\n${line(head)}\\midrule\n${rows.map(line).join("")}\\bottomrule\n\\end{tabular}\n`;
}

function escaped(text: string): string {
  return text.replace(/[&%$#_{}]|[\\~^±–\u202f\u00a0]/g, (letter) => NAMES[letter] ?? `\\${letter}`);
}
