"""Reads bodies. JSON: bounded, and strict where Python's own decoder is not (NaN, lone surrogates, depth)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

import msgspec
from django.utils.translation import gettext as _
from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from mqadmin.api.problems import TOO_LARGE, Problem

# The longest list of names that an action may take fits several times.
BODY_BYTES_MAX = 1 << 20
# YAML is read at some tens of kilobytes a second where it is dense; the page takes as much.
YAML_BYTES_MAX = 256 * 1024


class JsonParser(BaseParser):
    """application/json up to BODY_BYTES_MAX."""

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Returns the document. Raises ParseError, Problem for a body that is too large."""
        try:
            return msgspec.json.decode(_bounded(stream, BODY_BYTES_MAX))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ParseError(_("The body is not valid JSON: %(reason)s") % {"reason": error}) from error


class YamlParser(BaseParser):
    """application/yaml up to YAML_BYTES_MAX, as bytes: `configuration/document.py` reads it."""

    media_type = "application/yaml"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Returns the text. Raises Problem for a body that is too large."""
        return _bounded(stream, YAML_BYTES_MAX)


class _FileParser(BaseParser):
    """A file, left to the view, which reads it as it comes."""

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Returns the stream."""
        return stream


class CsvParser(_FileParser):
    """text/csv."""

    media_type = "text/csv"


class JsonLinesParser(_FileParser):
    """application/jsonl."""

    media_type = "application/jsonl"


def _bounded(stream: IO[Any], bytes_max: int) -> bytes:
    text: bytes = stream.read(bytes_max + 1)
    if len(text) > bytes_max:
        raise Problem(TOO_LARGE, _("A body may have %(bytes)d bytes.") % {"bytes": bytes_max})
    return text
