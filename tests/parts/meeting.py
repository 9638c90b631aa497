"""A program for several instances of a job: they meet at MASTER_ADDR:MASTER_PORT, and write where they should not meet."""

PROGRAM = """\
import os, socket, time

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
place = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
config, output = os.environ["PAI_CONFIG_DIR"], os.environ["PAI_OUTPUT_MODEL"]
beside = os.path.dirname(output.rstrip("/")) + "/mine"
for path in ("mine", config + "mine", beside):  # in the code, and beside the channels
    with open(path, "x") as file:
        file.write(str(rank))
with open("given", "a") as file:
    file.write(str(rank))
with open(output + str(rank), "x") as file:
    file.write(str(rank))

# Nobody goes on before all have written.
if rank == 0:
    with socket.create_server(("", place[1])) as server:
        callers = [server.accept()[0] for _ in range(size - 1)]
    ranks = sorted(int(caller.recv(16)) for caller in callers)
    print("met", *ranks, flush=True)
    for caller in callers:
        caller.sendall(b"go")
else:
    while True:
        try:
            caller = socket.create_connection(place)
            break
        except OSError:
            time.sleep(0.02)  # the first instance does not listen yet
    caller.sendall(str(rank).encode())
    caller.recv(16)
print("read", *(open(path).read() for path in ("given", "mine", config + "mine", beside)))
print("all", *sorted(os.listdir(output)))
"""
"""With `given` beside it in the code, and an output channel `model`."""


def expected(instances: int) -> dict[int, list[str]]:
    """What each instance prints, by its rank."""
    everyone = " ".join(map(str, range(instances)))
    others = " ".join(map(str, range(1, instances)))
    return {
        rank: [*([f"met {others}"] if rank == 0 else []), f"read code{rank} {rank} {rank} {rank}", f"all {everyone}"]
        for rank in range(instances)
    }
