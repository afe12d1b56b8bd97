"""Errors of a client, as one tree; each text names the thing and the remedy.

ClientError
  NotConnected          an address cannot be reached (a ConnectionError too)
    ConnectionLost      the connection went while an answer was awaited: the request may have been carried out
  RequestTimedOut       no answer in time (a TimeoutError too): the request may have been carried out
  NoTurn                too many admin requests to one server: nothing was sent
  BrokerRefused         an answer with a response code other than success
    NotSupported        the server does not know the request: it is older, or of another kind
  RouteNotFound         no name server knows the topic
  GroupNotFound         a broker doesn't have the group that was to be changed
  GroupTaken            a client has a consumer of the group already
  NotWritable           a topic that no broker accepts messages for
  SendFailed            a send was given up after all its attempts
  NoReply               nobody replied to a request in time (a TimeoutError too): it may have been carried out

A message that breaks a rule (its size, a name) raises `remoting.wire.errors.MessageError` before anything is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from remoting.wire.codes import ResponseCode, request_name, response_name
from remoting.wire.versions import version_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from remoting.client.send_result import SendResult

_REMEDIES: dict[int, str] = {
    ResponseCode.SYSTEM_BUSY: "the broker is overloaded: try again later",
    ResponseCode.SERVICE_NOT_AVAILABLE: "the broker is shutting down or cannot write: look at its disk and its log",
    ResponseCode.NO_PERMISSION: "check the permissions of the broker and the topic",
    ResponseCode.TOPIC_NOT_EXIST: "create the topic, or let the broker create topics on first use",
    ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST: "create the group, or let the broker create groups on first use",
    ResponseCode.CONSUMER_NOT_ONLINE: "no member of the group is connected",
}
_UNREACHED_REMEDY = "see that it runs and can be reached from here"
# Of a remark, in the text of an error; all of it is in `BrokerRefused.remark`.
_REMARK_CHARS_MAX = 300


class ClientError(Exception):
    """Base of all errors that a client raises."""


class NotConnected(ClientError, ConnectionError):
    """Raised when `address` ("host:port") cannot be reached."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"no connection to {address}: {reason}")
        self.address = address
        self.reason = reason


class ConnectionLost(NotConnected):
    """Raised when the connection was lost while a response was awaited: the request may have been carried out."""


class RequestTimedOut(ClientError, TimeoutError):
    """Raised when no response came in time: the request may have been carried out."""

    def __init__(self, address: str, request_code: int, timeout_ms: int) -> None:
        super().__init__(f"{address} did not answer {request_name(request_code)} within {timeout_ms} ms")
        self.address = address


class BrokerRefused(ClientError):
    """Raised for a response with an error.

    `code` is the response code, `remark` the server's text, `subject` what it is about.
    """

    def __init__(self, address: str, request_code: int, code: int, remark: str | None, subject: str = "") -> None:
        about = f" for {subject}" if subject else ""
        words = f": {first_line}" if (first_line := _first_line(remark)) else ""
        remedy = _REMEDIES.get(code)
        super().__init__(
            f"{address} refused {request_name(request_code)}{about} with {response_name(code)} ({code}){words}"
            + (f" ({remedy})" if remedy else "")
        )
        self.address = address
        self.request_code = request_code
        self.code = code
        self.remark = remark or ""


class NotSupported(BrokerRefused):
    """Raised for a request that the server doesn't know, or knows without a part that is needed.

    `version` is the number that the server's answer carried (`remoting.wire.versions`).
    """

    def __init__(
        self, address: str, request_code: int, version: int, remark: str | None = None, subject: str = ""
    ) -> None:
        super().__init__(address, request_code, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark, subject)
        about = f" for {subject}" if subject else ""
        words = f" ({first_line})" if (first_line := _first_line(remark)) else ""
        self.args = (
            f"{request_name(request_code)} ({request_code}){about} is not supported by this broker: {address} has"
            f" version {version_name(version)}{words}",
        )
        self.version = version


class NoTurn(ClientError):
    """Raised when so many admin requests to one server are in flight that a further one got no turn.

    Nothing was sent.
    """

    def __init__(self, address: str, waited_ms: int) -> None:
        super().__init__(
            f"{address}: no turn for a further request within {waited_ms} ms, nothing was sent"
            " (the server answers slowly: ask less of it at once, or try again later)"
        )
        self.address = address


class RouteNotFound(ClientError):
    """Raised when no name server knows a route to `topic`."""

    def __init__(self, topic: str, name_servers: str) -> None:
        super().__init__(
            f"the name servers {name_servers} know no route to topic {topic!r}:"
            " create the topic, or check its name and that its broker is running"
        )
        self.topic = topic


class GroupNotFound(ClientError):
    """Raised when a group was to be changed that the broker at `address` doesn't have."""

    def __init__(self, address: str, group: str) -> None:
        super().__init__(f"{address} has no group {group!r}: create it, or correct the name")
        self.address = address
        self.group = group


class GroupTaken(ClientError):
    """Raised when a second consumer of `group` was to share a client: brokers could not tell them apart."""

    def __init__(self, client_id: str, group: str) -> None:
        super().__init__(
            f"client {client_id} has a consumer of group {group!r} already: give the second one another group, or a"
            " client of its own"
        )
        self.group = group


class NotWritable(ClientError):
    """Raised when the route of `topic` has no queue that may be written."""

    def __init__(self, topic: str) -> None:
        super().__init__(
            f"no broker that has a master lets topic {topic!r} be written:"
            " give the topic the permission to write, or start its master"
        )
        self.topic = topic


class SendFailed(ClientError):
    """Raised when a send was given up.

    `attempts` are its errors in order, `sent` the results of a batch's parts before it.
    """

    def __init__(self, topic: str, attempts: Sequence[Exception], sent: Sequence[SendResult] = ()) -> None:
        count = f"{len(attempts)} attempt" if len(attempts) == 1 else f"{len(attempts)} attempts"
        tries = "; ".join(f"{number}. {error}" for number, error in enumerate(attempts, 1)) or "no time for a try"
        stored = f" ({len(sent)} messages of the batch were stored before)" if sent else ""
        is_unreached = bool(attempts) and isinstance(attempts[-1], NotConnected | RequestTimedOut)
        remedy = f" ({_UNREACHED_REMEDY})" if is_unreached else ""
        super().__init__(f"sending to topic {topic!r} failed after {count}{stored}: {tries}{remedy}")
        self.topic = topic
        self.attempts = tuple(attempts)
        self.sent = tuple(sent)


class NoReply(ClientError, TimeoutError):
    """Raised when a request was sent and no reply came in time: it may have been carried out."""

    def __init__(self, topic: str, message_id: str, timeout_ms: int) -> None:
        super().__init__(
            f"no reply to request {message_id} on topic {topic!r} within {timeout_ms} ms:"
            " see that a consumer of the topic runs and replies"
        )
        self.topic = topic
        self.message_id = message_id


def _first_line(remark: str | None) -> str:
    """Returns the first line of a remark, which says what happened; Java appends whole stack traces."""
    text = (remark or "").strip().partition("\n")[0]
    return text if len(text) <= _REMARK_CHARS_MAX else f"{text[:_REMARK_CHARS_MAX]}…"
