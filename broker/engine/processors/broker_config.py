"""GET_BROKER_CONFIG (26) and UPDATE_BROKER_CONFIG (25): the settings of `settings.py` (`AdminBrokerProcessor`)."""

from __future__ import annotations

from broker.engine.config_files import ConfigFileUnreadable
from broker.engine.serving.requests import Request
from broker.engine.settings import Settings
from remoting.wire.bodies.document import write_body
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.errors import MessageError
from remoting.wire.java_properties import read_properties, write_properties


class GetBrokerConfig:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self, request: Request) -> Command:
        fields = {"version": write_body(self._settings.version).decode()}
        body = write_properties(self._settings.all_as_text()).encode()
        return response(request.command, ResponseCode.SUCCESS, ext_fields=fields, body=body)


class UpdateBrokerConfig:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self, request: Request) -> Command:
        """Raises MessageError for a name that cannot change, or a value that makes no sense."""
        change_settings(self._settings, request)
        return response(request.command, ResponseCode.SUCCESS)


def change_settings(settings: Settings, request: Request) -> None:
    """Changes `settings` as the body's properties say. Raises MessageError."""
    try:
        text = bytes(request.command.body).decode()
    except UnicodeDecodeError as error:
        raise MessageError(
            "UnsupportedEncodingException: the body is no UTF-8 text", ResponseCode.SYSTEM_ERROR
        ) from error
    try:
        settings.change(read_properties(text))
    except ConfigFileUnreadable as error:
        raise MessageError(str(error), ResponseCode.SERVICE_NOT_AVAILABLE) from error
