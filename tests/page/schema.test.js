import assert from "node:assert/strict";
import { test } from "node:test";
import { about, offers, pathTo, schemasAt } from "../../src/pailot/page/lib/schema.js";

const SCHEMA = {
  type: "object",
  properties: {
    name: { type: "string", description: "Name of the job." },
    type: { enum: ["job"] },
    prerequisites: { type: "array", items: { oneOf: [{ type: "object", properties: { type: { enum: ["dockerimage", "data"] }, uri: { type: "string", description: "Where it is." } } }] } },
    taskRoles: { type: "object", additionalProperties: { type: "object", properties: { instances: { type: "integer", description: "How many tasks." }, resourcePerInstance: { type: "object", properties: { gpu: { type: "integer" } } } } } },
  },
};
const TEXT = `name: x
prerequisites:
  - name: image
    type: dockerimage
    uri: x
taskRoles:
  worker:
    instances: 1
    resourcePerInstance:
      gpu: 1
`.split("\n");
const labels = (found) => found?.offers.map((each) => each.label) ?? null;

test("the path to a place", () => {
  assert.deepEqual(pathTo(TEXT, 0, 0), []);
  assert.deepEqual(pathTo(TEXT, 3, 4), ["prerequisites", "-"]);
  assert.deepEqual(pathTo(TEXT, 2, 4), ["prerequisites", "-"]);
  assert.deepEqual(pathTo(TEXT, 7, 4), ["taskRoles", "worker"]);
  assert.deepEqual(pathTo(TEXT, 9, 6), ["taskRoles", "worker", "resourcePerInstance"]);
  assert.deepEqual(pathTo(["prerequisites:", "- name: a", "  uri: b"], 2, 2), ["prerequisites", "-"]);
});

test("keys and values are offered where they belong", () => {
  assert.deepEqual(labels(offers(SCHEMA, ["na"], 0, 2)), ["name", "type", "prerequisites", "taskRoles"]);
  assert.deepEqual(labels(offers(SCHEMA, [...TEXT.slice(0, 4), "    ur"], 4, 6)), ["type", "uri"]);
  assert.deepEqual(labels(offers(SCHEMA, [...TEXT.slice(0, 3), "    type: d"], 3, 11)), ["dockerimage", "data"]);
  assert.deepEqual(labels(offers(SCHEMA, [...TEXT.slice(0, 7), "    in"], 7, 6)), ["instances", "resourcePerInstance"]);
  assert.equal(offers(SCHEMA, [...TEXT.slice(0, 8), "    unknown:", "      x"], 9, 7), null);
  assert.equal(offers(SCHEMA, ["name: some # na"], 0, 15), null);
  assert.equal(offers(SCHEMA, ["name: fr"], 0, 8), null);
});

test("what is known about a key", () => {
  assert.deepEqual(about(SCHEMA, TEXT, 7, 6), { from: 4, to: 13, name: "instances", text: "How many tasks.", kinds: ["integer"] });
  assert.equal(about(SCHEMA, TEXT, 4, 5).text, "Where it is.");
  assert.equal(about(SCHEMA, TEXT, 7, 15), null);
  assert.deepEqual(schemasAt(SCHEMA, ["nothing"]), []);
});
