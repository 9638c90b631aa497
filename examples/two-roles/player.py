"""Sends a number to the board. Player 1 stumbles at its first attempt."""

import os
import sys
import time
import urllib.error
import urllib.request

me, attempt = int(os.environ["PAI_TASK_INDEX"]), int(os.environ["FC_TASK_ATTEMPT_ID"])
if me == 1 and attempt == 0:
    sys.exit("I stumble. Pailot tries me again, since taskRetryCount is 1.")
host, port = (os.environ[f"PAI_{name}"] for name in ("HOST_IP_board_0", "PORT_LIST_board_0_http"))
board = f"http://{host}:{port}"
if attempt:
    print("here I am again")
for _ in range(100):
    try:
        urllib.request.urlopen(board, f"{me} {10 * (me + 1)}".encode(), timeout=10).close()
        break
    except urllib.error.URLError:
        time.sleep(0.1)  # the board is not listening yet
else:
    sys.exit("the board cannot be reached")
