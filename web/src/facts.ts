// The facts in the head of a result's page: how much was simulated, emulated, measured or analysed, and in which time.

import { campaignOf } from "./campaign";
import type { Result } from "./data";
import { count, number, seconds, text } from "./format";
import { roundTrips } from "./responsiveness";

type Facts = [string, string][];

/** What a measurement says about itself, as `ranway measure` writes it. */
interface About {
  protocol?: unknown;
  flows?: unknown;
  kernel?: unknown;
  missing?: unknown;
  proxy?: unknown;
  loads?: unknown;
}

export function aboutOf(result: Result): About | null {
  const scenario = result.meta.scenario as { measurement?: About } | null;
  return typeof scenario === "object" && scenario !== null && typeof scenario.measurement === "object" ? scenario.measurement : null;
}

/** The files of an analysis; `null` of anything else. */
function filesOf(result: Result): number | null {
  const scenario = result.meta.scenario as { analysed?: { files?: unknown } } | null;
  const files = typeof scenario === "object" && scenario !== null ? scenario.analysed?.files : undefined;
  return Array.isArray(files) ? files.length : null;
}

export function factsOf(result: Result): Facts {
  return [...(campaignFacts(result) ?? measurementFacts(result) ?? analysisFacts(result) ?? (result.timing.lateness === undefined ? simulationFacts(result) : emulationFacts(result))), ["Ranway", result.meta.version]];
}

function measurementFacts(result: Result): Facts | null {
  const about = aboutOf(result);
  if (about === null) return null;
  const known = (name: string, value: unknown): Facts => (value === undefined || value === "" ? [] : [[name, text(value)]]);
  return [...known("Protocol", about.protocol), ...known("Flows each way", about.flows), ...known("Took", result.timing.wall_s === undefined ? undefined : seconds(result.timing.wall_s)), ...known("Round trips a minute", roundTrips(about.loads)), ...known("Kernel", about.kernel)];
}

function campaignFacts({ meta, ...result }: Result): Facts | null {
  const campaign = campaignOf({ meta, ...result });
  if (campaign === null) return null;
  return [["Tests", `${count(campaign.finished)} of ${count(campaign.planned)}`], ["Combinations", count(meta.points.length)], ["Blocks", count(meta.runs)], ["Seed", String(meta.seed)]];
}

function analysisFacts(result: Result): Facts | null {
  const files = filesOf(result);
  if (files === null) return null;
  const { timing } = result;
  return [["Files", count(files)], ["Measured", seconds(timing.simulated_s)], ...(timing.packets > 0 ? ([["Packets", count(timing.packets)]] as Facts) : [])];
}

function emulationFacts({ meta, timing }: Result): Facts {
  return [
    ["Seed", String(meta.seed)],
    ["Emulated", seconds(timing.simulated_s)],
    ["Packets", count(timing.packets)],
  ];
}

function simulationFacts({ meta, timing }: Result): Facts {
  // The jobs of a large sweep, which run side by side, have processor time alone.
  const [name, taken]: [string, number] = timing.wall_s === undefined ? ["Processor time", timing.cpu_s] : ["In", timing.wall_s];
  const speed = taken > 0 ? ` (${number(timing.simulated_s / taken)}× real time)` : "";
  return [
    ["Points", count(meta.points.length)],
    ["Runs each", count(meta.runs)],
    ["Seed", String(meta.seed)],
    ["Simulated", seconds(timing.simulated_s)],
    [name, `${seconds(taken)}${speed}`],
    ["Data packets", count(timing.packets)],
  ];
}
