from __future__ import annotations

import json
import shlex

from django.test import RequestFactory

from mqadmin.console.curl import curl_command


def test_the_command_is_what_a_shell_reads_as_the_request() -> None:
    arguments = {"topic": "it's", "queues": 4}
    text = curl_command(RequestFactory().get("/"), "delete_topic", "prod", arguments, confirmation="it's")
    words = shlex.split(text.replace("\\\n", ""))
    assert words[0] == "curl"
    assert json.loads(words[words.index("--data") + 1]) == {"arguments": arguments, "confirmation": "it's"}
    assert words[-1] == "http://testserver/api/v1/clusters/prod/actions/delete_topic/run"


def test_an_action_on_the_installation_names_no_cluster() -> None:
    text = curl_command(RequestFactory().get("/"), "create_token", "", {})
    assert "/api/v1/actions/create_token/run" in text
