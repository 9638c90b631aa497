import test from "node:test";
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { WORDS } from "../../src/pailot/page/lib/words.js";

const page = new URL("../../src/pailot/page/", import.meta.url);
const own = ["main.js", ...["lib", "views"].flatMap((folder) => readdirSync(new URL(folder, page)).map((name) => `${folder}/${name}`))];
const used = new Set(own.flatMap((name) => [...readFileSync(new URL(name, page), "utf8").matchAll(/\bt\("(\w+)"/g)].map((found) => found[1])));

test("every language has the same words, with the same values in them", () => {
  for (const [language, words] of Object.entries(WORDS)) {
    assert.deepEqual(Object.keys(words).sort(), Object.keys(WORDS.en).sort(), language);
    for (const [key, text] of Object.entries(words)) assert.deepEqual((text.match(/\{\d\}/g) ?? []).sort(), (WORDS.en[key].match(/\{\d\}/g) ?? []).sort(), `${language} ${key}`);
  }
});

test("every word that is used is there", () => {
  assert.ok(used.size > 50);
  assert.deepEqual([...used].filter((key) => !(key in WORDS.en)), []);
});
