// @ts-check
// From an entry of the library to a job file that uses it.

export const EXAMPLE = `protocolVersion: 2
name: hello
type: job
prerequisites:
  - name: image
    type: dockerimage
    uri: python:3.12
taskRoles:
  worker:
    instances: 2
    dockerImage: image
    resourcePerInstance: {cpu: 1, memoryMB: 256, gpu: 0}
    commands:
      - echo "Hello from worker $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"
      - sleep 5
`;

/** How a job names an entry: by its version, so that it means the same tomorrow. @param {{name: string, version: string}} entry */
export const reference = ({ name, version }) => (version === "latest" ? name : `${name}@${version}`);

/** A new job with an entry: a template as it is, the example with a prerequisite put in. @param {{name: string, version: string, type: string, text: string}} entry */
export function jobWith(entry) {
  if (entry.type === "job") return entry.text;
  const named = `name: use-${entry.name}`.slice(0, 200), wanted = JSON.stringify(reference(entry));
  const job = EXAMPLE.replace("name: hello", named).replace("instances: 2", "instances: 1");
  if (entry.type === "dockerimage") return job.replace(/prerequisites:\n(?: .*\n)+/, "").replace("dockerImage: image", `dockerImage: ${wanted}`);
  return job.replace("    dockerImage: image", `    prerequisites: [${wanted}]\n    dockerImage: image`);
}

/** The first text of a new entry. */
export const NEW_ENTRY = `name: my-data
type: data
version: 1
description: What it is, in a line.
size: 1 GB
plugin: fetch
uri:
  - https://data.example/my-data/1/data.tgz
`;
