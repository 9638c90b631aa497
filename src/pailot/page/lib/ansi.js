// @ts-check
// What a task prints, line by line: colours are kept, every other control sequence is dropped.

/** @typedef {{text: string, style: string}} Piece */

const SEQUENCE = /\x1b\[([0-9;:?<=>]*)([ -/]*)([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[PX^_][\s\S]*?(?:\x1b\\|$)|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f\x1b]/g;

/**
 * A line as pieces with style classes; `style` is the style that the line begins with.
 * @param {string} line @param {string} [style]
 * @returns {{pieces: Piece[], style: string}}
 */
export function pieces(line, style = "") {
  const found = [];
  let at = 0, now = style;
  SEQUENCE.lastIndex = 0;
  for (const match of line.matchAll(SEQUENCE)) {
    if (match.index > at) found.push({ text: line.slice(at, match.index), style: now });
    at = match.index + match[0].length;
    if (match[3] === "m") now = changed(now, match[1]);
  }
  if (at < line.length) found.push({ text: line.slice(at), style: now });
  return { pieces: found, style: now };
}

/** @param {string} line */
export const plain = (line) => line.replace(SEQUENCE, "");

/** @param {string} style @param {string} codes */
function changed(style, codes) {
  const now = new Set(style.split(" ").filter(Boolean));
  const drop = (/** @type {string} */ prefix) => {
    for (const each of now) if (each.startsWith(prefix)) now.delete(each);
  };
  const numbers = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < numbers.length; at++) {
    const code = numbers[at];
    if (!code) now.clear();
    else if (code === 1) now.add("bold");
    else if (code === 2) now.add("dim");
    else if (code === 3) now.add("italic");
    else if (code === 4) now.add("underline");
    else if (code === 7) now.add("inverse");
    else if (code === 22) (now.delete("bold"), now.delete("dim"));
    else if (code === 23) now.delete("italic");
    else if (code === 24) now.delete("underline");
    else if (code === 27) now.delete("inverse");
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) (drop("fg"), now.add(`fg${code % 10}${code >= 90 ? "b" : ""}`));
    else if (code === 39) drop("fg");
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) (drop("bg"), now.add(`bg${code % 10}`));
    else if (code === 49) drop("bg");
    else if (code === 38 || code === 48) at += numbers[at + 1] === 5 ? 2 : 4; // other palettes are shown without colour
  }
  return [...now].join(" ");
}
