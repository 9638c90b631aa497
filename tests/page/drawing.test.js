import assert from "node:assert/strict";
import { test } from "node:test";
import { curve, sum } from "../../src/pailot/page/lib/curves.js";
import { span } from "../../src/pailot/page/lib/format.js";
import { barAt, lay, ticks } from "../../src/pailot/page/lib/lanes.js";

const tried = (role, index, attempt, created, started, ended, state = "SUCCEEDED") => ({ role, index, attempt, jobAttempt: 0, created, started, ended, state, exitCode: 0, reason: null });

test("each role has a lane, each task a row, and tries lie beside each other", () => {
  const { lanes, bars, rows, begin, end } = lay([tried("worker", 0, 0, 1000, 2000, 5000, "FAILED"), tried("worker", 0, 1, 5000, 5500, null, "RUNNING"), tried("ps", 0, 0, 1000, null, null, "WAITING")], 9000, ["ps", "worker"]);
  assert.deepEqual(lanes.map((each) => [each.role, each.first, each.rows]), [["ps", 0, 1], ["worker", 1, 1]]);
  assert.deepEqual([rows, begin, end], [2, 1000, 9000]);
  assert.deepEqual(bars.map((each) => [each.row, each.from, each.began, each.to]), [[1, 1000, 2000, 5000], [1, 5000, 5500, 9000], [0, 1000, 9000, 9000]]);
  assert.equal(barAt(bars, 1, 3000, 0).try.attempt, 0);
  assert.equal(barAt(bars, 1, 6000, 0).try.attempt, 1);
  assert.equal(barAt(bars, 1, 500, 0), null);
});

test("a role of many tasks is folded, and an empty job has an axis", () => {
  const many = Array.from({ length: 5000 }, (_, index) => tried("worker", index, 0, 0, 10, 20));
  const { lanes, bars, rows } = lay(many, 30);
  assert.deepEqual([lanes[0].folded, rows, bars[4999].row], [true, 25, 24]);
  const none = lay([], 1000);
  assert.ok(none.end > none.begin);
});

test("marks of the axis are round and few", () => {
  assert.deepEqual(ticks(0, 60000, 0, 6), [0, 10000, 20000, 30000, 40000, 50000, 60000]);
  for (const length of [1, 1e3, 1e6, 1e9, 1e12]) assert.ok(ticks(5, 5 + length, 0, 8).length <= 9, String(length));
  assert.deepEqual([0, 30000, 725000, 3720000].map(span), ["0:00", "0:30", "12:05", "1:02:00"]);
});

test("tries of a task are one curve with a gap", () => {
  const series = (at, memoryMB) => ({ at, memoryMB, cpus: at.map(() => 1), maxMemoryMB: memoryMB, gpuPercent: null, gpuMemoryMB: null });
  const usage = { attempts: [{ taskAttempt: 0, series: series([1000, 2000, 3000], [0, 5, 6]) }, { taskAttempt: 1, series: series([9000, 10000], [0, 7]) }] };
  assert.deepEqual(curve(usage, "memoryMB"), [[2, 3, 8.999, 10], [5, 6, null, 7]]);
  assert.deepEqual(curve(usage, "gpuPercent"), [[], []]);
});

test("curves of several tasks are summed where they have values", () => {
  assert.deepEqual(sum([[[1, 3], [10, 20]], [[2, 3, 4], [1, 2, 3]]]), [[1, 2, 3, 4], [10, 11, 22, 3]]);
  assert.deepEqual(sum([[[1], [4]]]), [[1], [4]]);
});
