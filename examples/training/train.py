"""Distributed training of a line: each task has its share of the data, task 0 averages the gradients.

It saves its state after every round and on SIGTERM, so that a retry goes on where the last attempt was.
The first attempt of task 1 fails in the middle on purpose.
"""

import json
import os
import signal
import socket
import sys
import time

RANK, SIZE, ROUNDS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), 40
STATE = os.path.join(os.environ["PAI_CHECKPOINT_DIR"], "state.json")
ATTEMPT = int(os.environ["FC_TASK_ATTEMPT_ID"])
data = [(x / 10, 3 * x / 10 + 1) for x in range(RANK, 40, SIZE)]  # y = 3x + 1


def load() -> dict[str, float]:
    if os.path.exists(STATE):
        with open(STATE) as stream:
            return json.load(stream)
    return {"round": 0, "slope": 0.0, "offset": 0.0}


def save() -> None:
    with open(STATE + ".new", "w") as stream:
        json.dump(state, stream)
    os.replace(STATE + ".new", STATE)


def stopped(*_: object) -> None:
    save()
    sys.exit(f"task {RANK} was stopped in round {state['round']:.0f} and saved its state")


state = load()
signal.signal(signal.SIGTERM, stopped)
print(f"task {RANK}, attempt {ATTEMPT}, begins at round {state['round']:.0f}", flush=True)
address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))


def gradient() -> tuple[float, float]:
    errors = [(state["slope"] * x + state["offset"] - y, x) for x, y in data]
    return sum(e * x for e, x in errors) / len(data), sum(e for e, _ in errors) / len(data)


def lead() -> None:
    """Serve rounds: whoever asks for a round sends its gradient and gets the average once all have."""
    with socket.create_server(address) as server:
        for number in range(int(state["round"]), ROUNDS):
            waiting, parts = [], [gradient()]
            while len(parts) < SIZE:
                connection, _ = server.accept()
                asked, *part = json.loads(connection.makefile().readline())
                if asked != number:  # a task that was tried again asks for a round that is over
                    connection.sendall(json.dumps([state["round"], state["slope"], state["offset"]]).encode() + b"\n")
                    connection.close()
                    continue
                parts.append(tuple(part))
                waiting.append(connection)
            step(number, *(sum(each) / SIZE for each in zip(*parts, strict=True)))
            for connection in waiting:
                connection.sendall(json.dumps([state["round"], state["slope"], state["offset"]]).encode() + b"\n")
                connection.close()


def step(number: int, slope: float, offset: float) -> None:
    state.update(round=number + 1, slope=state["slope"] - 0.2 * slope, offset=state["offset"] - 0.2 * offset)
    save()


def follow() -> None:
    while state["round"] < ROUNDS:
        if RANK == 1 and ATTEMPT == 0 and state["round"] >= ROUNDS // 2:
            sys.exit("task 1 fails in the middle")
        answer = ask([state["round"], *gradient()])
        state.update(round=answer[0], slope=answer[1], offset=answer[2])
        save()


def ask(question: list[float]) -> list[float]:
    for _ in range(600):
        try:
            with socket.create_connection(address) as connection:
                connection.sendall(json.dumps(question).encode() + b"\n")
                line = connection.makefile().readline()
                if line:
                    return json.loads(line)
        except ConnectionError:
            pass  # the leader is not there yet
        time.sleep(0.05)
    sys.exit("the leader does not answer")


lead() if RANK == 0 else follow()
print(f"task {RANK} ends with y = {state['slope']:.2f}x + {state['offset']:.2f}", flush=True)
