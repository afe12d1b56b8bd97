"""Follows a console's events and goes on where it stopped: `python follow.py ws://127.0.0.1:8000 --kind verdict`.

Wants `pip install websockets` and a token in MQADMIN_TOKEN (`manage.py api_token create …`). The number of the last
event is kept in a file, so that what happens while this program is not running is told the next time. Each event is a
line of JSON on the standard output, for other programs to read.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

# Codes after which trying again cannot help: the message, the token, or a name is wrong.
FINAL = {4400, 4401, 4403, 4404}
PAUSE_S = 5


def main() -> int:
    arguments = read_arguments()
    place: Path = arguments.place
    while True:
        try:
            follow(arguments, place)
        except ConnectionClosed as closed:
            code = closed.rcvd.code if closed.rcvd else 1006
            if code in FINAL:
                print(f"the console closed with {code}", file=sys.stderr)
                return 1
        except (OSError, InvalidStatus) as error:
            print(f"not connected: {error}", file=sys.stderr)
        time.sleep(PAUSE_S)


def follow(arguments: argparse.Namespace, place: Path) -> None:
    """Prints events until the connection ends."""
    wanted: dict[str, object] = {
        "type": "subscribe",
        "clusters": arguments.cluster,
        "groups": arguments.group,
        "kinds": arguments.kind,
    }
    if place.exists():
        wanted["after"] = int(place.read_text(encoding="utf-8"))
    headers = {"Authorization": f"Bearer {os.environ['MQADMIN_TOKEN']}"}
    with connect(f"{arguments.console}/ws/events", additional_headers=headers) as socket:
        socket.send(json.dumps(wanted))
        for text in socket:
            frame = json.loads(text)
            match frame["type"]:
                case "event":
                    print(json.dumps(frame), flush=True)
                    remember(place, frame["id"])
                case "heartbeat":
                    remember(place, frame["last_id"])
                case "gap":
                    print(f"events after {frame['after']} are gone; read {frame['read']}", file=sys.stderr)


def remember(place: Path, number: int) -> None:
    """Writes the number so that a crash leaves the old one or the new one."""
    draft = place.with_suffix(".new")
    draft.write_text(str(number), encoding="utf-8")
    draft.replace(place)


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("console", help="ws://host:port, or wss://host")
    parser.add_argument("--cluster", action="append", default=[])
    parser.add_argument("--group", action="append", default=[], help="a name; * stands for any characters")
    parser.add_argument("--kind", action="append", default=[])
    parser.add_argument("--place", type=Path, default=Path("last-event"), help="file with the last number")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
