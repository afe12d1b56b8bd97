"""A name server's own settings, and the values that it keeps for tools.

Each name server has its own: who changes one changes all, one call each.
"""

from __future__ import annotations

from collections.abc import Mapping

from remoting.client.admin.requests import Requests
from remoting.client.errors import BrokerRefused
from remoting.wire.bodies.kv_config import read_kv_table
from remoting.wire.bodies.properties import read_settings, write_changes
from remoting.wire.codes import RequestCode, ResponseCode
from remoting.wire.headers.name_server import KVConfigHeader, KVConfigResponseHeader, NamespaceHeader, PutKVConfigHeader
from remoting.wire.headers.typed import read_header


class NameServer:
    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def config(self, namesrv: str) -> dict[str, str]:
        """Returns the settings by name (319)."""
        answer = await self._requests.ask(namesrv, RequestCode.GET_NAMESRV_CONFIG)
        return read_settings(answer.body)

    async def update_config(self, namesrv: str, changes: Mapping[str, str]) -> None:
        """Changes settings (318). Names that the server doesn't have are ignored by it: read the settings again.

        Raises BrokerRefused (NO_PERMISSION) for a setting that must not change while it runs.
        """
        await self._requests.ask(namesrv, RequestCode.UPDATE_NAMESRV_CONFIG, body=write_changes(changes))

    async def values(self, namesrv: str, namespace: str) -> dict[str, str]:
        """Returns the values of a namespace by key (219); none for a namespace that isn't there."""
        header, code = NamespaceHeader(namespace=namespace), RequestCode.GET_KVLIST_BY_NAMESPACE
        try:
            answer = await self._requests.ask(namesrv, code, header, about=f"namespace {namespace!r}")
        except BrokerRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return {}
            raise
        return read_kv_table(answer.body)

    async def value(self, namesrv: str, namespace: str, key: str) -> str | None:
        """Returns a value (101); None where there is none."""
        header, code = KVConfigHeader(namespace=namespace, key=key), RequestCode.GET_KV_CONFIG
        try:
            answer = await self._requests.ask(namesrv, code, header, about=f"{namespace}/{key}")
        except BrokerRefused as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return read_header(KVConfigResponseHeader, answer.ext_fields).value

    async def put_value(self, namesrv: str, namespace: str, key: str, value: str) -> None:
        """Sets a value (100)."""
        header, code = PutKVConfigHeader(namespace=namespace, key=key, value=value), RequestCode.PUT_KV_CONFIG
        await self._requests.ask(namesrv, code, header, about=f"{namespace}/{key}")

    async def delete_value(self, namesrv: str, namespace: str, key: str) -> None:
        """Deletes a value (102); one that isn't there is no error."""
        header, code = KVConfigHeader(namespace=namespace, key=key), RequestCode.DELETE_KV_CONFIG
        await self._requests.ask(namesrv, code, header, about=f"{namespace}/{key}")
