import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.localStorage = { getItem: () => null, setItem() {}, removeItem() {} };
const { eventReader } = await import("../../src/pailot/page/lib/api.js");

test("events are whole, however the stream is cut", () => {
  const text = 'id: 1\nevent: job\ndata: {"a": 1}\n\n: beat\n\nid: 2\ndata: {"b":\ndata: 2}\n\nid: 3\ndata: {"half"';
  for (const size of [1, 3, 10, 1000]) {
    const found = [];
    const read = eventReader((each) => found.push(each));
    for (let at = 0; at < text.length; at += size) read(text.slice(at, at + size));
    assert.deepEqual(found, [{ kind: "job", id: "1", data: { a: 1 } }, { kind: "message", id: "2", data: { b: 2 } }]);
  }
});
