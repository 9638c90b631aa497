// Every call of OpenPAI's JavaScript SDK, as it comes from npm, against a server: node sdk.js ADDRESS PASSWORD
// Prints one JSON object with what each call answered.
'use strict';

const { PAIV1, PAIV2 } = require('@microsoft/openpai-js-sdk');

const [address, password] = process.argv.slice(2);
const told = {};

async function failing(call) {
  try {
    await call();
    return 'no error';
  } catch (error) {
    return { kind: error.constructor.name, status: error.status, code: error.data && error.data.code };
  }
}

async function ended(client, name) {
  for (;;) {
    const { state } = (await client.job.getJob('admin', name)).jobStatus;
    if (!['WAITING', 'RUNNING', 'STOPPING'].includes(state)) return state;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function job(name, command) {
  return {
    protocolVersion: 2,
    name,
    type: 'job',
    prerequisites: [{ name: 'image', type: 'dockerimage', uri: 'debian' }],
    taskRoles: {
      main: {
        dockerImage: 'image',
        instances: 1,
        resourcePerInstance: { cpu: 1, memoryMB: 64, gpu: 0 },
        commands: [command],
      },
    },
  };
}

async function main() {
  const cluster = { username: 'admin', rest_server_uri: `${address}/rest-server` };
  const login = await new PAIV2.OpenPAIClient({ ...cluster, password }).authn.basicLogin('admin', password);
  told.login = login;
  const client = new PAIV2.OpenPAIClient({ ...cluster, token: login.token });

  told.info = await client.api.getClusterInfo();
  told.application = await client.token.createApplicationToken();
  told.tokens = (await client.token.getTokens()).tokens.length;
  told.deleted = await client.token.deleteToken(told.application.token);

  told.created = await client.job.createJob(job('from-sdk', 'echo from the sdk'));
  told.state = await ended(client, 'from-sdk');
  told.list = (await client.job.listJobs({ username: 'admin', limit: 1, offset: 0 })).map((each) => each.name);
  told.counted = await client.job.listJobs({ username: 'admin', withTotalCount: true, limit: 1 });
  told.detail = await client.job.getJob('admin', 'from-sdk', 0);
  told.config = await client.job.getJobConfig('admin', 'from-sdk');
  told.tagged = await client.job.addTag('admin', 'from-sdk', 'blue');
  told.untagged = await client.job.deleteTag('admin', 'from-sdk', 'blue');
  told.task = await client.job.getTask('admin', 'from-sdk', 0, 'main', 0);
  told.logs = await client.job.getTaskLogs('admin', 'from-sdk', 0, 'main', 0, 0, true);
  told.events = await client.job.listEvents('admin', 'from-sdk');
  told.attempts = await client.jobHistory.getJobAttempts('admin', 'from-sdk');
  told.attempt = await client.jobHistory.getJobAttempt('admin', 'from-sdk', 0);
  told.healthz = await client.jobHistory.getJobAttemptsHealthz('admin', 'from-sdk');

  await client.job.createJob(job('to-stop', 'sleep 1000'));
  told.stopped = await client.job.updateJobExecutionType('admin', 'to-stop', 'STOP');
  told.stoppedState = await ended(client, 'to-stop');

  told.user = await client.user.createUser({ username: 'sdkuser', password: 'sdk-user-1', email: 's@x.org', virtualCluster: [] });
  told.users = (await client.user.getAllUser()).map((each) => each.username);
  told.updated = await client.user.updateUser({ username: 'sdkuser', email: 'new@x.org' });
  told.one = await client.user.getUser('sdkuser');
  told.group = await client.group.createGroup({ groupname: 'sdkgroup', description: '', externalName: '', extension: {} });
  told.groups = (await client.group.getAllGroup()).map((each) => each.groupname);
  await client.user.updateUserGroup('sdkuser', 'sdkgroup');
  told.members = await client.group.getGroupMembers('sdkgroup');
  await client.user.deleteUserGroup('sdkuser', 'sdkgroup');
  await client.user.updateUserGrouplist('sdkuser', ['default', 'sdkgroup']);
  told.regrouped = (await client.user.getUser('sdkuser')).grouplist;
  told.groupUpdated = await client.group.updateGroup({ patch: true, data: { groupname: 'sdkgroup', description: 'd' } });
  told.oneGroup = await client.group.getGroup('sdkgroup');
  told.groupDeleted = await client.group.deleteGroup('sdkgroup');
  told.self = await client.user.updateUserSelf({ username: 'admin', email: 'admin@x.org' });
  told.userDeleted = await client.user.deleteUser('sdkuser');

  told.clusters = await client.virtualCluster.listVirtualClusters();
  told.cluster = await client.virtualCluster.getVirtualCluster('default');
  told.skus = await client.virtualCluster.getVirtualClusterSkuTypes('default');
  told.storages = await client.storage.getStorages();
  told.noStorage = await failing(() => client.storage.getStorage('none'));
  told.nodes = await client.kubernetes.getK8sNodes();
  told.pods = await client.kubernetes.getK8sPods();

  told.noJob = await failing(() => client.job.getJob('admin', 'none'));
  told.noConfig = await failing(() => client.job.getJobConfig('admin', 'none'));
  told.conflict = await failing(() => client.job.createJob(job('from-sdk', 'true')));
  told.invalid = await failing(() => client.job.createJob({ name: 'x' }));
  told.noToken = await failing(() => new PAIV2.OpenPAIClient({ ...cluster, token: 'x' }).job.listJobs());
  told.noUser = await failing(() => client.user.getUser('nobody'));

  const old = new PAIV1.OpenPAIClient({ username: 'admin', password, rest_server_uri: `${address}/rest-server` });
  told.v1info = await old.authn.info();
  told.v1tokens = (await old.authn.getTokens()).tokens.length;
  told.v1list = (await old.job.list()).map((each) => each.name);
  told.v1detail = (await old.job.get('admin', 'from-sdk')).jobStatus.state;
  told.v1framework = (await old.job.getFrameworkInfo('admin', 'from-sdk')).name;
  told.v1submitted = await old.job.submit('admin', {
    jobName: 'old-style',
    image: 'debian',
    taskRoles: [{ name: 'w', taskNumber: 1, cpuNumber: 1, memoryMB: 128, gpuNumber: 0, command: 'echo old' }],
  });
  told.v1state = await ended(client, 'old-style');
  told.v1ssh = await failing(() => old.job.getSshInfo('admin', 'old-style'));
  told.v1application = await old.authn.createApplicationToken();
  told.v1revoked = await old.authn.deleteToken(told.v1application.token);
  told.v1config = await old.job.getConfig('admin', 'old-style');
  told.v1executed = await old.job.execute('admin', 'old-style', 'STOP');
  told.v1deleted = await old.job.delete('admin', 'old-style');
  told.v1gone = await failing(() => old.job.get('admin', 'old-style'));
  told.logout = await client.authn.basicLogout();
}

main().then(
  () => process.stdout.write(JSON.stringify(told)),
  (error) => {
    process.stderr.write(`${JSON.stringify(told)}\n${error && error.stack}\n${JSON.stringify(error && error.data)}\n`);
    process.exit(1);
  },
);
