"""A parameter server: hands out a number, adds what workers send back, until each has said it is done."""

import os
import socketserver

total, left = 0.0, int(os.environ["PAI_TASK_ROLE_TASK_COUNT_worker"])  # noqa: SIM112  # the role is spelled so


class Worker(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        global total, left  # noqa: PLW0603  # one server, one total
        for line in self.rfile:
            word = line.decode().strip()
            if word == "done":
                left -= 1
                return
            if word != "read":
                total += float(word)
            self.wfile.write(f"{total}\n".encode())


class Server(socketserver.TCPServer):
    allow_reuse_address = True


with Server(("", int(os.environ["PAI_CONTAINER_HOST_PORT"])), Worker) as server:
    while left:
        server.handle_request()
print(f"the total is {total}", flush=True)
