"""The shapes of responses, for the OpenAPI document: what a client may rely on. More keys may come."""

from __future__ import annotations

from ..lifecycle.states import FAILED, RUNNING, STOPPED, STOPPING, SUCCEEDED, WAITING

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
WHOLE: Schema = {"type": "integer"}
SWITCH: Schema = {"type": "boolean"}
ANY: Schema = {}
OBJECT: Schema = {"type": "object"}


def a(name: str) -> Schema:
    """One of the named shapes below."""
    return {"$ref": f"#/components/schemas/{name}"}


def many(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def by_name(value: Schema) -> Schema:
    """A mapping from names."""
    return {"type": "object", "additionalProperties": value}


def maybe(schema: Schema) -> Schema:
    """That, or null."""
    if "$ref" in schema:
        return {"anyOf": [schema, {"type": "null"}]}
    return {**schema, "type": [schema["type"], "null"]}


def record(**fields: Schema) -> Schema:
    """An object with at least these keys; one that ends with `_` may be left out."""
    return {
        "type": "object",
        "properties": {key.rstrip("_"): value for key, value in fields.items()},
        "required": [key for key in fields if not key.endswith("_")],
    }


TIME: Schema = {"type": ["integer", "null"], "description": "Milliseconds since 1970."}
STATE: Schema = {"type": "string", "enum": [WAITING, RUNNING, STOPPING, STOPPED, SUCCEEDED, FAILED, "UNKNOWN"]}
EXECUTION: Schema = {"type": "string", "enum": ["START", "STOP"]}
MESSAGE = record(message=TEXT)
DONE = record(status=WHOLE, message=TEXT)
SENT = record(status=WHOLE, message=TEXT, name=TEXT, warnings_=many(TEXT))
_ASKED = record(cpus=maybe(NUMBER), memoryMB=maybe(NUMBER), gpus=maybe(WHOLE))
_PEAKS = record(cpuSeconds=maybe(NUMBER), peakCpus=maybe(NUMBER), peakMemoryMB=NUMBER, peakGpuMemoryMB=maybe(NUMBER))
_USED_NOW = record(at=WHOLE, cpus=NUMBER, memoryMB=NUMBER, processes=WHOLE, gpuPercent=maybe(NUMBER), gpuMemoryMB=maybe(NUMBER))
_CURVE = record(
    taskAttempt=WHOLE,
    peak=record(cpus=NUMBER, memoryMB=NUMBER, gpuMemoryMB=maybe(NUMBER)),
    mean=record(cpus=NUMBER, memoryMB=NUMBER),
    series=record(
        at=many(WHOLE),
        cpus=many(NUMBER),
        memoryMB=many(NUMBER),
        maxMemoryMB=many(NUMBER),
        processes=many(WHOLE),
        gpuPercent=maybe(many(maybe(NUMBER))),
        gpuMemoryMB=maybe(many(NUMBER)),
    ),
)
_AMOUNTS = record(cpu=NUMBER, memory=WHOLE, gpu=WHOLE, vCores=NUMBER, GPUs=WHOLE)
_RETRIES = record(user=WHOLE, platform=WHOLE, resource=WHOLE)
_ATTEMPT: dict[str, Schema] = {
    "attemptId": WHOLE,
    "attemptState": STATE,
    "currentAttemptCreatedTime": TIME,
    "currentAttemptLaunchedTime": TIME,
    "currentAttemptCompletedTime": TIME,
    "containerId": maybe(TEXT),
    "containerIp": maybe(TEXT),
    "containerNodeName": maybe(TEXT),
    "containerPorts": by_name(TEXT),
    "containerGpus": maybe(TEXT),
    "containerLog": TEXT,
    "containerExitCode": maybe(WHOLE),
    "containerExitSpec": maybe(OBJECT),
    "containerExitDiagnostics": maybe(TEXT),
}
_TASK: dict[str, Schema] = {
    "taskIndex": WHOLE,
    "taskUid": TEXT,
    "taskState": STATE,
    "retries": WHOLE,
    "accountableRetries": WHOLE,
    "createdTime": TIME,
    "launchedTime": TIME,
    "completedTime": TIME,
}
_JOB: dict[str, Schema] = {
    "username": TEXT,
    "state": STATE,
    "subState": maybe(TEXT),
    "executionType": EXECUTION,
    "retries": WHOLE,
    "retryDetails": _RETRIES,
    "retryDelayTime": maybe(WHOLE),
    "submissionTime": WHOLE,
    "createdTime": TIME,
    "launchedTime": TIME,
    "completedTime": TIME,
    "appExitCode": maybe(WHOLE),
    "virtualCluster": TEXT,
}
_EXIT: dict[str, Schema] = {
    "appExitSpec": maybe(OBJECT),
    "appExitDiagnostics": maybe(TEXT),
    "appExitMessages": maybe(OBJECT),
    "appExitTriggerMessage": maybe(TEXT),
    "appExitTriggerTaskRoleName": maybe(TEXT),
    "appExitTriggerTaskIndex": maybe(WHOLE),
}

SCHEMAS: dict[str, Schema] = {
    "Error": record(code_=TEXT, message=TEXT),
    "JobItem": record(
        debugId=TEXT,
        name=TEXT,
        **_JOB,
        tags=many(TEXT),
        totalGpuNumber=WHOLE,
        totalTaskNumber=WHOLE,
        totalTaskRoleNumber=WHOLE,
        jobPriority=maybe(TEXT),
    ),
    "RunItem": record(name=TEXT, user=TEXT, state=TEXT, submitted=NUMBER, engine=TEXT),
    "Task": record(**_TASK, **_ATTEMPT),
    "TaskRoles": by_name(record(taskRoleStatus=record(name=TEXT), taskStatuses=many(a("Task")))),
    "Job": record(
        debugId=TEXT,
        name=TEXT,
        tags=many(TEXT),
        jobPriority_=maybe(TEXT),
        jobStatus=record(
            **_JOB,
            **_EXIT,
            attemptId_=WHOLE,
            appId_=TEXT,
            attemptState=STATE,
            appProgress=NUMBER,
            appTrackingUrl=TEXT,
            appCreatedTime=TIME,
            appLaunchedTime=TIME,
            appCompletedTime=TIME,
            appExitType=maybe(TEXT),
        ),
        taskRoles=a("TaskRoles"),
    ),
    "TaskHistory": record(
        username=TEXT,
        jobName=TEXT,
        jobAttemptId=WHOLE,
        taskRoleName=TEXT,
        **_TASK,
        attempts=many(record(**_ATTEMPT)),
    ),
    "OldAttempt": record(
        jobName=TEXT,
        frameworkName=TEXT,
        userName=TEXT,
        state=STATE,
        originState=maybe(TEXT),
        attemptIndex=WHOLE,
        attemptStartedTime=TIME,
        attemptCompletedTime=TIME,
        exitCode=maybe(WHOLE),
        exitPhrase=maybe(TEXT),
        exitType=maybe(TEXT),
        exitDiagnostics=maybe(OBJECT),
        **_EXIT,
        totalGpuNumber=WHOLE,
        totalTaskNumber=WHOLE,
        totalTaskRoleNumber=WHOLE,
        taskRoles=a("TaskRoles"),
        isLatest=SWITCH,
    ),
    "Events": record(
        totalCount=WHOLE,
        data=many(
            record(
                uid=TEXT,
                frameworkName=TEXT,
                podUid=maybe(TEXT),
                taskroleName=maybe(TEXT),
                taskName=maybe(TEXT),
                taskIndex=maybe(WHOLE),
                type={"type": "string", "enum": ["Normal", "Warning"]},
                reason=TEXT,
                message=TEXT,
                firstTimestamp=TEXT,
                lastTimestamp=TEXT,
                count=WHOLE,
                sourceComponent=TEXT,
                sourceHost=maybe(TEXT),
            )
        ),
    ),
    "Locations": record(locations=many(record(name=TEXT, uri=TEXT))),
    "User": record(
        username=TEXT,
        email=TEXT,
        grouplist=many(TEXT),
        extension=OBJECT,
        admin=SWITCH,
        virtualCluster=many(TEXT),
        storageConfig=many(TEXT),
    ),
    "Group": record(groupname=TEXT, description=TEXT, externalName=TEXT, extension=OBJECT),
    "VirtualCluster": record(
        capacity=NUMBER,
        usedCapacity=NUMBER,
        maxCapacity_=NUMBER,
        dedicated=SWITCH,
        resourcesUsed=_AMOUNTS,
        resourcesGuaranteed=_AMOUNTS,
        resourcesTotal=_AMOUNTS,
        userLimits_=record(jobs_=WHOLE, gpus_=WHOLE),
    ),
    "Storage": record(name=TEXT, share=SWITCH, volumeName=TEXT, default=SWITCH),
    "Alert": record(
        labels=by_name(TEXT),
        annotations=by_name(TEXT),
        status=record(state=TEXT, silencedBy=many(TEXT), inhibitedBy=many(TEXT)),
        startsAt=TEXT,
        endsAt=TEXT,
        fingerprint=TEXT,
    ),
    "KubernetesList": record(kind=TEXT, apiVersion=TEXT, items=many(record(metadata=OBJECT, spec=OBJECT, status=OBJECT))),
    "TaskUsage": record(
        role=TEXT, index=WHOLE, attempt=WHOLE, asked=_ASKED, now=maybe(_USED_NOW), peak=maybe(_PEAKS), attempts=many(_CURVE)
    ),
    "TaskUsageNow": record(role=TEXT, index=WHOLE, asked=_ASKED, now=maybe(_USED_NOW), peak=maybe(_PEAKS)),
    "Record": record(
        name=TEXT,
        user=TEXT,
        state=STATE,
        attempt=WHOLE,
        retries=WHOLE,
        exitCode=maybe(WHOLE),
        reason=maybe(TEXT),
        task=maybe(TEXT),
        lastLines=many(TEXT),
        taskRoles=by_name(
            record(tasks=many(record(index=WHOLE, state=TEXT, exitCode=maybe(WHOLE), attempts=WHOLE, ports=OBJECT)))
        ),
    ),
    "LibraryEntry": record(
        name=TEXT,
        version=TEXT,
        versions=many(TEXT),
        type={"type": "string", "enum": ["data", "dockerimage", "job", "output", "script"]},
        description=TEXT,
        owner=TEXT,
        size={"type": ["integer", "null"], "description": "Bytes of a data set, as its file says."},
        plugin=TEXT,
        uri=many(TEXT),
        require=many(TEXT),
        sha256=many(TEXT),
        source={"type": "string", "enum": ["server", "folder"]},
        uses=WHOLE,
        created=TIME,
        updated=TIME,
        used=TIME,
    ),
    "LibraryContent": record(
        uri=TEXT,
        state={"type": "string", "enum": ["here", "not-fetched", "not-shared"]},
        host=TEXT,
        path=maybe(TEXT),
        bytes=maybe(WHOLE),
        files=maybe(WHOLE),
        fetched=TIME,
        used=TIME,
        jobs=WHOLE,
    ),
    "JournalEntry": record(at=NUMBER, event=TEXT),
    "Problem": record(
        file=TEXT, line=WHOLE, column=WHOLE, endLine=WHOLE, endColumn=WHOLE, severity=TEXT, code=TEXT, message=TEXT, path=TEXT
    ),
}

_ITEM: Schema = {"anyOf": [a("JobItem"), a("RunItem")]}
JOB_LIST: Schema = {"anyOf": [many(_ITEM), record(totalCount=WHOLE, data=many(_ITEM))]}
LOGIN = record(user=TEXT, token=TEXT, admin=SWITCH, hasGitHubPAT_=SWITCH)
INFO = record(name=TEXT, version=TEXT, launcherType=TEXT, authnMethod=TEXT)
SKUS = by_name(record(cpu=WHOLE, memory=WHOLE, gpu=WHOLE))
STORAGE: Schema = {"allOf": [a("Storage"), record(type=TEXT, data=OBJECT, readOnly=SWITCH)]}
OLD_STORAGE = record(name=TEXT, default=SWITCH, servers=many(TEXT), mountInfos=many(OBJECT))
OLD_SERVER = record(spn=TEXT, type=TEXT, data=OBJECT, extension=OBJECT)
