"""GET_NAMESRV_CONFIG (319) and UPDATE_NAMESRV_CONFIG (318): the name server's settings (`DefaultRequestProcessor`)."""

from __future__ import annotations

from broker.engine.processors.broker_config import change_settings
from broker.engine.serving.requests import Request
from broker.engine.settings import Settings
from remoting.wire.codes import ResponseCode
from remoting.wire.command import Command, response
from remoting.wire.java_properties import write_properties


class GetNamesrvConfig:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self, request: Request) -> Command:
        body = write_properties(self._settings.all_as_text()).encode()
        return response(request.command, ResponseCode.SUCCESS, body=body)


class UpdateNamesrvConfig:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __call__(self, request: Request) -> Command:
        """Raises MessageError for a name that cannot change, or a value that makes no sense."""
        change_settings(self._settings, request)
        return response(request.command, ResponseCode.SUCCESS)
