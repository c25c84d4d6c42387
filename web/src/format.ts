// Numbers as readers expect them.

const THIN = "\u202f";

/** Formats with three significant digits, without an exponent for common magnitudes. */
export function number(x: number | null | undefined): string {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (Number.isInteger(x) && Math.abs(x) < 1000) return String(x);
  const size = Math.abs(x);
  if (size >= 1e6 || size < 1e-3) return x.toExponential(2).replace("e+", "e");
  if (size >= 1000) return Math.round(x).toLocaleString("en").replaceAll(",", THIN);
  return x.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : size >= 0.1 ? 3 : 4);
}

export function count(x: number | null | undefined): string {
  return x === null || x === undefined ? "–" : Math.round(x).toLocaleString("en").replaceAll(",", THIN);
}

export function percent(share: number | null | undefined): string {
  if (share === null || share === undefined) return "–";
  const x = share * 100;
  return `${x === 0 ? "0" : x >= 10 ? x.toFixed(1) : x >= 0.01 ? x.toFixed(2) : x >= 1e-4 ? x.toFixed(4) : x.toExponential(1)}${THIN}%`;
}

/** A mean, half of its interval and their unit: two significant digits of the interval, and as many decimals of the mean (as `record::means`). */
export function rounded(mean: number, ci95: number, isShare = false): [mean: string, half: string, unit: string] {
  const [scale, unit] = isShare ? [100, `${THIN}%`] : [1, ""];
  const decimals = ci95 > Math.abs(mean) * 1e-12 ? Math.min(Math.max(1 - Math.floor(Math.log10(ci95 * scale)), 0), 9) : undefined;
  if (decimals === undefined) return [isShare && mean !== 0 ? (mean * scale).toFixed(2) : number(mean), "0", unit];
  return [(mean * scale).toFixed(decimals), (ci95 * scale).toFixed(decimals), unit];
}

export function bytes(x: number | null | undefined): string {
  if (x === null || x === undefined) return "–";
  for (const [size, unit] of [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"]] as const) {
    if (Math.abs(x) >= size) return `${number(x / size)}${THIN}${unit}`;
  }
  return `${number(x)}${THIN}B`;
}

/** Formats a tick of an axis, as short as possible without losing precision. */
export function tick(x: number): string {
  if (x === 0) return "0";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    if (Math.abs(x) >= size) return `${Number((x / size).toPrecision(4))}${unit}`;
  }
  return String(Number(x.toPrecision(4)));
}

export function seconds(x: number): string {
  if (x >= 3600) return `${number(x / 3600)} h`;
  if (x >= 120) return `${number(x / 60)} min`;
  return x >= 1 ? `${number(x)} s` : `${number(x * 1e3)} ms`;
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
