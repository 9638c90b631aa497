// NNI's own OpenPAI environment service, unchanged, against a server: start, look until it is over, stop.
// Run by NNI's own node: NODE_PATH has to name the folder nni_node.
'use strict';
const [host, username, token, folder] = process.argv.slice(2);
global.nni = { args: { logLevel: 'critical' }, logStream: { writeLine() {}, writeLineSync() {} } };  // as its main program makes it
const { OpenPaiEnvironmentService } = require('training_service/reusable/environments/openPaiEnvironmentService');
const { EnvironmentInformation } = require('training_service/reusable/environment');

const config = {
    platform: 'openpai', host, username, token, trialCpuNumber: 1, trialMemorySize: '128mb', trialGpuNumber: 0,
    dockerImage: 'debian', storageConfigName: 'nni', localStorageMountPoint: folder, containerStorageMountPoint: folder,
};
const service = new OpenPaiEnvironmentService(config, { experimentId: 'exp' });

async function until(environment, states) {
    for (;;) {
        try {
            await service.refreshEnvironmentsStatus([environment]);
        } catch (error) {
            if (!String(error).includes('is failed')) throw error;  // how NNI tells that a job failed
        }
        if (states.includes(environment.status)) return environment.status;
        await new Promise(resolve => setTimeout(resolve, 100));
    }
}

async function run(name, command) {
    const environment = new EnvironmentInformation(name, name, name);
    environment.command = command;
    await service.startEnvironment(environment);
    return environment;
}

(async () => {
    const good = await run('nni_exp_exp_env_good', 'echo from NNI > said');
    const bad = await run('nni_exp_exp_env_bad', 'exit 3');
    const long = await run('nni_exp_exp_env_long', 'sleep 1000');
    const told = {
        good: await until(good, ['SUCCEEDED', 'FAILED']),
        bad: await until(bad, ['SUCCEEDED', 'FAILED']),
        running: await until(long, ['RUNNING']),
        tracking: good.trackingUrl,
    };
    await service.stopEnvironment(long);
    told.stopped = await until(long, ['USER_CANCELED']);
    console.log(JSON.stringify(told));
    process.exit(0);
})().catch(error => { console.error(error); process.exit(1); });
