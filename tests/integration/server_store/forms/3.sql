-- The form 3 of the server's database with some rows, as it was released. Never changed: later forms begin here.

CREATE TABLE jobs (
    number NUMBER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    username TEXT NOT NULL,
    name TEXT NOT NULL,
    submitted DOUBLE PRECISION NOT NULL,
    vc TEXT NOT NULL,
    state TEXT NOT NULL,
    execution_type TEXT NOT NULL,
    priority TEXT,
    started DOUBLE PRECISION,
    ended DOUBLE PRECISION,
    attempts BIGINT NOT NULL,
    retries BIGINT NOT NULL,
    user_retries BIGINT NOT NULL,
    platform_retries BIGINT NOT NULL,
    exit_code BIGINT,
    reason TEXT NOT NULL,
    tasks BIGINT NOT NULL,
    roles BIGINT NOT NULL,
    gpus BIGINT NOT NULL,
    cpus DOUBLE PRECISION NOT NULL,
    memory_mb BIGINT NOT NULL,
    folder TEXT NOT NULL,
    engine TEXT NOT NULL,
    submit_from TEXT NOT NULL,
    code TEXT,
    tags TEXT,
    labels TEXT,
    more TEXT,
    UNIQUE (username, name)
);
CREATE INDEX jobs_unfinished ON jobs (number) WHERE state NOT IN ('STOPPED', 'SUCCEEDED', 'FAILED');
CREATE INDEX jobs_by_name ON jobs (name, number);
CREATE INDEX jobs_by_end ON jobs (ended);
CREATE INDEX jobs_by_code ON jobs (code) WHERE code IS NOT NULL;
CREATE TABLE job_texts (
    number BIGINT PRIMARY KEY REFERENCES jobs (number) ON DELETE CASCADE,
    config TEXT NOT NULL,
    plan TEXT NOT NULL,
    secrets BLOB
);
CREATE INDEX job_texts_sealed ON job_texts (number) WHERE secrets IS NOT NULL;
CREATE TABLE job_marks (
    mark TEXT NOT NULL,
    number BIGINT NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
    PRIMARY KEY (mark, number)
);
CREATE INDEX job_marks_by_job ON job_marks (number);
CREATE TABLE job_events (
    number BIGINT NOT NULL REFERENCES jobs (number) ON DELETE CASCADE,
    sequence BIGINT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (number, sequence)
);
CREATE TABLE users (
    username TEXT PRIMARY KEY,
    email TEXT NOT NULL,
    password_hash TEXT NOT NULL,
    grouplist TEXT NOT NULL,
    extension TEXT NOT NULL,
    unix_user TEXT,
    created DOUBLE PRECISION NOT NULL
);
CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    username TEXT NOT NULL REFERENCES users (username) ON DELETE CASCADE,
    created DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (issuer, subject),
    UNIQUE (issuer, username)
);
CREATE INDEX identities_by_user ON identities (username);
CREATE TABLE user_groups (
    groupname TEXT PRIMARY KEY,
    description TEXT NOT NULL,
    external_name TEXT NOT NULL,
    extension TEXT NOT NULL
);
CREATE TABLE tokens (
    digest TEXT PRIMARY KEY,
    username TEXT NOT NULL REFERENCES users (username) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    issued DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION,
    claims TEXT NOT NULL
);
CREATE INDEX tokens_by_user ON tokens (username);
CREATE INDEX tokens_by_end ON tokens (expires) WHERE expires IS NOT NULL;
CREATE TABLE login_failures (who TEXT PRIMARY KEY, count BIGINT NOT NULL, last DOUBLE PRECISION NOT NULL);
CREATE TABLE storages (name TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE virtual_clusters (name TEXT PRIMARY KEY, data TEXT NOT NULL);
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE outbox (
    number NUMBER PRIMARY KEY,
    job TEXT NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    due DOUBLE PRECISION NOT NULL,
    attempts BIGINT NOT NULL,
    error TEXT NOT NULL
);
CREATE INDEX outbox_by_due ON outbox (due);
CREATE TABLE code_blobs (
    digest TEXT PRIMARY KEY,
    size BIGINT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    used DOUBLE PRECISION NOT NULL
);
CREATE INDEX code_blobs_by_use ON code_blobs (used);
CREATE TABLE library_texts (
    digest TEXT PRIMARY KEY,
    text TEXT NOT NULL,
    retired DOUBLE PRECISION
);
CREATE TABLE library (
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    type TEXT NOT NULL,
    owner TEXT NOT NULL,
    about TEXT NOT NULL,
    digest TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    updated DOUBLE PRECISION NOT NULL,
    uses BIGINT NOT NULL,
    used DOUBLE PRECISION,
    PRIMARY KEY (name, version)
);

INSERT INTO jobs (number, id, username, name, submitted, vc, state, execution_type, priority, started, ended, attempts, retries, user_retries, platform_retries, exit_code, reason, tasks, roles, gpus, cpus, memory_mb, folder, engine, submit_from, code, tags, labels, more) VALUES (1, '0000000000000001', 'ann', 'train', 1700000000.125, 'research', 'SUCCEEDED', 'START', 'prod', 1700000001.5, 1700000002.25, 1, 0, 0, 0, 0, '', 2, 1, 8, 4.5, 1024, '', 'local', '10.0.0.1', 'ab', '["red", "\u65e5"]', '{"team": "vision"}', '{"x": [1]}');
INSERT INTO jobs (number, id, username, name, submitted, vc, state, execution_type, priority, started, ended, attempts, retries, user_retries, platform_retries, exit_code, reason, tasks, roles, gpus, cpus, memory_mb, folder, engine, submit_from, code, tags, labels, more) VALUES (2, '0000000000000002', 'bob', 'train', 1700000003.0, 'default', 'WAITING', 'START', NULL, NULL, NULL, 0, 0, 0, 0, NULL, '', 1, 1, 0, 1.0, 128, '', 'local', '', NULL, NULL, NULL, NULL);
INSERT INTO jobs (number, id, username, name, submitted, vc, state, execution_type, priority, started, ended, attempts, retries, user_retries, platform_retries, exit_code, reason, tasks, roles, gpus, cpus, memory_mb, folder, engine, submit_from, code, tags, labels, more) VALUES (5, '0000000000000005', 'ann', 'zoë', 1700000004.0, 'default', 'FAILED', 'STOP', 'oppo', 1700000005.0, 1700000006.0, 3, 2, 1, 1, -210, 'it''s over', 1, 1, 0, 1.0, 128, '', 'docker', '', NULL, NULL, NULL, NULL);
INSERT INTO job_texts (number, config, plan, secrets) VALUES (1, 'protocolVersion: 2', '{}', HEX('00ff10'));
INSERT INTO job_texts (number, config, plan, secrets) VALUES (2, '', '', NULL);
INSERT INTO job_texts (number, config, plan, secrets) VALUES (5, '', '', NULL);
INSERT INTO job_marks (mark, number) VALUES ('t:red', 1);
INSERT INTO job_marks (mark, number) VALUES ('t:日', 1);
INSERT INTO job_marks (mark, number) VALUES ('l:["team", "vision"]', 1);
INSERT INTO job_events (number, sequence, data) VALUES (1, 1, '{"event": "preempted"}');
INSERT INTO users (username, email, password_hash, grouplist, extension, unix_user, created) VALUES ('ann', 'a@b.c', '$argon2id$x', '["default"]', '{"k": 1}', NULL, 1.5);
INSERT INTO user_groups (groupname, description, external_name, extension) VALUES ('default', 'd', '', '{"acls": {"admin": false}}');
INSERT INTO tokens (digest, username, kind, issued, expires, claims) VALUES ('00', 'ann', 'browser', 1.0, 2.0, '{"username": "ann"}');
INSERT INTO login_failures (who, count, last) VALUES ('name:ann', 3, 1.5);
INSERT INTO storages (name, data) VALUES ('nfs', '{}');
INSERT INTO virtual_clusters (name, data) VALUES ('research', '{"gpus": 2}');
INSERT INTO meta (name, value) VALUES ('id', 'abc');
INSERT INTO outbox (number, job, kind, payload, created, due, attempts, error) VALUES (7, '0000000000000001', 'mail', '{"to": "x"}', 1.0, 2.0, 1, 'refused');
INSERT INTO code_blobs (digest, size, created, used) VALUES ('ab', 10, 1.0, 2.0);
INSERT INTO library_texts (digest, text, retired) VALUES ('cd', 'name: mnist', NULL);
INSERT INTO library (name, version, type, owner, about, digest, created, updated, uses, used) VALUES ('mnist', '2', 'data', 'ann', '{}', 'cd', 1.0, 2.0, 3, 4.5);
