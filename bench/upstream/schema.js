'use strict';

// JSON schema of a protocol-v2 job, written from the rules Pailot keeps about OpenPAI.
// Key order matters a little: ajv reports errors in the order of `properties`.

const text = () => ({ type: 'string' });
const whole = (more) => Object.assign({ type: 'integer' }, more);
const wholeOrNull = () => ({ type: ['integer', 'null'] });
const oneOfWords = (...words) => ({ type: 'string', enum: words });
const texts = (more) => Object.assign({ type: 'array', items: text() }, more);
const someTexts = () => texts({ minItems: 1 });
const anything = () => ({ type: 'object', additionalProperties: true });

const closed = (properties, required = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
});

const versionTag = () => ({ enum: ['2', 2] });
const shortName = () => ({ type: 'string', pattern: '^[a-zA-Z0-9_-]+$', maxLength: 255 });
const looseVersion = () => ({ type: ['string', 'number'] });

// A mapping whose keys are identifiers. There is no `type` on purpose: the original
// forgets it too, so null, lists, strings and numbers pass this step.
const byIdentifier = (value) => ({
  patternProperties: { '^[a-zA-Z_][a-zA-Z0-9_]*$': value },
  minProperties: 1,
  additionalProperties: false,
});

const commonHead = () => ({
  protocolVersion: versionTag(),
  name: shortName(),
  version: looseVersion(),
  contributor: text(),
  description: text(),
});

const plainPrerequisite = (kinds, uri) => ({
  type: 'object',
  properties: Object.assign(commonHead(), {
    type: oneOfWords(...kinds),
    plugin: text(),
    require: texts(),
    uri,
  }),
  required: ['name', 'type'],
});

const imagePrerequisite = closed(
  Object.assign(commonHead(), {
    type: oneOfWords('dockerimage'),
    auth: {
      type: 'object',
      properties: { username: text(), password: text(), registryuri: text() },
    },
    uri: text(),
  }),
  ['name', 'type', 'uri'],
);

const taskRole = closed(
  {
    protocolVersion: versionTag(),
    instances: whole({ minimum: 1 }),
    completion: closed({
      minFailedInstances: wholeOrNull(),
      minSucceededInstances: wholeOrNull(),
    }),
    taskRetryCount: whole(),
    prerequisites: texts(),
    dockerImage: text(),
    data: text(),
    output: text(),
    script: text(),
    extraContainerOptions: {
      type: 'object',
      // The keyword sits one level too deep in the original, so it names a property
      // that may never be present while every other key is let through.
      properties: { shmMB: whole(), additionalProperties: false },
    },
    resourcePerInstance: closed(
      { cpu: whole(), memoryMB: whole(), gpu: whole(), ports: byIdentifier(whole()) },
      ['cpu', 'memoryMB', 'gpu'],
    ),
    commands: someTexts(),
  },
  ['dockerImage', 'resourcePerInstance', 'commands'],
);

const deployment = {
  type: 'object',
  properties: {
    protocolVersion: versionTag(),
    name: shortName(),
    taskRoles: byIdentifier(
      closed({ preCommands: someTexts(), postCommands: someTexts() }),
    ),
  },
  required: ['name', 'taskRoles'],
};

const head = commonHead();

module.exports = closed(
  {
    protocolVersion: head.protocolVersion,
    name: head.name,
    type: oneOfWords('job'),
    version: head.version,
    contributor: head.contributor,
    description: head.description,
    prerequisites: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        oneOf: [
          plainPrerequisite(['script', 'output'], text()),
          plainPrerequisite(['data'], texts()),
          imagePrerequisite,
        ],
      },
    },
    parameters: anything(),
    secrets: anything(),
    jobRetryCount: whole({ minimum: 0 }),
    taskRoles: byIdentifier(taskRole),
    deployments: { type: 'array', minItems: 1, items: deployment },
    defaults: { type: 'object', properties: { deployment: text() } },
    extras: { type: 'object' },
  },
  ['protocolVersion', 'name', 'type', 'taskRoles'],
);
