'use strict';

// What one job submission costs an OpenPAI REST server before it talks to a cluster:
// read YAML, check the schema, resolve references, render. Written for Pailot from a
// description of the behaviour; only the three libraries are the original ones.

const yaml = require('js-yaml');
const Ajv = require('ajv');
const mustache = require('mustache');

const schemaCheck = new Ajv({ allErrors: true }).compile(require('./schema'));

const OPEN = '<%';
const CLOSE = '%>';
const TAGS = [OPEN, CLOSE];
const SUBSCRIPT = /\[(\d+)\]/g;

// One writer for the life of the process: it keeps the tokens of every text it has
// ever seen, as a long-running server would.
let writer = new mustache.Writer();

function forgetTemplates() {
  writer = new mustache.Writer();
}

class Refusal extends Error {}

function refuse(message) {
  throw new Refusal(message);
}

// Mustache only cuts the text into tokens; of those, text is kept, plain names are
// looked up and everything else vanishes.
function renderText(template, view) {
  const scope = new mustache.Context(view);
  let out = '';
  for (const [kind, body] of writer.parse(template, TAGS)) {
    if (kind === 'text') {
      out += body;
    } else if (kind === 'name') {
      const path = body.replace(SUBSCRIPT, '.$1');
      const found = scope.lookup(path);
      out += found === null || found === undefined ? `${OPEN} ${path} ${CLOSE}` : found;
    }
  }
  return out.trim();
}

function own(table, key) {
  return Object.prototype.hasOwnProperty.call(table, key);
}

// Tables are ordinary objects and membership is `in`, so names such as `toString`
// count as present: that is how the original answers.
function indexPrerequisites(list) {
  const index = { script: {}, output: {}, data: {}, dockerimage: {} };
  const names = new Set();
  for (const entry of list) {
    const table = index[entry.type];
    if (own(table, entry.name)) {
      refuse(`Duplicate ${entry.type} prerequisites ${entry.name}.`);
    }
    table[entry.name] = entry;
    names.add(entry.name);
  }
  return { index, names };
}

function indexDeployments(list) {
  const table = {};
  for (const entry of list) {
    if (own(table, entry.name)) {
      refuse(`Duplicate deployments ${entry.name}.`);
    }
    table[entry.name] = entry;
  }
  return table;
}

const REFERENCES = [
  ['script', 'script'],
  ['output', 'output'],
  ['data', 'data'],
  ['dockerImage', 'dockerimage'],
];

function checkReferences(roles, index, names) {
  const roleNames = Object.keys(roles);
  for (const roleName of roleNames) {
    const role = roles[roleName];
    if ('prerequisites' in role) {
      for (const wanted of role.prerequisites) {
        if (!names.has(wanted)) refuse(`Prerequisite ${wanted} does not exist.`);
      }
    }
  }
  for (const roleName of roleNames) {
    const role = roles[roleName];
    for (const [field, table] of REFERENCES) {
      if (field in role && !(role[field] in index[table])) {
        refuse(`Prerequisite ${role[field]} does not exist.`);
      }
    }
  }
}

function chooseDeployment(job, deployments) {
  if (!('defaults' in job) || !('deployment' in job.defaults)) return null;
  const wanted = job.defaults.deployment;
  if (!(wanted in deployments)) refuse(`Default deployment ${wanted} does not exist.`);
  return deployments[wanted];
}

// Rendering writes into the parsed job, as the original does. It shows when YAML
// aliases share one mapping: a shared auth is rendered twice, and of roles sharing one
// mapping the last entrypoint wins.
function renderAuth(images, secrets) {
  for (const image of Object.values(images)) {
    if (!('auth' in image)) continue;
    for (const field of Object.keys(image.auth)) {
      image.auth[field] = renderText(image.auth[field], { $secrets: secrets });
    }
  }
}

function commandLines(roleName, role, deployment) {
  const lines = [];
  const add = (list) => {
    for (const line of list) lines.push(line.trim());
  };
  const around = deployment && roleName in deployment.taskRoles ? deployment.taskRoles[roleName] : {};
  if ('preCommands' in around) add(around.preCommands);
  add(role.commands);
  if ('postCommands' in around) add(around.postCommands);
  return lines;
}

function renderEntrypoints(job, index, deployment) {
  for (const roleName of Object.keys(job.taskRoles)) {
    const role = job.taskRoles[roleName];
    const script = commandLines(roleName, role, deployment).join('\n');
    role.entrypoint = renderText(script, {
      $parameters: job.parameters,
      $script: index.script[role.script],
      $output: index.output[role.output],
      $data: index.data[role.data],
    });
  }
}

function pick(table, field) {
  const out = {};
  for (const key of Object.keys(table)) {
    if (field in table[key]) out[key] = table[key][field];
  }
  return out;
}

function accept(text) {
  const job = yaml.safeLoad(text);
  if (!schemaCheck(job)) refuse(JSON.stringify(schemaCheck.errors));
  const { index, names } = indexPrerequisites('prerequisites' in job ? job.prerequisites : []);
  job.prerequisites = index;
  const deployments = indexDeployments('deployments' in job ? job.deployments : []);
  job.deployments = deployments;
  checkReferences(job.taskRoles, index, names);
  const deployment = chooseDeployment(job, deployments);
  renderAuth(index.dockerimage, job.secrets);
  renderEntrypoints(job, index, deployment);
  return {
    status: 202,
    name: job.name,
    entrypoints: pick(job.taskRoles, 'entrypoint'),
    auth: pick(index.dockerimage, 'auth'),
  };
}

function submit(text) {
  try {
    return accept(text);
  } catch (problem) {
    if (problem instanceof Refusal) {
      return { status: 400, code: 'InvalidProtocolError', message: problem.message };
    }
    return { status: 500, message: problem.message };
  }
}

module.exports = { submit, renderText, forgetTemplates };
