"""Collects a number from each player over HTTP, and prints the sum."""

import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer

expected = int(sys.argv[1])
numbers = {}


class Board(BaseHTTPRequestHandler):
    def do_POST(self):
        player, number = self.rfile.read(int(self.headers["Content-Length"])).decode().split()
        numbers[player] = int(number)
        print(f"player {player} sends {number}: {len(numbers)} of {expected}")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


address = ("", int(os.environ["PAI_PORT_LIST_board_0_http"]))  # noqa: SIM112  # named by the role
with HTTPServer(address, Board) as server:
    while len(numbers) < expected:
        server.handle_request()
print(f"all are here: {' + '.join(str(numbers[each]) for each in sorted(numbers))} = {sum(numbers.values())}")
