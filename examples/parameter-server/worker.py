"""A worker: finds the server by its host list, adds its numbers, reads the total."""

import os
import socket
import time

host, port = os.environ["PAI_TASK_ROLE_ps_server_HOST_LIST"].split(",")[0].split(":")  # noqa: SIM112  # as the role is spelled
index = int(os.environ["PAI_TASK_INDEX"])
for _ in range(600):
    try:
        connection = socket.create_connection((host, int(port)))
        break
    except ConnectionRefusedError:
        time.sleep(0.05)
else:
    raise SystemExit("the server never came")
with connection, connection.makefile("rw") as stream:
    for number in range(5):
        stream.write(f"{number + index * 100}\n")
        stream.flush()
        answer = stream.readline().strip()
    print(f"worker {index} last saw {answer}", flush=True)
    stream.write("done\n")
