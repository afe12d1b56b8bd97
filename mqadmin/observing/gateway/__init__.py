"""The only package of the console that sends requests to brokers and name servers, with the asyncio client.

A gateway belongs to the event loop that opened it with `async with`, and keeps its connections open until it is closed.
Synchronous code (a Celery task, an action) uses `ask`, which opens one for one call. `gateway.py` has what observing
asks, a file for each subject what its actions ask and change.

Every call is bounded: each request by its time-out, a sample by its deadline and its number of requests. A sample that
some brokers did not answer is still a sample: it comes with a `PartialError` that names them (nsq's `PartialErr`).
"""

from mqadmin.observing.gateway.broker_settings import ToldSettings
from mqadmin.observing.gateway.clients import ConnectedProducer, ProducersTold
from mqadmin.observing.gateway.counting import Cost, Costs
from mqadmin.observing.gateway.failures import ChangeFailure, Failures, GatewayError, NotWatchable, PartialError
from mqadmin.observing.gateway.gateway import BrokerTables, Gateway, KnownBrokers, Master, ask
from mqadmin.observing.gateway.groups import GroupOnBroker
from mqadmin.observing.gateway.members import MemberPlace, MembersAsked, MemberTold
from mqadmin.observing.gateway.messages import QueuePlace, QueueReading
from mqadmin.observing.gateway.probing import BrokerProbe, NameServerProbe, Probe
from mqadmin.observing.gateway.retries import DelayReading, RetriesOnBroker, RetryQueue
from mqadmin.observing.gateway.runtime import MemberStatus, Runtime, StatsKey
from mqadmin.observing.gateway.sending import Fate, SendOutcome, TargetQueue
from mqadmin.observing.gateway.topics import TopicOnBroker

__all__ = [
    "BrokerProbe",
    "BrokerTables",
    "ChangeFailure",
    "ConnectedProducer",
    "Cost",
    "Costs",
    "DelayReading",
    "Failures",
    "Fate",
    "Gateway",
    "GatewayError",
    "GroupOnBroker",
    "KnownBrokers",
    "Master",
    "MemberPlace",
    "MemberStatus",
    "MemberTold",
    "MembersAsked",
    "NameServerProbe",
    "NotWatchable",
    "PartialError",
    "Probe",
    "ProducersTold",
    "QueuePlace",
    "QueueReading",
    "RetriesOnBroker",
    "RetryQueue",
    "Runtime",
    "SendOutcome",
    "StatsKey",
    "TargetQueue",
    "ToldSettings",
    "TopicOnBroker",
    "ask",
]
