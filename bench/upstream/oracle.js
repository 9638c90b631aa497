'use strict';

// Line protocol for tests and the benchmark: one JSON request per line on stdin, one
// JSON answer per line on stdout, in the same order. See the table OPS below.

process.env.TZ = 'UTC';

const yaml = require('js-yaml');
const { submit, renderText, forgetTemplates } = require('./middleware');

const MAX_NODES = 200000;

// JSON cannot tell a date from a string or NaN from null, so every value carries a
// type letter. A value that contains itself ends in {"t": "cycle"}.
function encode(root) {
  let left = MAX_NODES;
  const parents = new Set();

  function inside(value, work) {
    if (parents.has(value)) return { t: 'cycle' };
    parents.add(value);
    const done = work();
    parents.delete(value);
    return done;
  }

  function walk(value) {
    if (--left < 0) throw new Error('oracle: value too large to encode');
    if (value === undefined) return { t: 'undefined' };
    if (value === null) return { t: 'null' };
    if (typeof value === 'boolean') return { t: 'bool', v: value };
    if (typeof value === 'number') return { t: 'num', v: String(value) };
    if (typeof value === 'string') return { t: 'str', v: value };
    if (value instanceof Date) return { t: 'date', v: String(value) };
    if (Buffer.isBuffer(value)) return { t: 'buffer', v: value.toString('base64') };
    if (Array.isArray(value)) return inside(value, () => ({ t: 'list', v: value.map(walk) }));
    return inside(value, () => {
      const out = { t: 'map', v: Object.keys(value).map((key) => [key, walk(value[key])]) };
      // A key named __proto__ does not become a key in js-yaml 3.13.1.
      const proto = Object.getPrototypeOf(value);
      if (proto !== Object.prototype) out.proto = walk(proto);
      return out;
    });
  }

  return walk(root);
}

function attempt(work) {
  try {
    return Object.assign({ ok: true }, work());
  } catch (problem) {
    return { ok: false, error: problem.name, message: String(problem.message) };
  }
}

function median(numbers) {
  const sorted = [...numbers].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

// Every round starts with an empty template store, else later rounds would only
// measure lookups in it.
function bench({ texts, rounds = 1 }) {
  let warm = Math.max(200, Math.ceil(texts.length * 0.2));
  if (warm >= texts.length) warm = texts.length >> 1;
  const count = texts.length - warm;
  const each = [];
  let accepted = 0;
  for (let round = 0; round < rounds; round++) {
    forgetTemplates();
    for (let i = 0; i < warm; i++) submit(texts[i]);
    accepted = 0;
    const before = process.cpuUsage();
    for (let i = warm; i < texts.length; i++) {
      if (submit(texts[i]).status === 202) accepted++;
    }
    const spent = process.cpuUsage(before);
    each.push((spent.user + spent.system) / count);
  }
  return { ok: true, count, warmup: warm, accepted, cpu_us_each: median(each), rounds: each };
}

const OPS = {
  yaml: ({ text }) => attempt(() => ({ value: encode(yaml.safeLoad(text)) })),
  render: ({ template, context, contextYaml }) =>
    attempt(() => {
      const view = contextYaml === undefined ? context : yaml.safeLoad(contextYaml);
      return { text: renderText(template, view === undefined || view === null ? {} : view) };
    }),
  submit: ({ text }) => submit(text),
  bench,
};

function answer(line) {
  let request;
  try {
    request = JSON.parse(line);
    const op = OPS[request.op];
    if (!op) throw new Error(`unknown op ${request.op}`);
    const reply = op(request);
    return 'id' in request ? Object.assign({ id: request.id }, reply) : reply;
  } catch (problem) {
    return { ok: false, error: 'BadRequest', message: String(problem.message) };
  }
}

// Split on LF only: readline would also split on U+2028, which JSON allows in strings.
let pieces = [];

function finishLine() {
  const line = pieces.join('');
  pieces = [];
  if (line.trim() !== '') process.stdout.write(JSON.stringify(answer(line)) + '\n');
}

process.stdin.setEncoding('utf8');
process.stdin.on('data', (chunk) => {
  let from = 0;
  let to;
  while ((to = chunk.indexOf('\n', from)) !== -1) {
    pieces.push(chunk.slice(from, to));
    finishLine();
    from = to + 1;
  }
  if (from < chunk.length) pieces.push(chunk.slice(from));
});
process.stdin.on('end', finishLine);
