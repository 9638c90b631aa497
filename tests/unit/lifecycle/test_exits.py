"""How an end is put in words, and in which of OpenPAI's classes."""

from __future__ import annotations

import re
import signal
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pailot.lifecycle import states
from pailot.lifecycle.exit_classes import TAIL_CHARACTERS, TAIL_LINES, End, ExitClass, classify, signal_name, words
from pailot.lifecycle.exit_table import CODES_OF_SIGNALS, ROWS, SIGNS, row

FAILED = End(1)

# Lines as the programs print them, by the class that they tell.
LINES = {
    220: ["train.sh: line 3: pyhton: command not found", "sh: 1: pyhton: not found", "bash: ./run.sh: No such file or directory"],
    221: [
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[128,1000]",
        "ResourceExhaustedError (see above for traceback): OOM when allocating tensor with shape[1]",
        "2020-01-01 W tensorflow/core/framework/op_kernel.cc:1502] OP_REQUIRES failed: OOM when allocating tensor with shape[9]",
    ],
    222: [
        "mpirun noticed that process rank 1 with PID 0 on node n1 exited on signal 11 (Segmentation fault).",
        "[node1:12345] Signal: Segmentation fault (11)",
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)",
    ],
    223: [
        "RuntimeError: CUDA error: uncorrectable ECC error encountered",
        "CUDA_ERROR_ECC_UNCORRECTABLE: uncorrected",
        "failed: cudaErrorECCUncorrectable",
    ],
    224: [
        "CUDA driver version is insufficient for CUDA runtime version",
        "RuntimeError: The NVIDIA driver on your system is too old (found version 10010).",
        "RuntimeError: The detected CUDA version (12.1) mismatches the version that was used to compile PyTorch (11.8).",
        "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        "status: cudaErrorInsufficientDriver",
        "CUDA_ERROR_UNSUPPORTED_PTX_VERSION: no",
    ],
    225: [
        "Loaded runtime CuDNN library: 7.1.2 but source was compiled with: 7.6.0.",
        "RuntimeError: cuDNN version incompatibility: PyTorch was compiled against (8, 5, 0)",
        "CUDNN_STATUS_VERSION_MISMATCH",
    ],
    226: [
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 7.79 GiB total capacity)",
        "RuntimeError: CUDA error: out of memory",
        "RuntimeError: cuda runtime error (2) : out of memory at /pytorch/aten/src/THC/generic/THCStorage.cu:58",
        "THCudaCheck FAIL: CUDA Runtime Error (2): out of memory",
        "failed to alloc 1024 bytes: CUDA_ERROR_OUT_OF_MEMORY: out of memory",
        "cudaErrorMemoryAllocation",
    ],
    228: [
        "TypeError: dynamic_rnn() got an unexpected keyword argument 'cells'",
        "TypeError: Trainer.__init__() got an unexpected keyword argument 'gpus'",
        "TypeError: f() got multiple values for argument 'a'",
        "TypeError: f() missing 1 required positional argument: 'x'",
        "TypeError: f() takes 1 positional argument but 2 were given",
        "train.py: error: unrecognized arguments: --lr",
        "train.py: error: argument --batch: invalid int value: 'many'",
        "train.py fit: error: the following arguments are required: --data",
        "tar: unrecognized option '--frob'",
        "ls: invalid option -- 'y'",
        "absl.flags._exceptions.UnrecognizedFlagError: Unknown command line flag 'lr'",
        "FATAL Flags parsing error: Unknown command line flag 'lr'",
    ],
    229: [
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/train.csv'",
        "IOError: [Errno 2] No such file or directory: 'model.pkl'",
        "python3: can't open file '/root/train.py': [Errno 2] No such file or directory",
        "FileNotFoundError: /data/train.parquet",
        "OSError: Unable to open file (unable to open file: name = 'a.h5', errno = 2)",
        "OSError: Unable to synchronously open file (file signature not found)",
        "tensorflow.python.framework.errors_impl.NotFoundError: Key w not found in checkpoint",
        "RuntimeError: Error(s) in loading state_dict for ResNet:",
        "Restoring from checkpoint failed. This is most likely due to a mismatch",
        "InvalidArgumentError: Assign requires shapes of both tensors to match. lhs shape= [3]",
        "tensorflow.InvalidArgumentError: Incompatible shapes: [3] vs. [4]",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
        "RuntimeError: The size of tensor a (3) must match the size of tensor b (4)",
        "errors_impl.DataLossError: corrupted record at 0",
        "_pickle.UnpicklingError: invalid load key, 'v'.",
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0",
        "zipfile.BadZipFile: File is not a zip file",
    ],
    230: [
        "ValueError: Parent directory of /out/model doesn't exist, can't save.",
        "RuntimeError: Parent directory /out does not exist.",
        "OSError: Unable to create file (unable to open file: name = 'x', errno = 2, error = 'No such file or directory')",
        "OSError: Unable to synchronously create file (unable to open file)",
    ],
    231: [
        "SyntaxError: invalid syntax",
        "IndentationError: unexpected indent",
        "TabError: inconsistent use of tabs and spaces in indentation",
        "run.sh: line 4: syntax error near unexpected token `fi'",
        "run.sh: line 9: syntax error: unexpected end of file",
        "sh: 2: Syntax error: end of file unexpected",
        "run.sh: line 2: unexpected EOF while looking for matching `\"'",
    ],
    232: [
        "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
        "ImportError: cannot import name 'x' from 'y' (/y.py)",
        "ModuleNotFoundError: No module named 'torch'",
        "[rank0]: ModuleNotFoundError: No module named 'torch'",
        "[default1]:ModuleNotFoundError: No module named 'torch'",
    ],
    233: [
        "IndexError: list index out of range",
        "panic: runtime error: index out of range [5] with length 3",
        'Exception in thread "main" java.lang.ArrayIndexOutOfBoundsException: 3',
        "what():  vector::_M_range_check: __n (which is 5) >= this->size()",
    ],
    234: [
        "run.sh: line 3: 123 Segmentation fault      (core dumped) ./train",
        "Fatal Python error: Segmentation fault",
        "Fatal error: Signal SIGSEGV received",
        "terminated by signal SIGSEGV (Address boundary error)",
        "SIGSEGV received, giving up",
    ],
    235: ["run.sh: line 3: 123 Aborted                 (core dumped) ./train"],
}

STOPS = {"user": -210, "completed": -220, "preempted": -1003, "timeout": -1004, "launcher-lost": -210, "disk-full": -1000}

NEEDS_A_CLUSTER = {
    -100, -110, -111, -120, -200, -230, -300, -310,  # pods and config maps of a controller
    -1001, -1002, -1005, -1006,  # nodes of Kubernetes
    -1100,  # a database in front of the controller
    -1300, -1201, -1202, -1203, -1204, -1205,  # containers that did not start
    249, 250, 251, 252, 253, 254,  # what runs in the init container, before there is a log
    -8000, 256,  # codes from elsewhere that nobody knows: `row`
}  # fmt: skip
NEEDS_A_GPU_REPORT = {128}  # nvidia-smi counts errors that the log does not mention


def say(line: str, code: int = 1) -> ExitClass:
    return classify(End(code), f"epoch 1\n{line}\n")


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (End(0), "exited with 0"),
        (End(3), "exited with 3"),
        (End(128), "exited with 128"),
        (End(129), "exited with 129, which a shell answers for a command killed by SIGHUP"),
        (End(137), "exited with 137, which a shell answers for a command killed by SIGKILL"),
        (End(160), "exited with 160, which a shell answers for a command killed by signal 32"),
        (End(192), "exited with 192, which a shell answers for a command killed by signal 64"),
        (End(193), "exited with 193"),
        (End(None, 9), "was killed by signal 9 (SIGKILL)"),
        (End(None, 31), "was killed by signal 31 (SIGSYS)"),
        (End(None, 40), "was killed by signal 40"),
        (End(None), "was lost before anyone saw it end"),
    ],
)
def test_words(end: End, text: str) -> None:
    assert words(end) == text


@pytest.mark.skipif(sys.platform != "linux", reason="the table has Linux's numbers")
def test_our_signal_names_are_those_of_the_system() -> None:
    known = {each.value: each.name for each in signal.Signals if each.value < 32}
    assert {number: signal_name(number) for number in known} == known


def test_the_table_has_each_code_once_and_signs_only_for_its_rows() -> None:
    codes = [each.code for each in ROWS]
    assert len(codes) == len(set(codes)) == 62
    assert set(SIGNS) | CODES_OF_SIGNALS <= set(codes)
    assert not set(SIGNS) & CODES_OF_SIGNALS
    assert {each.type for each in ROWS} == set(
        "USER_SUCCESS USER_FAILURE USER_STOP PLATFORM_FAILURE UNKNOWN_FAILURE RESOURCE_ALLOCATION_TIMEOUT".split()
    )
    assert {each.reaction for each in ROWS} == set("NEVER_RETRY ALWAYS_RETRY RETRY_TO_MAX ALWAYS_BACKOFF_RETRY".split())


def test_a_code_that_the_table_lacks_has_a_row_all_the_same() -> None:
    assert row(137).phrase == "ContainerSigKillReceived"
    assert (row(77).code, row(-77).code) == (256, -8000)


def test_every_row_is_reached_or_needs_a_cluster() -> None:
    reached = {classify(End(0), "").code, classify(End(None), "").code, classify(FAILED, "").code}
    reached.add(classify(End(None, 9), "", out_of_memory=True).code)
    reached |= {classify(End(1), "", stop_cause=cause).code for cause in STOPS}
    reached |= {classify(End(code), "").code for code in range(256)}
    reached |= {say(line, 127 if code == 220 else 1).code for code, lines in LINES.items() for line in lines}
    assert not reached & (NEEDS_A_CLUSTER | NEEDS_A_GPU_REPORT)
    assert reached | NEEDS_A_CLUSTER | NEEDS_A_GPU_REPORT == {each.code for each in ROWS}


@pytest.mark.parametrize(("code", "line"), [(code, line) for code, lines in LINES.items() for line in lines])
def test_what_a_line_tells(code: int, line: str) -> None:
    end = End(127) if code == 220 else FAILED
    found = classify(end, f"epoch 1\n{line}\nbye\n")
    assert (found.code, found.phrase) == (code, row(code).phrase)
    assert found.reason == f"it {words(end)}, and its log says: {line}"


def test_every_sign_has_a_line_that_shows_it() -> None:
    for code, signs in SIGNS.items():
        for sign in signs:
            assert any(sign.text in line and re.search(sign.pattern, line) for line in LINES[code]), sign


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("RuntimeError: cuda runtime error (2) : out of memory at THCStorage.cu:58", 226),
        ("IOError: [Errno 2] No such file or directory: 'x'", 229),
        ("TypeError: dynamic_rnn() got an unexpected keyword argument 'x'", 228),
        ("ModuleNotFoundError: No module named 'x'", 232),
    ],
)
def test_what_openpai_meant_to_recognise_and_did_not(line: str, code: int) -> None:
    assert say(line).code == code


@pytest.mark.parametrize(
    "line",
    [
        "WARNING: apex is not there (ImportError: No module named apex), going on without",
        "2024-01-01 12:00:00 INFO ignoring FileNotFoundError: cache",
        "except ImportError:  # optional",
        "epoch 3: out of memory errors so far: 0",
        "checking for SIGSEGV handler... yes",
        "no such option in the menu",
        "tests that raise IndexError: 0",
        "could not read settings: [Errno 2] No such file or directory, using defaults",
        "the key was not found",
        "bash: line 1: frobnicate: command not found",  # and the script went on: the code is not 127
        "",
    ],
)
def test_harmless_lines_tell_nothing(line: str) -> None:
    found = say(line)
    assert (found.code, found.reason) == (255, "it exited with 1, and its log shows no cause that we know")


@pytest.mark.parametrize("code", sorted(set(LINES) - {220}))
def test_old_lines_tell_nothing(code: int) -> None:
    line = LINES[code][0] + "\n"
    later = "epoch\n"
    assert classify(FAILED, line + later * (TAIL_LINES - 1)).code == code
    assert classify(FAILED, line + later * TAIL_LINES).code == 255
    assert classify(FAILED, line + "x" * TAIL_CHARACTERS + "\n").code == 255


def test_half_a_line_is_not_taken_for_a_whole_one() -> None:
    said = "ImportError: this was caught"
    assert classify(FAILED, "warning: " + said.ljust(TAIL_CHARACTERS)[:-5] + "\nbye\n").code == 255


def test_the_first_row_that_fits_wins_wherever_its_line_stands() -> None:
    both = [LINES[232][0], LINES[228][0]]
    assert say("\n".join(both)).code == say("\n".join(reversed(both))).code == 228
    assert say(LINES[229][0], 127).code == 220
    assert classify(End(None, 11), LINES[222][0]).code == 139
    assert classify(End(139), LINES[234][0]).code == 139


@given(st.lists(st.sampled_from([(code, line) for code, lines in LINES.items() for line in lines if code != 220]), min_size=1))
def test_the_first_row_wins_for_any_mixture(said: list[tuple[int, str]]) -> None:
    assert say("\n".join(line for _, line in said)).code == min(code for code, _ in said)


def test_of_several_lines_of_one_row_the_last_is_quoted() -> None:
    assert say("IndexError: one\nIndexError: two").reason.endswith("its log says: IndexError: two")


def test_colours_and_progress_bars_hide_nothing() -> None:
    assert say(" 10%|█\r 20%|██\r\x1b[31m\x1b[1mIndexError: pop from empty list\x1b[0m").reason.endswith(
        "its log says: IndexError: pop from empty list"
    )


def test_a_quoted_line_is_short_and_printable() -> None:
    reason = say("IndexError: \x07\x00" + "x" * 5000).reason
    assert reason.isprintable()
    assert len(reason) < 400
    assert reason.endswith("x…")


@given(st.text(), st.integers(1, 255))
def test_any_log_has_a_class(log: str, code: int) -> None:
    found = classify(End(code), log)
    assert found.reason.isprintable()
    assert (found.phrase, found.type, found.reaction) == (row(found.code).phrase, row(found.code).type, row(found.code).reaction)


@pytest.mark.parametrize("text", ["mpirun exited on signal 11x ", "signal SIGSEGVx ", "[x]: a.b.", "[Errno 2] can't open file "])
def test_a_log_that_nearly_matches_over_and_over_has_a_class(text: str) -> None:
    hostile = text * (TAIL_CHARACTERS // len(text))
    for log in (hostile, hostile.replace(" ", "\n")):
        assert classify(FAILED, log).reason.isprintable()


@pytest.mark.parametrize(
    ("number", "code"), [(2, 130), (3, 131), (4, 132), (6, 134), (7, 135), (8, 136), (9, 137), (11, 139), (13, 141), (15, 143)]
)
def test_signals(number: int, code: int) -> None:
    killed, told_by_a_shell = classify(End(None, number), ""), classify(End(code), "")
    assert killed.code == told_by_a_shell.code == code
    assert killed.phrase == f"ContainerSig{signal_name(number)[3:].capitalize()}Received"
    assert killed.reason == f"it was killed by signal {number} ({signal_name(number)})"
    assert told_by_a_shell.reason == f"it {words(End(code))}"


@pytest.mark.parametrize("end", [End(None, 1), End(None, 10), End(129), End(193), End(255)])
def test_without_a_row_and_without_a_sign_it_is_unknown(end: End) -> None:
    assert classify(end, "").phrase == "PAIRuntimeUnknownFailed"


def test_success_whatever_the_log_says() -> None:
    assert classify(End(0), LINES[232][0]).phrase == "Succeeded"
    assert classify(End(0), "", out_of_memory=True).code == 0


def test_out_of_memory_comes_before_signals_and_logs() -> None:
    for end in (End(None, 9), End(137), FAILED):
        found = classify(end, LINES[232][0], out_of_memory=True)
        assert found.phrase == "UserContainerDockerOOMKilled"
        assert found.reason == f"it {words(end)}, after using more memory than it asked for"


def test_a_lost_task_is_the_platforms_doing() -> None:
    found = classify(End(None), LINES[232][0])
    assert (found.code, found.type) == (-101, "PLATFORM_FAILURE")
    assert found.reason == "it was lost before anyone saw it end"


@pytest.mark.parametrize(("cause", "code"), STOPS.items())
@pytest.mark.parametrize("end", [End(0), End(1), End(None, 9), End(None)])
def test_a_stop_explains_any_end(cause: str, code: int, end: End) -> None:
    found = classify(end, LINES[232][0], out_of_memory=True, stop_cause=cause)
    assert found.code == code
    assert found.reason


def test_every_stop_cause_is_known_and_another_is_told_as_it_is() -> None:
    causes = (states.USER, states.COMPLETED, states.PREEMPTED, states.TIMEOUT, states.LAUNCHER_LOST, states.DISK_FULL)
    assert set(STOPS) == set(causes)
    found = classify(FAILED, "", stop_cause="weather")
    assert (found.code, found.reason) == (-210, "it was stopped (weather)")
    assert classify(FAILED, "", stop_cause="") == classify(FAILED, "")


def test_states() -> None:
    assert states.FINAL_JOB_STATES.issubset(states.JOB_STATES)
