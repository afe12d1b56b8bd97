"""Supervision in a world of slow, killed and drained workers, in virtual time: the wanted number is never lost.

A world has workers with slots, and leases that supervision offers to them. Offers get lost, starts take long or fail,
processes are killed (on this machine, where that is seen, and elsewhere, where only silence tells), workers stop and
come back, groups are scaled many times within seconds. When all that has ended, the wanted number of each group runs,
as far as there are slots; on the way no worker is ever given more than it can hold.

TORTURE=1 pytest tests/simulation/test_supervision.py      more worlds
"""

from __future__ import annotations

import os
import random
import uuid
from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest

from consumer.hosting.supervision import HostingSnapshot, LeaseSnapshot, decide
from consumer.models import DesiredState, LeaseState

pytestmark = pytest.mark.simulation

SEEDS = 3000 if os.environ.get("TORTURE") else 60
STEP_S = 2
RUN = DesiredState.RUN
GROUPS = ("billing", "mailing", "billing@payments")
# Lost for 30 s of silence, failures that are remembered for 5 min and pauses of 60 s at most.
SETTLED_WITHIN_S = 600


@dataclass
class Node:
    """A worker; `is_near`: on supervision's machine, so that a killed process is seen."""

    slots: int
    is_near: bool
    is_alive: bool = True
    is_stopping: bool = False
    is_drained: bool = False


@dataclass
class Lease:
    """`due_s`: when it takes its next step; None for never, because its task was lost or its process was killed."""

    snapshot: LeaseSnapshot
    due_s: int | None
    is_killed: bool = False


@dataclass
class World:
    chance: random.Random
    now_s: int = 0
    nodes: dict[str, Node] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    failures: dict[str, list[datetime]] = field(default_factory=dict)

    @property
    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.now_s)

    def running(self, group: str) -> int:
        """How many run that were not asked to stop."""
        return sum(
            (one.snapshot.group, one.snapshot.state, one.snapshot.desired_state) == (group, LeaseState.RUNNING, RUN)
            and not one.is_killed
            for one in self.leases
        )

    def step(self, *, is_calm: bool) -> None:
        """Lets two seconds pass: instances take their steps, then supervision runs."""
        self.now_s += STEP_S
        for lease in list(self.leases):
            self._advance(lease, is_calm=is_calm)
        self._supervise(is_calm=is_calm)

    def _advance(self, lease: Lease, *, is_calm: bool) -> None:
        node = self.nodes[lease.snapshot.worker]
        if not node.is_alive:
            lease.is_killed = True
        if lease.is_killed:
            lease.snapshot = replace(lease.snapshot, is_gone=node.is_near)
            return
        if lease.snapshot.state != LeaseState.PENDING:
            lease.snapshot = replace(lease.snapshot, heartbeat_at=self.now)
        if lease.due_s is None or self.now_s < lease.due_s:
            return
        match lease.snapshot.state:
            case LeaseState.PENDING:
                lease.snapshot = replace(lease.snapshot, state=LeaseState.STARTING, heartbeat_at=self.now)
                lease.due_s = self.now_s + self.chance.choice((0, 0, 2, 20))
            case LeaseState.STARTING if not is_calm and self.chance.random() < 0.1:
                self.leases.remove(lease)
                self.failures.setdefault(lease.snapshot.group, []).append(self.now)
            case LeaseState.STARTING:
                lease.snapshot = replace(lease.snapshot, state=LeaseState.RUNNING)
            case LeaseState.RUNNING if lease.snapshot.desired_state == DesiredState.STOP:
                lease.snapshot = replace(lease.snapshot, state=LeaseState.STOPPING)
                lease.due_s = self.now_s + self.chance.choice((0, 0, 4, 20))
            case LeaseState.STOPPING:
                self.leases.remove(lease)

    def _supervise(self, *, is_calm: bool) -> None:
        alive = {name: node for name, node in self.nodes.items() if node.is_alive}
        plan = decide(
            HostingSnapshot(
                now=self.now,
                wanted=dict(self.wanted),
                leases=[lease.snapshot for lease in self.leases],
                slots={name: node.slots for name, node in alive.items() if not node.is_stopping},
                failures=self.failures,
                leaving={name for name, node in alive.items() if node.is_drained or node.is_stopping},
            )
        )
        lost = {lease_id for lease_id, _ in plan.lost}
        self.leases = [lease for lease in self.leases if lease.snapshot.id not in lost]
        for lease in list(self.leases):
            if lease.snapshot.id not in plan.surplus:
                continue
            if lease.snapshot.state == LeaseState.PENDING:
                self.leases.remove(lease)
            else:
                lease.snapshot = replace(lease.snapshot, desired_state=DesiredState.STOP)
        for place in plan.missing:
            made = LeaseSnapshot(
                uuid.UUID(int=self.chance.getrandbits(128)),
                place.group,
                place.worker,
                LeaseState.PENDING,
                DesiredState.RUN,
                self.now,
                None,
            )
            is_lost = not is_calm and self.chance.random() < 0.1
            self.leases.append(Lease(made, None if is_lost else self.now_s + self.chance.choice((0, 2, 10))))
        self._check_slots({place.worker for place in plan.missing})

    def _check_slots(self, given: set[str]) -> None:
        held = Counter(lease.snapshot.worker for lease in self.leases)
        for name in given:
            assert held[name] <= self.nodes[name].slots, f"{name} got more than its slots"

    def disturb(self) -> None:
        """One thing that operators, deploys or the kernel do."""
        name = self.chance.choice(list(self.nodes))
        node = self.nodes[name]
        match self.chance.randrange(8):
            case 0 | 1 | 2:
                self.wanted[self.chance.choice(GROUPS)] = self.chance.randrange(6)
            case 3:
                node.is_alive = False
            case 4 if not node.is_alive or node.is_stopping:
                # Started anew: what its predecessor had ends at once.
                self.leases = [lease for lease in self.leases if lease.snapshot.worker != name]
                self.nodes[name] = Node(node.slots, node.is_near)
            case 5:
                node.is_drained = not node.is_drained
            case 6 if self.leases:
                self.chance.choice(self.leases).is_killed = True
            case 7 if node.is_alive:
                node.is_stopping = True


def make_world(seed: int) -> World:
    chance = random.Random(seed)
    nodes = {
        f"loops-{number}": Node(chance.randint(1, 6), chance.random() < 0.5) for number in range(chance.randint(1, 4))
    }
    return World(chance, nodes=nodes, wanted={group: chance.randrange(5) for group in GROUPS})


def settle(world: World) -> None:
    """Starts dead workers anew, uses the others again, and lets time pass without trouble."""
    for name, node in world.nodes.items():
        if not node.is_alive:
            world.nodes[name] = Node(node.slots, node.is_near)
            world.leases = [lease for lease in world.leases if lease.snapshot.worker != name]
        node.is_drained = node.is_stopping = False
    for _ in range(SETTLED_WITHIN_S // STEP_S):
        world.step(is_calm=True)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_after_any_trouble_the_wanted_number_runs(seed: int) -> None:
    world = make_world(seed)
    for _ in range(world.chance.randint(20, 120)):
        for _ in range(world.chance.choice((0, 1, 1, 3))):
            world.disturb()
        world.step(is_calm=False)
    settle(world)
    running = {group: world.running(group) for group in GROUPS}
    room = sum(node.slots for node in world.nodes.values())
    if sum(world.wanted.values()) <= room:
        assert running == world.wanted
    else:
        assert all(running[group] <= world.wanted[group] for group in GROUPS)
        assert sum(running.values()) == room


@pytest.mark.parametrize("seed", range(SEEDS))
def test_scaling_many_times_within_seconds_never_stops_what_stays_wanted(seed: int) -> None:
    """Without any trouble, what runs and is wanted goes on, whatever starts and stops beside it."""
    world = make_world(seed)
    world.nodes = {name: Node(30, is_near=True) for name in world.nodes}
    running = dict.fromkeys(GROUPS, 0)
    for _ in range(200):
        if world.chance.random() < 0.5:
            world.wanted[world.chance.choice(GROUPS)] = world.chance.randrange(6)
        world.step(is_calm=True)
        for group, before in running.items():
            assert world.running(group) >= min(before, world.wanted[group]), f"{group} lost an instance that is wanted"
            running[group] = world.running(group)
    settle(world)
    assert {group: world.running(group) for group in GROUPS} == world.wanted
