import assert from "node:assert/strict";
import { test } from "node:test";
import { Lines, pieces, plain, shown } from "../../src/pailot/page/lib/ansi.js";

test("colours become styles, and everything else is dropped", () => {
  const { pieces: found } = pieces("\x1b[1;31mred\x1b[0m plain\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07\x1b[2K\x1b[5Aend\x07");
  assert.deepEqual(found.map((each) => [each.text, each.style]), [["red", "bold fg1"], [" plain", ""], ["link", ""], ["end", ""]]);
});

test("no control character is left in plain text", () => {
  let text = "";
  for (let code = 0; code < 32; code++) if (code !== 9 && code !== 10 && code !== 13) text += String.fromCharCode(code) + "x";
  assert.doesNotMatch(plain(text), /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/);
});

test("a carriage return replaces the line", () => {
  assert.equal(shown("10%\r20%\r30%"), "30%");
  assert.equal(shown("line\r"), "line");
});

test("an hour of progress bars is one short line", () => {
  const lines = new Lines();
  for (let at = 0; at < 100000; at++) lines.add(`\r${at}/100000 [####      ]`);
  assert.equal(lines.length, 1);
  assert.ok(lines.open.length < 100);
  lines.add("\ndone\n");
  assert.deepEqual(lines.all, ["99999/100000 [####      ]", "done"]);
});

test("lines come whole, however the text is cut", () => {
  const text = Array.from({ length: 200 }, (_, each) => `line ${each} ${"x".repeat(each)}\n`).join("");
  for (const size of [1, 2, 7, 64, 1000]) {
    const lines = new Lines();
    for (let at = 0; at < text.length; at += size) lines.add(text.slice(at, at + size));
    assert.equal(lines.all.join("\n") + "\n", text);
  }
});
