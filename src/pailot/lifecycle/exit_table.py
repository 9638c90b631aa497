"""OpenPAI's classes of exits, in the order in which they are tried, and the signs in a log that we know them by.

The codes and names are OpenPAI's; the signs are ours, taken from what the programs concerned print.
"""

from __future__ import annotations

from ..values import Value


class Row(Value):
    """One class: its code and name, whose doing it is, and what OpenPAI does then."""

    code: int
    phrase: str
    type: str
    reaction: str


class Sign(Value):
    """A line of a log that tells the class: it holds `text`, fits `pattern` if there is one, and the exit code is that one."""

    text: str
    pattern: str = ""
    exit_code: int | None = None


_USER, _PLATFORM, _UNKNOWN, _STOP = "USER_FAILURE", "PLATFORM_FAILURE", "UNKNOWN_FAILURE", "USER_STOP"
_NEVER, _ALWAYS, _TO_MAX = "NEVER_RETRY", "ALWAYS_RETRY", "RETRY_TO_MAX"

ROWS = (
    Row(0, "Succeeded", "USER_SUCCESS", _NEVER),
    # Said by OpenPAI's controller.
    Row(-100, "ConfigMapExternalDeleted", _PLATFORM, _ALWAYS),
    Row(-101, "PodExternalDeleted", _PLATFORM, _ALWAYS),
    Row(-110, "ConfigMapLocalCacheCreationTimeout", _PLATFORM, _ALWAYS),
    Row(-111, "PodLocalCacheCreationTimeout", _PLATFORM, _ALWAYS),
    Row(-120, "PodCreationTransientError", _PLATFORM, _ALWAYS),
    Row(-200, "PodCreationPermanentError", _USER, _NEVER),
    Row(-210, "StopFrameworkRequested", _STOP, _NEVER),
    Row(-220, "FrameworkAttemptCompletion", _STOP, _NEVER),
    Row(-230, "DeleteTaskRequested", _STOP, _NEVER),
    Row(-300, "PodFailedWithoutFailedContainer", _UNKNOWN, _TO_MAX),
    Row(-310, "PodCreationUnknownError", _UNKNOWN, _TO_MAX),
    # Said by Kubernetes.
    Row(-1000, "PodEvicted", _PLATFORM, _ALWAYS),
    Row(-1001, "PodNodeLost", _PLATFORM, _ALWAYS),
    Row(-1002, "PodScheduledToInsufficientResourceNode", _PLATFORM, _ALWAYS),
    Row(-1003, "PodPreemptedForCriticalPod", _PLATFORM, _ALWAYS),
    Row(-1004, "PodDeadlineExceeded", _STOP, _NEVER),
    Row(-1005, "PodNodeAdmissionForbidden", _USER, _NEVER),
    Row(-1006, "PodNodeAdmissionUnexpectedError", _PLATFORM, _ALWAYS),
    # Said by OpenPAI's database controller.
    Row(-1100, "CreateFrameworkPermanentFailed", _USER, _NEVER),
    # Said by Docker.
    Row(-1300, "InitContainerDockerOOMKilled", _PLATFORM, _ALWAYS),
    Row(-1200, "UserContainerDockerOOMKilled", _USER, _NEVER),
    Row(-1201, "ContainerDockerCreationError", _UNKNOWN, _TO_MAX),
    Row(-1202, "ContainerDockerStartCmdPermissionDenied", _PLATFORM, _NEVER),
    Row(-1203, "ContainerDockerStartCmdNotFound", _PLATFORM, _NEVER),
    Row(-1204, "ContainerDockerStartUnknownError", _UNKNOWN, _TO_MAX),
    Row(-1205, "ContainerGpuDeviceNotFoundError", _PLATFORM, _ALWAYS),
    # Hardware.
    Row(128, "ContainerMayFailDueToGpuDeviceEccError", _PLATFORM, _TO_MAX),
    # Signals.
    Row(130, "ContainerSigIntReceived", _PLATFORM, _ALWAYS),
    Row(131, "ContainerSigQuitReceived", _PLATFORM, _ALWAYS),
    Row(132, "ContainerSigIllReceived", _USER, _NEVER),
    Row(134, "ContainerSigAbrtReceived", _UNKNOWN, _TO_MAX),
    Row(135, "ContainerSigBusReceived", _USER, _NEVER),
    Row(136, "ContainerSigFpeReceived", _USER, _NEVER),
    Row(137, "ContainerSigKillReceived", _PLATFORM, _ALWAYS),
    Row(139, "ContainerSigSegvReceived", _UNKNOWN, _TO_MAX),
    Row(141, "ContainerSigPipeReceived", _USER, _NEVER),
    Row(143, "ContainerSigTermReceived", _PLATFORM, _ALWAYS),
    # Told from the log.
    Row(220, "UserCommandExitWithError", _USER, _NEVER),
    Row(221, "ContainerTensorflowOOMKilled", _USER, _NEVER),
    Row(222, "ContainerMPISegvFault", _USER, _NEVER),
    Row(223, "ContainerCudaUncorrectableECCError", _PLATFORM, _ALWAYS),
    Row(224, "ContainerCudaVersionMismatch", _USER, _NEVER),
    Row(225, "ContainerCudaDnnVersionMismatch", _USER, _NEVER),
    Row(226, "ContainerCudaOOMKilled", _USER, _NEVER),
    Row(228, "ContainerIncorrectParameterError", _USER, _NEVER),
    Row(229, "ContainerIncorrectDataModelError", _USER, _NEVER),
    Row(230, "ContainerInvalidSavePath", _USER, _NEVER),
    Row(231, "ContainerSyntaxError", _USER, _NEVER),
    Row(232, "ContainerImportError", _USER, _NEVER),
    Row(233, "ContainerIndexOutOfRange", _USER, _NEVER),
    Row(234, "ContainerSigvFault", _USER, _NEVER),
    Row(235, "ContainerEngineCoreDump", _USER, _NEVER),
    # Said by OpenPAI's runtime.
    Row(249, "PAIRuntimeSSHBarrierTimeout", _PLATFORM, _NEVER),
    Row(250, "FrameworkBarrierTransientFailed", _PLATFORM, _ALWAYS),
    Row(251, "JobGangAllocationTimeout", "RESOURCE_ALLOCATION_TIMEOUT", "ALWAYS_BACKOFF_RETRY"),
    Row(252, "FrameworkBarrierPermanentFailed", _PLATFORM, _NEVER),
    Row(253, "ContainerPortConflict", _PLATFORM, _ALWAYS),
    Row(254, "ContainerImageNotExists", _USER, _NEVER),
    Row(255, "PAIRuntimeUnknownFailed", _UNKNOWN, _TO_MAX),
    # For codes that no other row has.
    Row(-8000, "ContainerUndefinedNegativeExitCode", _UNKNOWN, _TO_MAX),
    Row(256, "PAIRuntimeExitAbnormally", _PLATFORM, _TO_MAX),
)

CODES_OF_SIGNALS = frozenset((130, 131, 132, 134, 135, 136, 137, 139, 141, 143))
"""The classes known by the exit code alone, 128 and the number of a signal."""

_BY_CODE = {row.code: row for row in ROWS}


def row(code: int) -> Row:
    """The row of one of OpenPAI's codes; for a code that it does not know, the row it has for such."""
    return _BY_CODE.get(code) or _BY_CODE[-8000 if code < 0 else 256]


# How Python shows an uncaught exception: at the beginning of a line, perhaps behind a launcher's `[rank0]:`, with
# the module in front of a name that is not built in. A warning that mentions the name has more in front of it.
_RAISED = r"^\s*(?:\[[^\]]*\]:?\s*)*(?:\w+\.)*"


def _raised(name: str, says: str = "") -> Sign:
    """An exception, with `says`, a pattern, in its message."""
    return Sign(f"{name}:", f"{_RAISED}{name}: .*{says}" if says else f"{_RAISED}{name}:")


# Plain text is enough where only a failure says it; elsewhere a pattern asks for more of the line.
SIGNS = {
    220: (
        Sign("command not found", exit_code=127),
        Sign("not found", r": (?:line )?\d+: .*: not found\s*$", exit_code=127),
        Sign("No such file or directory", exit_code=127),
    ),
    221: (
        Sign("ResourceExhaustedError", rf"{_RAISED}ResourceExhaustedError\b"),
        Sign("OOM when allocating tensor"),
    ),
    222: (
        Sign("exited on signal 11", r"\b(?:mpirun|mpiexec|prterun|orterun)\b.*exited on signal 11\b"),
        Sign("Signal: Segmentation fault", r"^\[[^\]]+:\d+\] Signal: Segmentation fault \(11\)"),
        Sign("APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault"),
    ),
    223: (
        Sign("uncorrectable ECC error"),
        Sign("CUDA_ERROR_ECC_UNCORRECTABLE"),
        Sign("cudaErrorECCUncorrectable"),
    ),
    224: (
        Sign("CUDA driver version is insufficient for CUDA runtime version"),
        Sign("cudaErrorInsufficientDriver"),
        Sign("The NVIDIA driver on your system is too old"),
        Sign("detected CUDA version", r"detected CUDA version \([^)]*\) mismatches"),
        Sign("PTX was compiled with an unsupported toolchain"),
        Sign("CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    ),
    225: (
        Sign("Loaded runtime CuDNN library", r"Loaded runtime CuDNN library: .* but source was compiled with"),
        Sign("CUDNN_STATUS_VERSION_MISMATCH"),
        Sign("cuDNN version incompatibility"),
    ),
    226: (
        Sign("CUDA out of memory"),
        Sign("CUDA error: out of memory"),
        Sign("out of memory", r"(?i)\bcuda runtime error \(2\) ?: out of memory"),
        Sign("CUDA_ERROR_OUT_OF_MEMORY"),
        Sign("cudaErrorMemoryAllocation"),
    ),
    228: (
        Sign("error: ", r"^[^\s:]+(?: [^\s:]+)?: error: (?:unrecognized arguments:|argument |the following arguments are )"),
        Sign("option", r"^[^\s:]+: (?:unrecognized|invalid|unknown) option\b"),
        _raised("UnrecognizedFlagError"),
        Sign("FATAL Flags parsing error"),
        _raised("TypeError", r"\(\) got (?:an unexpected keyword argument|multiple values for)"),  # `dynamic_rnn()` or any other
        _raised("TypeError", r"\(\) (?:missing \d+ required|takes )"),
    ),
    229: (
        Sign("[Errno 2]", r"(?:Error|can't open file .*): \[Errno 2\] No such file or directory"),
        _raised("FileNotFoundError"),
        _raised("OSError", r"Unable to (?:synchronously )?open file"),
        _raised("NotFoundError", r"(?:No such file or directory|not found in checkpoint|matching files for)"),
        Sign("loading state_dict for", r"Error\(s\) in loading state_dict for "),
        Sign("Restoring from checkpoint failed"),
        Sign("Assign requires shapes of both tensors to match"),
        _raised("InvalidArgumentError", r"Incompatible shapes:"),
        _raised("RuntimeError", r"(?:mat1 and mat2 shapes cannot be multiplied|The size of tensor a)"),
        _raised("DataLossError"),
        _raised("UnpicklingError"),
        _raised("JSONDecodeError"),
        _raised("UnicodeDecodeError"),
        _raised("BadZipFile"),
    ),
    230: (
        Sign("Parent directory", r"Parent directory .*(?:doesn't exist, can't save|does not exist)"),
        _raised("OSError", r"Unable to (?:synchronously )?create file"),
    ),
    231: (
        _raised("SyntaxError"),
        _raised("IndentationError"),
        _raised("TabError"),
        Sign("syntax error", r": line \d+: syntax error"),
        Sign("Syntax error", r": \d+: Syntax error"),
        Sign("unexpected EOF while looking for matching"),
    ),
    232: (
        _raised("ImportError"),
        _raised("ModuleNotFoundError"),
    ),
    233: (
        _raised("IndexError"),
        Sign("index out of range", r"^panic: runtime error: index out of range"),
        Sign("ArrayIndexOutOfBoundsException"),
        Sign("_M_range_check"),
    ),
    234: (
        Sign("Segmentation fault"),
        Sign("SIGSEGV", r"(?i)\b(?:signal|fatal|received|caught|killed)\b.*\bSIGSEGV\b|\bSIGSEGV\b.*\b(?:received|caught)\b"),
    ),
    235: (Sign("(core dumped)"),),
}
"""By the code of the class; an entry fits if any of its signs is found."""
