"""Posts to an address that a person typed, without becoming their hand in this network.

- https and http alone, without a name or password in the address.
- The host's addresses are looked up once, and the connection goes to one that was looked at: a name that answers
  otherwise the second time gains nothing. One address that is refused refuses the host.
- Refused: loopback, link-local (there clouds keep their metadata), the metadata addresses outside of it, unspecified,
  multicast and reserved ones, also where IPv6 carries them. `allowed` networks are not refused. Private networks are
  not: that is where people's own receivers are.
- A redirect is an answer like any other: it is not followed. No proxy is asked.
- The whole takes at most TOTAL_S, looking up aside; of the answer ANSWER_BYTES_MAX are read.

Errors name the host and never the address: its path is what lets people write to the channel.
"""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from django.utils.translation import gettext_noop

from mqadmin.delivery import NotDelivered

TOTAL_S = 10
CONNECT_S = 5
ANSWER_BYTES_MAX = 16 * 1024
PORTS = {"http": 80, "https": 443}

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# Of clouds that keep their metadata outside the link-local networks: AWS by IPv6, Alibaba, Oracle.
_METADATA = tuple(ip_network(one) for one in ("fd00:ec2::/32", "100.100.100.200/32", "192.0.0.192/32"))
_NAT64 = IPv6Network("64:ff9b::/96")


@dataclass(frozen=True, slots=True)
class Post:
    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Target:
    scheme: str
    host: str
    port: int
    path: str


def target_of(url: str) -> Target:
    """Raises ValueError with words for people: what is wrong with the address."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError as error:
        raise ValueError(gettext_noop("it is no address")) from error
    if parts.scheme not in PORTS or not parts.hostname:
        raise ValueError(gettext_noop("it must begin with https:// or http:// and a host"))
    if parts.username is not None or parts.password is not None:
        raise ValueError(gettext_noop("leave out the name and password before the @"))
    if not all(32 < ord(char) < 127 for char in url.strip()):
        raise ValueError(gettext_noop("it may have printable ASCII characters alone, and no blank"))
    path = parts.path or "/"
    return Target(
        parts.scheme,
        parts.hostname,
        port or PORTS[parts.scheme],
        f"{path}?{parts.query}" if parts.query else path,
    )


def is_refused(address: str, allowed: Sequence[Network]) -> bool:
    """Tells whether nothing is posted to an IP address."""
    found = _carried(ip_address(address.partition("%")[0]))
    if any(found.version == network.version and found in network for network in allowed):
        return False
    if any(found.version == network.version and found in network for network in _METADATA):
        return True
    return bool(
        found.is_loopback or found.is_link_local or found.is_unspecified or found.is_multicast or found.is_reserved
    )


def _carried(address: Address) -> Address:
    """Returns the IPv4 address that an IPv6 address stands for, else the address."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo[1] if address.teredo else None
    return address.ipv4_mapped or address.sixtofour or teredo or address


def post(request: Post, allowed: Sequence[Network], *, total_s: float = TOTAL_S) -> Answer:
    """Posts and returns the answer, whatever its status. Raises NotDelivered."""
    try:
        target = target_of(request.url)
    except ValueError as error:
        raise NotDelivered(str(error), is_for_good=True) from error
    found = _connect(target, _addresses(target, allowed))
    # A server that sends a byte now and then would else hold a worker for as long as it likes.
    if target.scheme == "https":
        # The handshake is a part of what the clock ends, and the socket that was wrapped is no longer the connection.
        found = ssl.create_default_context().wrap_socket(
            found, server_hostname=target.host, do_handshake_on_connect=False
        )
    is_over = threading.Event()
    clock = threading.Timer(total_s, _cut, [found, is_over])
    clock.daemon = True
    clock.start()
    try:
        if isinstance(found, ssl.SSLSocket):
            found.do_handshake()
        answer = _exchange(found, target, request)
    except (OSError, http.client.HTTPException) as error:
        raise NotDelivered(_words(target.host, TimeoutError() if is_over.is_set() else error)) from error
    finally:
        clock.cancel()
        found.close()
    if is_over.is_set():
        raise NotDelivered(_words(target.host, TimeoutError()))
    return answer


def _addresses(target: Target, allowed: Sequence[Network]) -> list[str]:
    try:
        found = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        words = gettext_noop("%(host)s has no address")
        raise NotDelivered(words % {"host": target.host}) from error
    addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
    if any(is_refused(one, allowed) for one in addresses):
        words = gettext_noop("nothing is posted to %(host)s: it is local (MQADMIN_ALERT_NETWORKS can allow it)")
        raise NotDelivered(words % {"host": target.host}, is_for_good=True)
    return addresses


def _connect(target: Target, addresses: Sequence[str]) -> socket.socket:
    failed: OSError = OSError("no address")
    for address in addresses[:2]:
        try:
            return socket.create_connection((address, target.port), timeout=CONNECT_S)
        except OSError as error:
            failed = error
    raise NotDelivered(_words(target.host, failed)) from failed


def _exchange(connected: socket.socket, target: Target, request: Post) -> Answer:
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.sock = connected
    try:
        default = target.port == PORTS[target.scheme]
        host = f"[{target.host}]" if ":" in target.host else target.host
        headers = {"Host": host if default else f"{host}:{target.port}", "Content-Type": "application/json"}
        connection.request("POST", target.path, request.body, {**headers, **request.headers, "Connection": "close"})
        answer = connection.getresponse()
        return Answer(answer.status, answer.read(ANSWER_BYTES_MAX))
    finally:
        connection.close()


def _cut(connected: socket.socket, is_over: threading.Event) -> None:
    is_over.set()
    try:
        # Of the connection itself: a TLS socket's own shutdown would first say farewell.
        socket.socket.shutdown(connected, socket.SHUT_RDWR)
    except OSError:
        pass


def _words(host: str, error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return gettext_noop("%(host)s gives no answer in time") % {"host": host}
    if isinstance(error, ssl.SSLCertVerificationError):
        words = gettext_noop("the certificate of %(host)s is not trusted: %(reason)s")
        return words % {"host": host, "reason": error.verify_message}
    reason = error.strerror if isinstance(error, OSError) and error.strerror else type(error).__name__
    return gettext_noop("%(host)s cannot be reached: %(reason)s") % {"host": host, "reason": reason}
