"""Says which processes of a cluster have not come yet: in a process of its own, see `liveness.py`.

    python -I -S roll_call.py '{"worker 0": "host:2222"}' PARENT SECONDS

TensorFlow holds Python's lock while it waits for the others, so no thread of the process that waits
could say a word. This one ends with its PARENT (a process id), or once all have come. It imports
little: it has to start at once.
"""

import contextlib
import json
import os
import socket
import sys
import time

# Seconds between two looks, and between two words about who is missing.
_EVERY, _REMINDER = 2.0, 60.0


def can_be_reached(address: str) -> bool:
    """True if somebody listens at `host:port`."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_EVERY).close()
    except (OSError, ValueError):
        return False
    return True


def call(peers: dict[str, str], parent: int, patience: float) -> None:
    """Looks for all `peers` (name -> address) until each was there once, or `parent` has ended.

    Args:
        patience: Seconds until the first word about who is missing.
    """
    began, missing = time.monotonic(), dict(peers)
    next_word = patience
    while missing and os.getppid() == parent:
        missing = {name: at for name, at in missing.items() if not can_be_reached(at)}
        waited = time.monotonic() - began
        if missing and waited >= next_word:
            next_word = waited + _REMINDER
            absent = ", ".join(f"{name} ({address})" for name, address in sorted(missing.items()))
            sys.stderr.write(
                f"e2s: waiting since {waited:.0f} s for other processes of TF_CONFIG's cluster: "
                f"nobody answers at {absent}. Are they started, with these addresses, and can this "
                "machine reach them?\n"
            )
        if missing:
            time.sleep(min(_EVERY, patience))


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C, which the parent has got too
        call(json.loads(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
