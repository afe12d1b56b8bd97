"""PUT_KV_CONFIG (100), GET_KV_CONFIG (101), DELETE_KV_CONFIG (102), GET_KVLIST_BY_NAMESPACE (219): values that tools
keep in the name server."""

from __future__ import annotations

from broker.engine.name_server.kv_config import KVConfig
from broker.engine.serving.requests import Request
from remoting.wire.bodies.document import write_body
from remoting.wire.bodies.kv_config import KVTable
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.headers.name_server import KVConfigHeader, NamespaceHeader, PutKVConfigHeader
from remoting.wire.headers.typed import read_header


class KVConfigRequests:
    def __init__(self, values: KVConfig) -> None:
        self._values = values

    def put(self, request: Request) -> Command:
        """Raises MessageError."""
        header = read_header(PutKVConfigHeader, request.command.ext_fields)
        if header.namespace is None or header.key is None:
            raise MessageError("namespace or key is null", ResponseCode.SYSTEM_ERROR)
        self._values.put(header.namespace, header.key, header.value)
        return response(request.command, ResponseCode.SUCCESS)

    def get(self, request: Request) -> Command:
        """Raises MessageError when there is none."""
        header = read_header(KVConfigHeader, request.command.ext_fields)
        value = self._values.get(header.namespace, header.key)
        if value is None:
            text = f"No config item, Namespace: {header.namespace} Key: {header.key}"
            raise MessageError(text, ResponseCode.QUERY_NOT_FOUND)
        return response(request.command, ResponseCode.SUCCESS, ext_fields={"value": value})

    def delete(self, request: Request) -> Command:
        header = read_header(KVConfigHeader, request.command.ext_fields)
        self._values.delete(header.namespace, header.key)
        return response(request.command, ResponseCode.SUCCESS)

    def of_namespace(self, request: Request) -> Command:
        """Raises MessageError for a namespace into which nothing was ever put."""
        header = read_header(NamespaceHeader, request.command.ext_fields)
        table = self._values.table(header.namespace)
        if table is None:
            raise MessageError(f"No config item, Namespace: {header.namespace}", ResponseCode.QUERY_NOT_FOUND)
        return response(request.command, ResponseCode.SUCCESS, body=write_body(KVTable(table=table)))
