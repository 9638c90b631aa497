// @ts-check
// What a task used, as columns for a plot. Pure functions, tested without a browser.

/** @typedef {{at: number[], cpus: number[], memoryMB: number[], maxMemoryMB: number[], gpuPercent: number[] | null, gpuMemoryMB: number[] | null}} Series */

/**
 * The curves of all tries of a task one after another; between two tries there is a gap.
 * @param {{attempts: {taskAttempt: number, series: Series}[]}} usage
 * @param {"cpus" | "memoryMB" | "maxMemoryMB" | "gpuPercent" | "gpuMemoryMB"} key
 * @returns {[number[], (number | null)[]]} seconds, values
 */
export function curve(usage, key) {
  const times = /** @type {number[]} */ ([]), values = /** @type {(number | null)[]} */ ([]);
  for (const { series } of usage.attempts) {
    const column = series[key];
    if (!column) continue;
    if (times.length) (times.push(Math.max(times[times.length - 1], series.at[0] / 1000 - 0.001)), values.push(null));
    series.at.forEach((at, each) => {
      if (each === 0 && key !== "cpus" && series.at.length > 1 && !column[0]) return; // before the first sample nothing is known
      times.push(at / 1000);
      values.push(column[each]);
    });
  }
  return [times, values];
}

/**
 * The curves of several tasks as one: at each moment of any of them, what those that have a value use together.
 * @param {[number[], (number | null)[]][]} curves
 * @returns {[number[], (number | null)[]]}
 */
export function sum(curves) {
  if (curves.length === 1) return curves[0];
  const times = [...new Set(curves.flatMap(([at]) => at))].sort((one, other) => one - other);
  const values = new Array(times.length).fill(null);
  for (const [at, column] of curves) {
    let each = 0;
    times.forEach((time, row) => {
      if (!at.length || time < at[0] || time > at[at.length - 1]) return;
      while (each + 1 < at.length && at[each + 1] <= time) each++;
      if (column[each] !== null) values[row] = (values[row] ?? 0) + /** @type {number} */ (column[each]);
    });
  }
  return [times, values];
}
