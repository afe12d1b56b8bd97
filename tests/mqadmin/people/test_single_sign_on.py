"""Single sign-on with a small OpenID Connect provider, over real sockets."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from allauth.socialaccount.providers import registry
from allauth.socialaccount.providers.openid_connect.provider import OpenIDConnectProvider
from django.test import Client

from mqadmin import environment
from mqadmin.people import access, persons
from mqadmin.people.models import LogIn
from mqadmin.people.roles import Role
from tests.support.people import make_person

pytestmark = pytest.mark.django_db

CLIENT_ID, SECRET = "mqadmin", "a secret that is long enough for sha-256"


@dataclass
class Provider:
    """A provider at which one person is logged in. `claims` is what it says of them."""

    claims: dict[str, Any] = field(default_factory=lambda: {"sub": "17", "preferred_username": "ann"})
    url: str = ""
    # By code: what the authorization was asked with.
    asked: dict[str, dict[str, str]] = field(default_factory=dict)
    fails: bool = False

    def authorize(self, query: dict[str, str]) -> str:
        """Returns the address to which the browser goes back."""
        code = f"code-{len(self.asked)}"
        self.asked[code] = query
        return f"{query['redirect_uri']}?{urllib.parse.urlencode({'code': code, 'state': query['state']})}"

    def token(self, form: dict[str, str]) -> dict[str, Any]:
        """Checks the code, the secret and the proof key, as a real one does."""
        asked = self.asked.pop(form["code"])
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == asked["code_challenge"]
        assert (form["client_id"], form["client_secret"]) == (CLIENT_ID, SECRET)
        now = int(time.time())
        said = {"iss": self.url, "aud": CLIENT_ID, "iat": now, "exp": now + 60, **self.claims}
        id_token = jwt.encode(said, SECRET, algorithm="HS256")
        return {"access_token": "t", "token_type": "Bearer", "expires_in": 60, "id_token": id_token}

    def answer(self, path: str, form: dict[str, str]) -> dict[str, Any]:
        return {
            "/.well-known/openid-configuration": lambda: {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "userinfo_endpoint": f"{self.url}/userinfo",
                "jwks_uri": f"{self.url}/keys",
                "token_endpoint_auth_methods_supported": ["client_secret_post"],
            },
            "/token": lambda: self.token(form),
            "/userinfo": lambda: self.claims,
        }[path]()


@pytest.fixture
def provider(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    provider = Provider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urllib.parse.urlsplit(self.path)
            if parts.path == "/authorize":
                self.send_response(302)
                self.send_header("Location", provider.authorize(dict(urllib.parse.parse_qsl(parts.query))))
                self.end_headers()
                return
            self._say({})

        def do_POST(self) -> None:
            text = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._say(dict(urllib.parse.parse_qsl(text)))

        def _say(self, form: dict[str, str]) -> None:
            self.send_response(500 if provider.fails else 200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(provider.answer(urllib.parse.urlsplit(self.path).path, form)).encode())

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    # How soon it sees that it is to end.
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="provider")
    thread.start()
    provider.url = f"http://127.0.0.1:{server.server_port}"
    settings.MQADMIN_OIDC_URL = provider.url
    settings.MQADMIN_OIDC_NAME = "The Office"
    settings.MQADMIN_OIDC_ROLE = "viewer"
    settings.SOCIALACCOUNT_PROVIDERS = environment.openid_connect(
        provider.url, "The Office", client_id=CLIENT_ID, secret=SECRET
    )
    # As its app does in a process that starts with these settings.
    monkeypatch.setitem(registry.provider_map, OpenIDConnectProvider.id, OpenIDConnectProvider)
    yield provider
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_process_has_the_app_of_single_sign_on_where_it_is_set_up_alone(tmp_path: Path) -> None:
    program = "from allauth.socialaccount.providers import registry; print(len(registry.get_class_list()))"
    names = {"MQADMIN_OIDC_URL": "https://sso.example", "MQADMIN_OIDC_ID": CLIENT_ID, "MQADMIN_OIDC_SECRET": SECRET}
    for environment_of_it, count in ((names, 1), ({}, 0)):
        said = subprocess.run(
            [sys.executable, "-c", f"import django; django.setup(); {program}"],
            env={
                **os.environ,
                "DJANGO_SETTINGS_MODULE": "mqadmin.settings",
                "MQADMIN_DATA": str(tmp_path / "data"),
                **environment_of_it,
            },
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == f"{count}\n"


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def sign_on(client: Client, provider: Provider) -> Any:
    """Does what a browser does: to the provider and back. Returns the console's last answer."""
    login_page = client.get("/login/?next=/audit/").content.decode()
    assert "Log in with The Office" in login_page
    sent = client.get("/login/sso/login/?next=/audit/")
    assert sent["Location"].startswith(f"{provider.url}/authorize?")
    try:
        urllib.request.build_opener(_NoRedirect).open(sent["Location"])
    except urllib.error.HTTPError as error:
        with error:
            back = error.headers["Location"]
    assert back.startswith("http://testserver/login/sso/login/callback/?")
    return client.get(back.removeprefix("http://testserver"))


def test_a_newcomer_gets_an_account_without_a_password_and_the_role_for_newcomers(provider: Provider) -> None:
    client = Client()
    answer = sign_on(client, provider)
    assert (answer.status_code, answer["Location"]) == (302, "/audit/")
    ann = persons.accounts().get()
    assert (ann.get_username(), ann.has_usable_password(), ann.email) == ("ann", False, "")
    assert access.role_on(ann, None) is Role.VIEWER
    assert client.get("/").status_code == 200
    assert LogIn.objects.get().person == ann


def test_who_comes_again_is_the_same_account_with_the_role_that_it_has_now(provider: Provider) -> None:
    sign_on(Client(), provider)
    persons.give_group(persons.accounts().get(), "operator")
    provider.claims["preferred_username"] = "ann-married"
    sign_on(Client(), provider)
    assert access.role_on(persons.accounts().get(), None) is Role.OPERATOR


def test_an_account_that_is_here_already_is_never_taken_over(provider: Provider) -> None:
    make_person("ann", Role.ADMIN)
    provider.claims["email"] = "ann@example.org"
    client = Client()
    sign_on(client, provider)
    assert persons.accounts().count() == 2
    assert client.get("/people/").status_code == 403


def test_a_deactivated_account_does_not_get_in(provider: Provider) -> None:
    sign_on(Client(), provider)
    persons.accounts().update(is_active=False)
    client = Client()
    answer = sign_on(client, provider)
    assert answer["Location"] == "/login/inactive/"
    page = client.get("/login/inactive/")
    assert (page.status_code, "deactivated" in page.content.decode()) == (403, True)
    assert client.get("/").status_code == 302


def test_a_provider_that_does_not_answer_as_it_should_is_said(provider: Provider) -> None:
    client = Client()
    provider.fails = True
    answer = client.get("/login/sso/login/")
    assert (answer.status_code, "did not come about" in answer.content.decode()) == (502, True)
    assert persons.accounts().count() == 0


def test_a_forged_way_back_lets_nobody_in(provider: Provider) -> None:
    client = Client()
    answer = client.get("/login/sso/login/callback/?code=x&state=y")
    assert "did not come about" in answer.content.decode()
    assert client.get("/").status_code == 302


def test_without_a_provider_there_is_no_link_and_no_page() -> None:
    client = Client()
    assert "/login/sso/" not in client.get("/login/").content.decode()
    assert client.get("/login/sso/login/").status_code == 404
