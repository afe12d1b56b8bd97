"""Has Apache's own classes allocate queues again, and keeps what they answer in `allocation.json`.

    tests/java/fetch.sh && python -m tests.golden.capture_allocation        some seconds

Every line of the file is a case of topic `orders`: what went in (`queues`: broker name → number of queues), and
`owned`, the sorted members' queues as indices into the sorted queues ("-" for none, "!" where Java
raises IllegalArgumentException).
"""

from __future__ import annotations

import json
import random
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from tests.support.java import DRIVER, JAVA_TESTS, java_command

HERE = Path(__file__).parent / "allocation.json"
CLIENT_JARS = DRIVER / "lib-5.4.0"
SEED = 5400
CASES_EACH = 18
# Client ids that sort otherwise as bytes than as Java's strings do, and that hash as UTF-8.
ODD_MEMBERS = ["\N{REPLACEMENT CHARACTER}@1", "\N{GRINNING FACE}@1", "客户端@7"]


def cases() -> list[dict[str, Any]]:
    chance = random.Random(SEED)
    return [case(chance, kind, number) for kind in KINDS for number in range(CASES_EACH)]


def case(chance: random.Random, kind: str, number: int) -> dict[str, Any]:
    rooms = ["alpha", "beta", "gamma"]
    joint = "@" if kind == "MACHINE_ROOM" else "-"
    brokers = [f"{room}{joint}broker{at}" for room in chance.sample(rooms, chance.randint(1, 3)) for at in (1, 2)]
    brokers += [*{"MACHINE_ROOM": ["plain", "alpha@", "@x", "alpha@b@c"]}.get(kind, [])][: chance.randint(0, 4)]
    queues = {broker: chance.randint(1, 6) for broker in brokers}
    live = chance.sample(rooms, chance.randint(1, 3))
    members = [f"{chance.choice(live)}-10.0.0.{at}@{chance.randint(1, 99)}#{at}" for at in range(chance.randint(1, 7))]
    if number % 6 == 5 and not kind.startswith("MACHINE_ROOM_NEARBY"):
        members += ODD_MEMBERS
    chance.shuffle(members)
    made: dict[str, Any] = {"strategy": kind, "queues": queues, "members": members}
    inner = kind.removeprefix("MACHINE_ROOM_NEARBY-")
    if kind == "CONFIG":
        every = [[broker, number] for broker, count in queues.items() for number in range(count)]
        made["configured"] = chance.sample(every, chance.randint(1, len(every)))
    if kind == "MACHINE_ROOM":
        made["rooms"] = chance.sample([*rooms, ""], chance.randint(1, 4))
    if inner == "CONSISTENT_HASH":
        made["virtual_nodes"] = chance.choice([0, 1, 10, 10, 10, 64])
    return made


KINDS = [
    *("AVG", "AVG_BY_CIRCLE", "CONFIG", "MACHINE_ROOM", "CONSISTENT_HASH"),
    *(f"MACHINE_ROOM_NEARBY-{inner}" for inner in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")),
]


def main() -> None:
    made = cases()
    with tempfile.TemporaryDirectory() as folder:
        source = str(JAVA_TESTS / "allocation/Allocation.java")
        command = java_command([CLIENT_JARS], source, Path(folder))
        lines = "\n".join(json.dumps(one) for one in made)
        done = subprocess.run(command, input=lines.encode(), capture_output=True, timeout=120, check=True)
    answers = done.stdout.decode().splitlines()
    if len(answers) != len(made):
        raise AssertionError(done.stderr.decode())
    rows = [json.dumps({**one, "owned": answer}, ensure_ascii=False) for one, answer in zip(made, answers, strict=True)]
    HERE.write_text("[\n" + ",\n".join(rows) + "\n]\n")


if __name__ == "__main__":
    main()
