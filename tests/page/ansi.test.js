import assert from "node:assert/strict";
import { test } from "node:test";
import { pieces, plain } from "../../src/pailot/page/lib/ansi.js";

test("colours become styles, and everything else is dropped", () => {
  const { pieces: found } = pieces("\x1b[1;31mred\x1b[0m plain\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07\x1b[2K\x1b[5Aend\x07");
  assert.deepEqual(found.map((each) => [each.text, each.style]), [["red", "bold fg1"], [" plain", ""], ["link", ""], ["end", ""]]);
});

test("no control character is left in plain text", () => {
  let text = "";
  for (let code = 0; code < 32; code++) if (code !== 9 && code !== 10 && code !== 13) text += String.fromCharCode(code) + "x";
  assert.doesNotMatch(plain(text), /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]/);
});
