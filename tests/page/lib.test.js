import assert from "node:assert/strict";
import { test } from "node:test";
import { amounts, bytes, duration, nextName, safeNext } from "../../src/pailot/page/lib/format.js";
import { jobWith } from "../../src/pailot/page/lib/templates.js";
import { WORDS, chosen } from "../../src/pailot/page/lib/words.js";

test("durations and amounts", () => {
  assert.deepEqual([0, 59999, 60000, 3600000, 3660000, 200 * 3600000].map(duration), ["0 s", "59 s", "1 min", "1 h", "1 h 1 min", "8 d"]);
  assert.deepEqual([0, 999, 1000, 12345678].map(bytes), ["0 B", "999 B", "1.0 kB", "12 MB"]);
  assert.equal(amounts({ cpus: 0.5, memoryMB: 2048, gpus: 1 }), "0.5 CPU · 2 GB · 1 GPU");
});

test("after a log-in the page goes nowhere else", () => {
  const here = "https://pailot.example";
  for (const bad of ["//evil.example", "/\\evil.example", "https://evil.example/", "javascript:alert(1)", "", null, "jobs"]) assert.equal(safeNext(bad, here), "/");
  assert.equal(safeNext("/jobs?state=FAILED", here), "/jobs?state=FAILED");
});

test("the next name", () => {
  assert.deepEqual(["job", "job-2", "job-9", "a-b"].map(nextName), ["job-2", "job-3", "job-10", "a-b-2"]);
});

test("every language has every word, with the same places for values", () => {
  const places = (text) => [...text.matchAll(/\{\d\}/g)].map(String).sort().join();
  for (const [name, words] of Object.entries(WORDS)) {
    assert.deepEqual(Object.keys(words).sort(), Object.keys(WORDS.en).sort(), name);
    for (const key of Object.keys(words)) assert.equal(places(words[key]), places(WORDS.en[key]), `${name}.${key}`);
  }
});

test("the language is the browser's, or the chosen one", () => {
  assert.equal(chosen(null, ["zh-CN", "en"]), "zh");
  assert.equal(chosen(null, ["en-US", "zh"]), "en");
  assert.equal(chosen("zh", ["en"]), "zh");
  assert.equal(chosen("xx", ["de"]), "en");
});

test("an entry of the library is put into a new job", () => {
  const entry = { name: "mnist", version: "2", type: "data", text: "name: mnist\n" };
  assert.match(jobWith(entry), /\n {2}worker:\n {4}instances: 1\n {4}prerequisites: \["mnist@2"\]\n {4}dockerImage: image\n/);
  const image = jobWith({ ...entry, name: "torch", version: "latest", type: "dockerimage" });
  assert.match(image, /dockerImage: "torch"/);
  assert.doesNotMatch(image, /prerequisites|python:/);
  assert.equal(jobWith({ ...entry, type: "job", text: "# as it was written\n" }), "# as it was written\n");
});
