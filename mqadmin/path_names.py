"""How an address holds the name of a topic or group; pages and REST write it alike."""

from __future__ import annotations

from django.urls import register_converter
from django.urls.converters import StringConverter


class NameConverter(StringConverter):
    """A topic's or group's name as a broker reports it, even one with "/" or a line break in it."""

    regex = r"[\s\S]+?"


register_converter(NameConverter, "name")
