// @ts-check
// What the schema of job files says about a place in a text. Pure functions, tested without a browser.

/** @typedef {any} Schema */
/** @typedef {{label: string, detail: string, value: boolean}} Offer */

/**
 * The keys above a place in a YAML text, by indentation; an item of a list is "-".
 * @param {string[]} lines @param {number} row @param {number} indent of what stands at the place
 */
export function pathTo(lines, row, indent) {
  const path = /** @type {string[]} */ ([]);
  let limit = indent;
  for (let at = row; at >= 0 && limit > 0; at--) {
    const line = at === row ? lines[at].slice(0, indent) : lines[at];
    if (!line.trim() || line.trim().startsWith("#")) continue;
    const found = /^(\s*)((?:-\s+)*)([^\s:#][^:#]*)?(:?)/.exec(line);
    if (!found) continue;
    const [, space, dashes, key, colon] = found, begin = space.length + dashes.length;
    if (key && colon && begin < limit && at !== row) {
      path.unshift(key.trim().replace(/^["']|["']$/g, ""));
      limit = begin;
    }
    for (let dash = dashes.length - 1; dash >= 0; dash--) {
      if (dashes[dash] !== "-" || space.length + dash >= limit) continue;
      path.unshift("-");
      limit = space.length + dash;
    }
    // A list may stand at the indentation of its key.
    if (path[0] === "-" && dashes) limit += 1;
  }
  return path;
}

/** All that a schema may be at a path: choices are looked through. @param {Schema} schema @param {string[]} path @returns {Schema[]} */
export function schemasAt(schema, path) {
  let now = choices(schema);
  for (const step of path) {
    now = now.flatMap((each) => {
      if (step === "-") return each.items ? choices(each.items) : [];
      const found = each.properties?.[step] ?? (typeof each.additionalProperties === "object" ? each.additionalProperties : null);
      return found ? choices(found) : [];
    });
  }
  return now;
}

/** @param {Schema} schema @returns {Schema[]} */
const choices = (schema) => [...(schema.properties || schema.items || schema.enum || schema.type ? [schema] : []), ...[...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].flatMap(choices)];

/** What may be written at a place. @param {Schema} schema @param {string[]} lines @param {number} row @param {number} column @returns {{from: number, offers: Offer[]} | null} */
export function offers(schema, lines, row, column) {
  const before = lines[row].slice(0, column);
  if (before.includes("#")) return null;
  const value = /^(\s*(?:-\s+)*)([A-Za-z_][\w-]*):\s+(\S*)$/.exec(before);
  if (value) {
    const found = schemasAt(schema, [...pathTo(lines, row, value[1].length), value[2]]);
    const words = found.flatMap((each) => (each.enum ?? (each.type === "boolean" ? [true, false] : [])).map(String));
    const detail = found.find((each) => each.description)?.description ?? "";
    return words.length ? { from: column - value[3].length, offers: [...new Set(words)].map((label) => ({ label, detail, value: true })) } : null;
  }
  const key = /^(\s*(?:-\s+)*)([A-Za-z_][\w-]*)?$/.exec(before);
  if (!key) return null;
  const found = schemasAt(schema, pathTo(lines, row, key[1].length)), seen = new Map();
  for (const each of found) for (const [name, about] of Object.entries(each.properties ?? {})) if (!seen.has(name)) seen.set(name, { label: name, detail: about.description ?? "", value: false });
  return seen.size ? { from: column - (key[2]?.length ?? 0), offers: [...seen.values()] } : null;
}

/** What is known about the key at a place. @param {Schema} schema @param {string[]} lines @param {number} row @param {number} column */
export function about(schema, lines, row, column) {
  const found = /^(\s*(?:-\s+)*)([A-Za-z_][\w-]*)(?=\s*:)/.exec(lines[row]);
  if (!found || column < found[1].length || column > found[1].length + found[2].length) return null;
  const here = schemasAt(schema, [...pathTo(lines, row, found[1].length), found[2]]);
  const owner = schemasAt(schema, pathTo(lines, row, found[1].length));
  const text = owner.map((each) => each.properties?.[found[2]]?.description).find(Boolean) ?? here.map((each) => each.description).find(Boolean);
  const kinds = [...new Set(here.flatMap((each) => each.enum?.map(String) ?? each.type ?? []))];
  return text || kinds.length ? { from: found[1].length, to: found[1].length + found[2].length, name: found[2], text: text ?? "", kinds: kinds.slice(0, 12) } : null;
}
