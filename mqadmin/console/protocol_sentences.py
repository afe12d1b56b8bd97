"""What the protocol's own packages say, for the catalogue: names that break a rule, and addresses that do not answer.

`remoting` knows no Django and says it in English, which rows, forms and previews hand on; `stored_words.py` finds its
Chinese by these texts. Each is tested against what is really raised. Beyond them lie a broker's own remarks.
"""

from __future__ import annotations

from django.utils.translation import gettext_noop

PROTOCOL_SENTENCES = (
    # remoting/wire/names.py, as forms show it.
    gettext_noop("The topic name is blank."),
    gettext_noop("The topic name has %(count)s characters; %(most)s are allowed: %(name)s…."),
    gettext_noop("The topic name %(name)s holds a character other than letters, digits, %% | - and _."),
    gettext_noop("The group name is blank."),
    gettext_noop("The group name has %(count)s characters; %(most)s are allowed: %(name)s…."),
    gettext_noop("The group name %(name)s holds a character other than letters, digits, %% | - and _."),
    # remoting/client/, remoting/connecting.py, mqadmin/observing/.
    gettext_noop("no connection to %(address)s: %(reason)s"),
    gettext_noop("nothing answered within %(timeout)s ms"),
    gettext_noop("Connection refused"),
    gettext_noop("Connection reset by peer"),
    gettext_noop("No route to host"),
    gettext_noop("%(address)s did not answer %(request)s within %(timeout)s ms"),
    gettext_noop("%(address)s did not answer within %(timeout)s s"),
    gettext_noop("%(address)s refused %(request)s with %(response)s"),
    gettext_noop("%(address)s refused %(request)s with %(response)s: %(remark)s"),
    gettext_noop("%(request)s is not supported by this broker: %(address)s has version %(version)s"),
    gettext_noop("lost while waiting for the answer to %(request)s"),
    gettext_noop("no name server answers (%(reasons)s): start one, or correct the address"),
    gettext_noop("the name servers %(addresses)s know no broker: start one"),
    gettext_noop("%(count)s brokers are named %(name)s (%(addresses)s): give each a name of its own"),
    gettext_noop(
        "%(address)s: no turn for a further request within %(waited)s ms, nothing was sent (the server answers slowly: "
        "ask less of it at once, or try again later)"
    ),
)
