'use strict';

// node check.js FOLDER: compare submit() with the recorded answers in FOLDER/expected.json.

process.env.TZ = 'UTC';

const fs = require('fs');
const path = require('path');
const { submit } = require('./middleware');

function canonical(value) {
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.keys(value).sort().map((key) => [key, canonical(value[key])]));
}

// Schema errors are compared without schema paths and without the extra entries that
// the original's $merge keyword adds, because this stand-in has no $merge.
function comparableMessage(message) {
  if (message === undefined || !message.startsWith('[{')) return message;
  return JSON.parse(message)
    .filter((error) => error.keyword !== '$merge')
    .map(({ keyword, dataPath, message: words }) => [keyword, dataPath, words]);
}

function facts(answer) {
  const { status, code, name, entrypoints, auth, message } = answer;
  return { status, code, name, entrypoints, auth, message: comparableMessage(message) };
}

const folder = process.argv[2];
if (!folder) {
  console.error('usage: node check.js FOLDER');
  process.exit(2);
}
const expected = JSON.parse(fs.readFileSync(path.join(folder, 'expected.json'), 'utf8'));
const files = Object.keys(expected);
let equal = 0;
for (const file of files) {
  const want = facts(expected[file]);
  const got = facts(submit(fs.readFileSync(path.join(folder, file), 'utf8')));
  const wrong = Object.keys(want).filter(
    (key) => JSON.stringify(canonical(want[key])) !== JSON.stringify(canonical(got[key])),
  );
  if (wrong.length === 0) {
    equal++;
    continue;
  }
  console.log(file);
  for (const key of wrong) {
    console.log(`  ${key}: expected ${JSON.stringify(want[key])}`);
    console.log(`  ${key}: got      ${JSON.stringify(got[key])}`);
  }
}
console.log(`${equal} of ${files.length} equal`);
process.exitCode = equal === files.length ? 0 : 1;
