"""A client that asks for one path over many connections, as fast as the server answers: `python http_load.py PORT PATH …`.

Prints how many requests were answered in all, and how many a second. It is a process of its own, beside the server.
"""

from __future__ import annotations

import argparse
import select
import socket
import time


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("path")
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=3.0)
    args = parser.parse_args()
    head = "".join(f"{line}\r\n" for line in ["Host: bench", *args.header])
    request = f"GET {args.path} HTTP/1.1\r\n{head}\r\n".encode()
    print(*measure(args.port, request, args.connections, args.seconds))


def measure(port: int, request: bytes, connections: int, seconds: float) -> tuple[int, float]:
    """Answers in all, and a second; for the latter the first half second is left out."""
    poll = select.epoll()
    lines = {}
    for _ in range(connections):
        line = socket.create_connection(("127.0.0.1", port))
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lines[line.fileno()] = line
        poll.register(line.fileno(), select.EPOLLIN)
    first = next(iter(lines.values()))
    first.sendall(request)
    size = len(_answer(first))
    for line in lines.values():
        line.sendall(request)
    waiting = dict.fromkeys(lines, size)
    warm = time.perf_counter() + 0.5
    end = warm + seconds
    count = total = 0
    began = warm
    while True:
        for descriptor, _ in poll.poll():
            data = lines[descriptor].recv(65536)
            if not data:
                raise SystemExit("the server closed a connection")
            waiting[descriptor] -= len(data)
            if waiting[descriptor] == 0:
                waiting[descriptor] = size
                lines[descriptor].send(request)
                count += 1
                total += 1
        now = time.perf_counter()
        if began == warm and now >= warm:
            began, count = now, 0
        if now >= end:
            return total, count / (now - began)


def _answer(line: socket.socket) -> bytes:
    """One whole answer; all of them have the same length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += line.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    if b" 200 " not in head.split(b"\r\n")[0] + b" ":
        raise SystemExit(f"not what was asked for: {data[:300]!r}")
    length = next(int(each.split(b":")[1]) for each in head.lower().split(b"\r\n") if each.startswith(b"content-length:"))
    while len(body) < length:
        piece = line.recv(65536)
        body += piece
        data += piece
    return data


if __name__ == "__main__":
    main()
