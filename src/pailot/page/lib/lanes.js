// @ts-check
// The timeline of a job as rows and bars. Pure functions, tested without a browser.

/** @typedef {{role: string, index: number, jobAttempt: number, attempt: number, state: string, created: number | null, started: number | null, ended: number | null, exitCode: number | null, reason: string | null}} Try */
/** @typedef {{row: number, from: number, began: number, to: number, try: Try}} Bar */
/** @typedef {{role: string, first: number, rows: number, tasks: number, folded: boolean}} Lane */

export const MOST_ROWS = 50;
const FOLDED_ROWS = 25;

/**
 * A lane for each role with a row for each task. A role with more tasks than `MOST_ROWS` is folded: several tasks share a row.
 * @param {Try[]} tries @param {number} now @param {string[]} [order]
 * @returns {{lanes: Lane[], bars: Bar[], rows: number, begin: number, end: number}}
 */
export function lay(tries, now, order = []) {
  const tasks = /** @type {Map<string, number>} */ (new Map(order.map((role) => [role, 0])));
  for (const each of tries) tasks.set(each.role, Math.max(tasks.get(each.role) ?? 0, each.index + 1));
  const lanes = [], place = /** @type {Map<string, Lane>} */ (new Map());
  let rows = 0;
  for (const [role, count] of tasks) {
    if (!count) continue;
    const folded = count > MOST_ROWS, lane = { role, first: rows, rows: folded ? FOLDED_ROWS : count, tasks: count, folded };
    lanes.push(lane);
    place.set(role, lane);
    rows += lane.rows;
  }
  let begin = Infinity, end = -Infinity;
  const bars = [];
  for (const each of tries) {
    const lane = /** @type {Lane} */ (place.get(each.role));
    const to = each.ended ?? now, from = each.created ?? each.started ?? to;
    const began = Math.min(to, each.started ?? to);
    begin = Math.min(begin, from);
    end = Math.max(end, to);
    bars.push({ row: lane.first + (lane.folded ? Math.floor((each.index * lane.rows) / lane.tasks) : each.index), from, began, to, try: each });
  }
  if (!bars.length) [begin, end] = [now, now + 1];
  return { lanes, bars, rows, begin, end: Math.max(end, begin + 1000) };
}

/** The bar at a place; of several that overlap the one drawn last. @param {Bar[]} bars @param {number} row @param {number} at @param {number} slack */
export function barAt(bars, row, at, slack) {
  for (let each = bars.length - 1; each >= 0; each--) {
    const bar = bars[each];
    if (bar.row === row && at >= bar.from - slack && at <= bar.to + slack) return bar;
  }
  return null;
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800].map((each) => each * 1000);

/** Round moments for the axis, as times since `origin`. @param {number} begin @param {number} end @param {number} origin @param {number} most */
export function ticks(begin, end, origin, most) {
  const step = STEPS.find((each) => (end - begin) / each <= most) ?? STEPS[STEPS.length - 1] * Math.ceil((end - begin) / (STEPS[STEPS.length - 1] * most));
  const found = [];
  for (let at = Math.ceil((begin - origin) / step) * step; at <= end - origin; at += step) found.push(at + origin);
  return found;
}
