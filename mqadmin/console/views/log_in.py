"""`/login/`: by password, slowed down after failures, or by single sign-on where it is set up."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.socialaccount.providers.openid_connect import views as allauth_views
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe
from requests import RequestException

from mqadmin.people import throttle
from mqadmin.people.single_sign_on import PROVIDER

logger = logging.getLogger(__name__)

TOO_MANY_HTTP_STATUS = 429


class LogIn(LoginView):
    """Django's own, which counts failures and names the provider of single sign-on."""

    redirect_authenticated_user = True

    def post(self, request: HttpRequest, *args: Any, **names: Any) -> HttpResponse:
        """Logs in, or says why not."""
        if throttle.may_try(request, request.POST.get("username", "")):
            return super().post(request, *args, **names)
        # The password is not even looked at.
        form = self.get_form_class()(request, initial={"username": request.POST.get("username", "")})
        words = gettext("Too many attempts failed. Wait five minutes, then try again.")
        context = self.get_context_data(form=form, too_many=words)
        return self.render_to_response(context, status=TOO_MANY_HTTP_STATUS)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Forgets the failures of whoever got in."""
        throttle.forget(self.request, form.cleaned_data["username"])
        return super().form_valid(form)

    def get_context_data(self, **names: Any) -> dict[str, Any]:
        """Adds the provider."""
        provider = settings.MQADMIN_OIDC_NAME if settings.MQADMIN_OIDC_URL else ""
        return super().get_context_data(sso_name=provider, sso=PROVIDER, **names)


def _guarded(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Wraps a view of django-allauth's: a provider that does not answer is said, not a mistake of ours."""

    @wraps(view)
    def guarded(request: HttpRequest, provider_id: str) -> HttpResponse:
        try:
            return view(request, provider_id)
        except RequestException as error:
            logger.warning("the provider of single sign-on: %s", error)
            return render(request, "socialaccount/authentication_error.html", status=502)

    return guarded


sso_log_in = _guarded(allauth_views.login)
sso_callback = _guarded(allauth_views.callback)


@login_not_required
@require_safe
def account_inactive(request: HttpRequest) -> HttpResponse:
    """Says to somebody whom the provider let in that the account here is deactivated."""
    return render(request, "registration/account_inactive.html", status=403)
