// @ts-check
// Lines of a log with the offsets of their first bytes: a window into one try of a task or several, which grows at both ends.
// Pure, tested without a browser.

export const LONGEST_LINE = 10000;

/** @typedef {{attempt: number, taskAttempt: number, row: number, from: number, to: number}} Part */

const NEWLINE = 10;

export class Book {
  texts = /** @type {string[]} */ ([]);
  /** Offsets of lines; -1 for the row between two tries. */
  offsets = /** @type {number[]} */ ([]);
  parts = /** @type {Part[]} */ ([]);
  /** Lines that are cut, by offset: how long they are. */
  long = /** @type {Map<number, number>} */ (new Map());
  /** How many rows were forgotten at the beginning. */
  dropped = 0;
  // The line that has not ended: its first characters, its length, where it began, and whether a `\r` came last.
  head = "";
  size = 0;
  at = 0;
  back = false;

  clear() {
    this.texts = [];
    this.offsets = [];
    this.parts = [];
    this.long = new Map();
    this.dropped = 0;
    this.openFrom(0);
  }

  /** @param {number} offset */
  openFrom(offset) {
    this.head = "";
    this.size = 0;
    this.at = offset;
    this.back = false;
  }

  get length() {
    return this.texts.length + (this.size ? 1 : 0);
  }

  get last() {
    return this.parts[this.parts.length - 1];
  }

  /** A try of a task begins, at an offset of its log. @param {number} attempt @param {number} taskAttempt @param {number} offset */
  begin(attempt, taskAttempt, offset) {
    this.closeLine();
    if (this.parts.length) (this.texts.push(""), this.offsets.push(-1));
    this.parts.push({ attempt, taskAttempt, row: Math.max(0, this.texts.length - 1), from: offset, to: offset });
    this.openFrom(offset);
  }

  closeLine() {
    if (this.size) this.push();
  }

  push() {
    this.texts.push(this.head);
    this.offsets.push(this.at);
    if (this.size > LONGEST_LINE) this.long.set(this.at, this.size);
  }

  /** Text that belongs to the unfinished line. What follows a `\r` replaces what was there. @param {string} text */
  feed(text) {
    if (!text) return;
    if (this.back) ((this.head = ""), (this.size = 0), (this.back = false));
    let end = text.length;
    if (text.endsWith("\r")) ((this.back = true), end--);
    const from = text.lastIndexOf("\r", end - 1) + 1;
    if (from > 0 && end > 0) ((this.head = ""), (this.size = 0));
    if (this.head.length < LONGEST_LINE) this.head += text.slice(from, Math.min(end, from + LONGEST_LINE - this.head.length));
    this.size += end - from;
  }

  /** Text at the end; `end` is the offset behind it. @param {string} text @param {number} end @returns {number} how many lines were ended */
  add(text, end) {
    const part = this.last, plain = end - part.to === text.length;
    let from = 0, at = part.to, count = 0;
    for (let stop = text.indexOf("\n"); stop >= 0; stop = text.indexOf("\n", from)) {
      this.feed(text.slice(from, stop));
      this.push();
      at += plain ? stop + 1 - from : utf8Length(text, from, stop + 1);
      from = stop + 1;
      this.openFrom(Math.min(at, end));
      count++;
    }
    this.feed(text.slice(from));
    part.to = end;
    return count;
  }

  /** Bytes at the end, of the last try. @param {Uint8Array} bytes */
  addBytes(bytes) {
    const part = this.last, start = part.to;
    let from = 0;
    for (let stop = bytes.indexOf(NEWLINE); stop >= 0; stop = bytes.indexOf(NEWLINE, from)) {
      this.feed(DECODER.decode(bytes.subarray(from, stop)));
      this.push();
      from = stop + 1;
      this.openFrom(start + from);
    }
    this.feed(DECODER.decode(bytes.subarray(from)));
    part.to = start + bytes.length;
  }

  /**
   * Bytes of the first try that end where it begins here; or all that is known of an earlier try. The first bytes may be the end of
   * a line: they are left out, but for the beginning of the log.
   * @param {Uint8Array} bytes @param {number} start @param {{attempt: number, taskAttempt: number, kept: number}} whose
   * @returns {number} how many rows were added
   */
  addBefore(bytes, start, { attempt, taskAttempt, kept }) {
    const first = this.parts[0], same = first.attempt === attempt && first.taskAttempt === taskAttempt;
    const cut = start > kept ? bytes.subarray(0, -1).indexOf(NEWLINE) + 1 : 0; // the last byte ends the line before ours
    const older = new Book();
    older.begin(attempt, taskAttempt, start + cut);
    older.addBytes(bytes.subarray(cut));
    older.closeLine();
    const texts = older.texts, offsets = older.offsets;
    for (const [at, size] of older.long) this.long.set(at, size);
    if (same) first.from = start + cut;
    else {
      texts.push("");
      offsets.push(-1);
      this.parts.unshift({ attempt, taskAttempt, row: 0, from: start + cut, to: start + bytes.length });
    }
    for (const each of this.parts) if (each !== this.parts[0]) each.row += texts.length;
    if (!same) this.parts[1].row = texts.length - 1;
    this.texts = texts.concat(this.texts);
    this.offsets = offsets.concat(this.offsets);
    return texts.length;
  }

  /** Forget the first rows. @param {number} count */
  trim(count) {
    this.texts.splice(0, count);
    this.offsets.splice(0, count);
    this.dropped += count;
    for (const each of this.parts) each.row -= count;
    while (this.parts.length > 1 && this.parts[1].row <= 0) this.parts.shift();
    this.parts[0].row = 0;
    if (this.offsets[0] === -1) (this.texts.shift(), this.offsets.shift(), this.parts.forEach((each) => (each.row = Math.max(0, each.row - 1))));
    this.parts[0].from = this.offsets[0] ?? this.at;
  }

  /** @param {number} row */
  line(row) {
    return row < this.texts.length ? this.texts[row] : this.head;
  }

  /** @param {number} row */
  offset(row) {
    return row < this.offsets.length ? this.offsets[row] : this.at;
  }

  /** The try that a row belongs to. @param {number} row @returns {Part} */
  partOf(row) {
    let found = this.parts[0];
    for (const each of this.parts) if (each.row <= row) found = each;
    return found;
  }

  /**
   * The row of the line that holds an offset; -1 where it is not in this window.
   * @param {number} attempt @param {number} taskAttempt @param {number} offset
   */
  rowOf(attempt, taskAttempt, offset) {
    const number = this.parts.findIndex((each) => each.attempt === attempt && each.taskAttempt === taskAttempt);
    const part = this.parts[number];
    if (!part || offset < part.from || offset > part.to) return -1;
    let low = part.row + (number ? 1 : 0), high = (this.parts[number + 1]?.row ?? this.length) - 1;
    if (high < low) return -1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.offset(middle) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

const DECODER = new TextDecoder();

/** @param {string} text @param {number} from @param {number} to */
export function utf8Length(text, from, to) {
  let size = 0;
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    size += code < 0x80 ? 1 : code < 0x800 ? 2 : code >= 0xd800 && code < 0xe000 ? 2 : 3;
  }
  return size;
}

/** Where the last whole character ends: a log that grows may be read in the middle of one. @param {Uint8Array} bytes */
export function wholeEnd(bytes) {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back];
    if (byte < 0x80) return bytes.length;
    if (byte >= 0xc0) return (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** When the byte at an offset was written, and whether on stderr. @param {{offset: number[], at: number[], stderr: boolean[]}} index @param {number} offset */
export function written(index, offset) {
  let low = 0, high = index.offset.length - 1;
  if (high < 0 || index.offset[0] > offset) return null;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (index.offset[middle] <= offset) low = middle;
    else high = middle - 1;
  }
  return { at: index.at[low], stderr: index.stderr[low] };
}
