"""The job file, said once: what is checked and what `pailot schema` prints both come from here."""

from __future__ import annotations

from . import reserved
from .schema_types import Anything, ByKey, Constant, Flag, ListOf, Number, OneOf, Record, Shape, Table, Text, Whole

TYPE_CHECKING = False

PROTOCOL_VERSION = Constant(2, "2", doc="Version of the job protocol.")
NAME = Text(
    "Name of the job or prerequisite.",
    pattern=r"[a-zA-Z0-9_-]+",
    hint="use letters, digits, '-' and '_' only",
    longest=255,
)
VERSION = OneOf("a text or a number", Text(), Number(), doc="Any version; 'latest' if left out.")
IDENTIFIER = r"[a-zA-Z_][a-zA-Z0-9_]*"
IDENTIFIER_HINT = "it must be a C identifier: letters, digits and '_', not beginning with a digit"
COMMANDS = ListOf(Text(), "Shell commands, run in order.", least=1, expected="a list of commands")

EVENTS = ("containerStart", "taskStarts", "containerExit", "taskSucceeds", "taskFails")
POLICY = Text("What a failure of these commands means.", choices=("fail", "ignore"))
CALLBACK = Record(
    {
        "event": Text("When the commands run.", choices=EVENTS),
        "commands": ListOf(Text(), "Commands of the plugin's language, a shell's by default.", expected="a list of commands"),
        "failurePolicy": POLICY,
    },
    required=("event", "commands"),
    what="in a callback",
)

_COMMON: dict[str, Shape] = {
    "protocolVersion": PROTOCOL_VERSION,
    "name": NAME,
    "version": VERSION,
    "contributor": Text("Who made it."),
    "description": Text("What it is."),
}
_EXTENSION: dict[str, Shape] = {
    "plugin": Text("Plugin that handles this prerequisite; `cmd` by default (`docker` for a dockerimage)."),
    "require": ListOf(Text(), "Names of prerequisites that must come before this one."),
    "callbacks": ListOf(CALLBACK, "Commands for the events in a task's life."),
    "failurePolicy": POLICY,
}


def _prerequisite(*kinds: str, uri: Shape) -> Record:
    return Record(
        {**_COMMON, "type": Text("Kind of prerequisite.", choices=kinds), **_EXTENSION, "uri": uri},
        required=("name", "type"),
        extra=Anything("Read in templates as <% this.parameters.KEY %>."),
        what="in a prerequisite",
    )


_DOCKER_IMAGE = Record(
    {
        **_COMMON,
        "type": Text("Kind of prerequisite.", choices=("dockerimage",)),
        **_EXTENSION,
        "uri": Text("The image."),
        "auth": Record(
            {
                "username": Text("User of the registry."),
                "password": Text("Password, as a reference: <% $secrets.NAME %>."),
                "registryuri": Text("Address of the registry; Docker Hub by default."),
            },
            "Credentials of the registry.",
            extra=Text(),
        ),
    },
    required=("name", "type", "uri"),
    what="in a dockerimage prerequisite",
)
_SCRIPT_OR_OUTPUT = _prerequisite("script", "output", uri=Text("Where it is."))
_DATA = _prerequisite("data", uri=OneOf("a list of texts", ListOf(Text()), Text(), doc="Where the data is."))
PREREQUISITE = ByKey(
    "type", {"dockerimage": _DOCKER_IMAGE, "script": _SCRIPT_OR_OUTPUT, "output": _SCRIPT_OR_OUTPUT, "data": _DATA}
)

DAY_SECONDS = 86_400
MOST_RUN_SECONDS = 10 * 365 * DAY_SECONDS
MOST_TASKS = 10_000
"""Of one job."""
MOST_CPUS = MOST_GPUS = 1_000_000
MOST_MB = 1_000_000_000
"""A petabyte."""
MOST_RETRIES = 1_000_000
MOST_PORTS = 65_535

_BOUND = "-1 switches it off."
TASK_ROLE = Record(
    {
        "protocolVersion": PROTOCOL_VERSION,
        "instances": Whole("Number of tasks of this role; 1 by default.", least=1, most=MOST_TASKS),
        "completion": Record(
            {
                "minFailedInstances": Whole(
                    f"So many failed tasks fail the job; 1 by default. {_BOUND}",
                    least=-1,
                    most=MOST_TASKS,
                    never=0,
                    nullable=True,
                ),
                "minSucceededInstances": Whole(
                    f"So many succeeded tasks end the job as succeeded; all of them by default. {_BOUND}",
                    least=-1,
                    most=MOST_TASKS,
                    never=0,
                    nullable=True,
                ),
            },
            "When this role ends the job.",
            what="in 'completion'",
        ),
        "taskRetryCount": Whole("How often a failed task is tried again; 0 by default.", least=0, most=MOST_RETRIES),
        "prerequisites": ListOf(Text(), "Prerequisites of this role, in the order in which they start."),
        "dockerImage": Text("Name of a dockerimage prerequisite."),
        "data": Text("Name of a data prerequisite; $data in templates."),
        "output": Text("Name of an output prerequisite; $output in templates."),
        "script": Text("Name of a script prerequisite; $script in templates."),
        "extraContainerOptions": Record(
            {
                "shmMB": Whole("Size of /dev/shm; 512 by default.", least=0, most=MOST_MB),
                "infiniband": Flag("Whether InfiniBand devices are used."),
            },
            "More about the container.",
            extra=Anything(),
        ),
        "resourcePerInstance": Record(
            {
                "cpu": Whole("Number of CPUs.", least=0, most=MOST_CPUS),
                "memoryMB": Whole("Memory in MB.", least=0, most=MOST_MB),
                "gpu": Whole("Number of GPUs.", least=0, most=MOST_GPUS),
                "ports": Table(
                    Whole("How many ports.", least=1, most=MOST_PORTS),
                    "Ports wanted, by label; 'ssh' and 'http' are always there.",
                    pattern=IDENTIFIER,
                    hint=IDENTIFIER_HINT,
                    least=1,
                    nullable=True,
                ),
            },
            "What one task needs.",
            required=("cpu", "memoryMB", "gpu"),
            what="in 'resourcePerInstance'",
        ),
        "commands": COMMANDS,
    },
    required=("dockerImage", "resourcePerInstance", "commands"),
    what="in a task role",
)

DEPLOYMENT = Record(
    {
        "name": NAME,
        "protocolVersion": PROTOCOL_VERSION,
        "taskRoles": Table(
            Record(
                {"preCommands": COMMANDS, "postCommands": COMMANDS},
                "Commands before and after the role's own.",
                what="in a deployment's role",
            ),
            pattern=IDENTIFIER,
            hint=IDENTIFIER_HINT,
            least=1,
        ),
    },
    "Commands that adapt the job to a place.",
    required=("name", "taskRoles"),
    extra=Anything(),
    what="in a deployment",
)

PRIORITIES = ("crit", "prod", "test", "oppo")
_HIVED_ROLE = Record(
    {
        "skuType": Text("SKU type to run on.", nullable=True),
        "pinnedCellId": Text("Pinned cell to run in; excludes skuType.", nullable=True),
        "affinityGroupName": Text("Roles of one group are placed together.", nullable=True),
        "gpuType": Text("Older name of skuType.", nullable=True),
        "reservationId": Text("Older name of pinnedCellId.", nullable=True),
    },
    extra=Anything(),
)
HIVED = Record(
    {
        "jobPriorityClass": Text("Priority of the job; 'test' by default.", choices=PRIORITIES),
        "taskRoles": Table(_HIVED_ROLE, pattern=r"[A-Za-z0-9._~]+", hint="use letters, digits, '.', '_' and '~' only", least=1),
        "gangReleaseEnable": Flag(),
        "lazyPreemptionEnable": Flag(),
        "ignoreK8sSuggestedNodes": Flag(),
    },
    "Placement and priority.",
    extra=Anything(),
)
RUNTIME_PLUGIN = Record(
    {
        "plugin": Text("Name of the plugin.", shortest=1),
        "parameters": Anything("What the plugin takes."),
        "failurePolicy": Anything("'fail' (default) or 'ignore'."),
        "taskroles": ListOf(Text(), "Roles it applies to; all by default."),
    },
    required=("plugin",),
    extra=Anything(),
    what="in a runtime plugin",
)
_CHANNEL = r"[A-Za-z0-9][A-Za-z0-9._-]*"
_CHANNEL_HINT = "use letters, digits, '.', '-' and '_' only"
_HOLDABLE = r"[^\x00]*"
_HOLDABLE_HINT = "no variable can hold a NUL character"
_AFTER = Text(
    pattern=r"[A-Za-z0-9._~-]{1,512}(:(success|end))?",
    hint="write it as JOB, JOB:success or JOB:end, where JOB is a name or USER~NAME",
)
PAILOT = Record(
    {
        "maxRunSeconds": Number("Time limit of one attempt, up to ten years.", least=0, most=MOST_RUN_SECONDS),
        "graceSeconds": Number(
            "Time between SIGTERM and SIGKILL when a task is stopped, up to a day; 30 by default.", least=0, most=DAY_SECONDS
        ),
        "retryDelaySeconds": Number(
            "Delay before the second retry, doubled for each further one, up to a day; 1 by default.", least=0, most=DAY_SECONDS
        ),
        "holdOnFailureMinutes": Number(
            "How long a failed task is kept for inspection, up to 30 days.", least=0, most=30 * DAY_SECONDS // 60
        ),
        "holdCommand": Text("Command to run while a failed task is kept."),
        "code": Text("Folder or URI brought into the working directory first."),
        "environment": Table(
            OneOf("a text, number or boolean", Text(pattern=_HOLDABLE, hint=_HOLDABLE_HINT), Number(), Flag()),
            "More environment variables; those that Pailot sets for each task are refused.",
            pattern=IDENTIFIER,
            hint=IDENTIFIER_HINT,
            but=reserved.PATTERN,
            but_hint=reserved.HINT,
        ),
        "dataDir": Text("Given to tasks as PAI_DATA_DIR.", pattern=_HOLDABLE, hint=_HOLDABLE_HINT),
        "outputDir": Text("Given to tasks as PAI_OUTPUT_DIR.", pattern=_HOLDABLE, hint=_HOLDABLE_HINT),
        "gpuType": Text("Type of GPU to run on."),
        "authFile": Text("File with three lines: registry, user, password."),
        "channels": Record(
            {
                "inputs": OneOf(
                    "a list of names, or a mapping of names to URIs",
                    ListOf(Text()),
                    Table(Text(), pattern=_CHANNEL, hint=_CHANNEL_HINT),
                    doc="Input channels, and perhaps where their data is: PAI_INPUT_NAME, /ml/input/data/NAME.",
                ),
                "outputs": OneOf(
                    "a list of names, or a mapping of names to URIs",
                    ListOf(Text()),
                    Table(Text(), pattern=_CHANNEL, hint=_CHANNEL_HINT),
                    doc="Output channels, and perhaps where their data goes in the end: PAI_OUTPUT_NAME, /ml/output/NAME.",
                ),
                "code": Text("Folder or archive that becomes /ml/usercode."),
                "hyperparameters": Table(Text(), "Written to /ml/input/config/hyperparameters.json."),
                "mount": Flag("Give tasks a real /ml without a container, too, where bubblewrap works."),
            },
            "Folders that the tasks of a job share, laid out as /ml is in Alibaba's PAI.",
            what="in 'channels'",
        ),
        "labels": Table(Text(), "Keys and values that the job is found by."),
        "after": OneOf(
            "a job, or a list of jobs",
            _AFTER,
            ListOf(_AFTER),
            doc="Jobs that have to succeed (JOB, JOB:success) or end (JOB:end) before this one starts.",
        ),
        "portBase": Table(
            Table(Whole(least=1, most=MOST_PORTS)), "First port per role and label, for jobs that need exact ports."
        ),
    },
    "Options of Pailot's own.",
    what="in 'extras.pailot'",
)
EXTRAS = Record(
    {
        "submitFrom": Anything("Who wrote the file."),
        "gangAllocation": Anything("false: tasks may start separately."),
        "hivedScheduler": HIVED,
        "hivedscheduler": HIVED,
        "storages": ListOf(
            Record(
                {"name": Text("Name of the storage."), "mountPath": Text("Where it appears; /mnt/NAME by default.")},
                extra=Anything(),
            ),
            "Storages to mount; an empty list means your default ones.",
        ),
        "com.microsoft.pai.runtimeplugin": ListOf(RUNTIME_PLUGIN, "Plugins for all tasks."),
        "jobStatusChangeNotification": Record(
            {state: Flag(f"Mail when {state}.") for state in ("running", "succeeded", "failed", "stopped", "retried")},
            "Mails to the owner.",
            extra=Anything(),
        ),
        "pailot": PAILOT,
    },
    "Whatever the platform or a plugin understands; other keys are kept.",
    extra=Anything(),
)

JOB = Record(
    {
        **_COMMON,
        "type": Constant("job", doc="Always 'job'."),
        "prerequisites": ListOf(PREREQUISITE, "Images, data, scripts and outputs that roles refer to.", least=1),
        "parameters": Record({}, "Values for templates: <% $parameters.NAME %>.", extra=Anything()),
        "secrets": Record({}, "Values that no log, plan or answer ever shows: <% $secrets.NAME %>.", extra=Anything()),
        "jobRetryCount": Whole("How often a failed job is tried again; 0 by default.", least=0, most=MOST_RETRIES),
        "taskRoles": Table(TASK_ROLE, "The kinds of task the job has.", pattern=IDENTIFIER, hint=IDENTIFIER_HINT, least=1),
        "deployments": ListOf(DEPLOYMENT, "Named sets of extra commands; `defaults.deployment` chooses one.", least=1),
        "defaults": Record(
            {
                "virtualCluster": OneOf("a text", Text(nullable=True), Number(), doc="Virtual cluster; 'default' by default."),
                "deployment": Text("Name of the deployment to apply."),
            },
            "Choices that can be changed at submission.",
            extra=Anything(),
        ),
        "extras": EXTRAS,
    },
    "An OpenPAI job, protocol version 2.",
    required=("protocolVersion", "name", "type", "taskRoles"),
    what="in a job",
)


def json_schema() -> dict[str, object]:
    """The JSON Schema of a job file, ready for editors and yaml-language-server."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "OpenPAI job protocol v2, as read by Pailot",
        **JOB.schema(),
    }
