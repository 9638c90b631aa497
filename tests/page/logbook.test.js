import assert from "node:assert/strict";
import { test } from "node:test";
import { Book, LONGEST_LINE, utf8Length, wholeEnd, written } from "../../src/pailot/page/lib/logbook.js";

const bytes = (text) => new TextEncoder().encode(text);
const opened = (offset = 0) => {
  const book = new Book();
  book.begin(0, 0, offset);
  return book;
};

test("lines and offsets are the same, however the text comes", () => {
  const text = Array.from({ length: 300 }, (_, each) => `line ${each} ${[..."xé漢😀"][each % 5] ?? ""}${"y".repeat(each % 40)}\n`).join("");
  const whole = opened();
  whole.addBytes(bytes(text));
  for (const size of [1, 2, 7, 64, 1000]) {
    const book = opened();
    let end = 0;
    const letters = [...text];
    for (let at = 0; at < letters.length; at += size) {
      const piece = letters.slice(at, at + size).join("");
      end += bytes(piece).length;
      book.add(piece, end);
    }
    assert.deepEqual(book.texts, whole.texts);
    assert.deepEqual(book.offsets, whole.offsets);
  }
  assert.equal(whole.texts.join("\n") + "\n", text);
  for (let row = 0; row < whole.length; row++) assert.ok(bytes(text).subarray(whole.offsets[row], whole.offsets[row] + 5).toString() === bytes("line ").toString());
});

test("an hour of progress bars is one short line", () => {
  const book = opened();
  let end = 0;
  for (let at = 0; at < 100000; at++) {
    const piece = `\r${at}/100000 [####      ]`;
    book.add(piece, (end += piece.length));
  }
  assert.equal(book.length, 1);
  assert.ok(book.head.length < 100);
  book.add("\ndone\r", end + 6);
  book.add("\n", end + 7);
  assert.deepEqual(book.texts, ["99999/100000 [####      ]", "done"]);
});

test("a long line is kept in part, and its length is known", () => {
  const book = opened();
  let end = 0;
  for (let each = 0; each < 50; each++) book.add("x".repeat(100000), (end += 100000));
  book.add("\nafter\n", end + 7);
  assert.deepEqual(book.texts.map((each) => each.length), [LONGEST_LINE, 5]);
  assert.equal(book.long.get(0), 5000000);
  assert.deepEqual(book.offsets, [0, 5000001]);
});

test("earlier bytes come before, without half a line", () => {
  const text = bytes("first\nsecond\nthird\n");
  const book = opened(13);
  book.addBytes(text.subarray(13));
  assert.equal(book.addBefore(text.subarray(3, 13), 3, { attempt: 0, taskAttempt: 0, kept: 0 }), 1);
  assert.deepEqual([book.texts, book.offsets, book.parts[0].from], [["second", "third"], [6, 13], 6]);
  book.addBefore(text.subarray(0, 6), 0, { attempt: 0, taskAttempt: 0, kept: 0 });
  assert.deepEqual([book.texts, book.parts[0].from], [["first", "second", "third"], 0]);
});

test("tries are told apart, before and behind, and a line is found by its offset", () => {
  const book = new Book();
  book.begin(0, 1, 0);
  book.add("b1\nb2\n", 6);
  book.begin(0, 2, 0);
  book.add("c1\n", 3);
  book.addBefore(bytes("a1\na2\na3"), 0, { attempt: 0, taskAttempt: 0, kept: 0 });
  assert.deepEqual(book.texts, ["a1", "a2", "a3", "", "b1", "b2", "", "c1"]);
  assert.deepEqual(book.offsets, [0, 3, 6, -1, 0, 3, -1, 0]);
  assert.deepEqual([0, 2, 3, 5, 6, 7].map((row) => book.partOf(row).taskAttempt), [0, 0, 1, 1, 2, 2]);
  assert.deepEqual([book.rowOf(0, 0, 4), book.rowOf(0, 1, 0), book.rowOf(0, 1, 5), book.rowOf(0, 2, 1), book.rowOf(1, 0, 0)], [1, 4, 5, 7, -1]);
  book.trim(4);
  assert.deepEqual([book.texts, book.parts.map((each) => [each.taskAttempt, each.row])], [["b1", "b2", "", "c1"], [[1, 0], [2, 2]]]);
  assert.equal(book.rowOf(0, 2, 0), 3);
});

test("forgetting rows keeps the offsets true", () => {
  const book = opened();
  for (let each = 0; each < 1000; each++) book.add(`line ${each}\n`, book.last.to + `line ${each}\n`.length);
  const wanted = book.offsets[700];
  book.trim(600);
  assert.equal(book.rowOf(0, 0, wanted + 2), 100);
  assert.equal(book.texts[100], "line 700");
  assert.equal(book.rowOf(0, 0, 0), -1);
});

test("characters that are not whole are left for later", () => {
  assert.equal(utf8Length("aé漢😀", 0, 5), 10);
  const text = bytes("ab漢");
  assert.deepEqual([5, 4, 3, 2].map((end) => wholeEnd(text.subarray(0, end))), [5, 2, 2, 2]);
  assert.deepEqual([6, 5, 3].map((end) => wholeEnd(bytes("ab😀").subarray(0, end))), [6, 2, 2]);
});

test("when a byte was written", () => {
  const index = { offset: [0, 10, 20], at: [1, 2, 3], stderr: [false, true, false] };
  assert.deepEqual([written(index, 0), written(index, 19), written(index, 99)], [{ at: 1, stderr: false }, { at: 2, stderr: true }, { at: 3, stderr: false }]);
  assert.equal(written({ offset: [5], at: [1], stderr: [false] }, 4), null);
});
