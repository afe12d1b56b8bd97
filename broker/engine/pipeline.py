"""The way of a request to its processor: the stages that each one passes, then the table of codes.

A stage is one more entry in `fill_tables`: of `stages_of_both_ports`, or of the broker's own, in the order in which
they are called. A code that stands in no subject's function is answered REQUEST_CODE_NOT_SUPPORTED.
docs/COMPATIBILITY.md names the file that holds each code's behaviour.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.engine.broker import Broker
from broker.engine.processors.watch import WatchRequest
from broker.engine.serving.request_table import RequestTable
from broker.engine.serving.requests import Processors, Stage
from broker.engine.watch.watch_states import WatchStates
from broker.engine.wiring.administration import administration_processors
from broker.engine.wiring.groups import group_processors
from broker.engine.wiring.lookups import lookup_processors
from broker.engine.wiring.name_server import name_server_processors
from broker.engine.wiring.pulling import pulling_processors
from broker.engine.wiring.sending import sending_processors
from broker.engine.wiring.topics import topic_processors
from remoting.wire.codes import RequestCode


def fill_tables(
    broker_table: RequestTable,
    name_server_table: RequestTable,
    broker: Broker,
    stages_of_both_ports: Sequence[Stage] = (),
) -> None:
    """Sets what is answered on the broker's port and on the name server's, and what each request passes before.

    `stages_of_both_ports` are called first.
    """
    watch_request = _watch_request(broker)
    broker_table.fill(
        {RequestCode.WATCH: watch_request, **_processors(broker), **broker.scheduling.processors()},
        stages=[*stages_of_both_ports, broker.overload.check],
        after_read=[broker.accepting.store_submitted],
        on_connection_lost=[
            broker.groups.members.connection_lost,
            broker.overload.connection_lost,
            broker.held_pulls.connection_lost,
            broker.watch.connection_lost,
            watch_request.connection_lost,
            broker.scheduling.lease.connection_lost,
        ],
    )
    of_name_server = name_server_processors(
        config=broker.config,
        settings=broker.name_server_settings,
        topics=broker.topics,
        kv_config=broker.kv_config,
    )
    name_server_table.fill(of_name_server, stages=stages_of_both_ports)


def _processors(broker: Broker) -> Processors:
    config, store, clock = broker.config, broker.store, broker.clock
    topics, groups, held_pulls, stats = broker.topics, broker.groups, broker.held_pulls, broker.stats
    return {
        **sending_processors(
            config=config,
            store=store,
            topics=topics,
            groups=groups,
            accepting=broker.accepting,
            transactions=broker.scheduling.transactions,
            clock=clock,
        ),
        **pulling_processors(
            config=config,
            store=store,
            topics=topics,
            groups=groups,
            held_pulls=held_pulls,
            stats=stats,
            watch=broker.watch,
            complaints=broker.complaints,
        ),
        **group_processors(
            config=config,
            store=store,
            topics=topics,
            groups=groups,
            assignments=broker.watch.assignments,
            held_pulls=held_pulls,
            stats=stats,
            complaints=broker.complaints,
            clock=clock,
        ),
        **topic_processors(
            config=config,
            store=store,
            topics=topics,
            groups=groups,
            assignments=broker.watch.assignments,
            stats=stats,
        ),
        **lookup_processors(store=store, members=groups.members),
        **administration_processors(
            config=config,
            settings=broker.settings,
            store=store,
            stats=stats,
            delays=broker.scheduling.delays,
            timers=broker.scheduling.timers,
            clock=clock,
        ),
    }


def _watch_request(broker: Broker) -> WatchRequest:
    states = WatchStates(
        watch=broker.watch,
        topics=broker.topics,
        groups=broker.groups.configs,
        members=broker.groups.members,
        offsets=broker.groups.offsets,
        store=broker.store,
        scheduler_state=lambda: broker.scheduling.scheduler.state,
        config=broker.config,
        clock=broker.clock,
    )
    return WatchRequest(broker.watch, states)
