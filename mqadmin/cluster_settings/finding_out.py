"""Finding out what is behind name servers, in values and sentences of a preview."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from mqadmin.observing.gateway import GatewayError, Probe, ask

# Slower than this, a person should know: every request of an observation waits for it.
SLOW_S = 1.0


def probe(namesrv: str) -> tuple[Probe | None, str]:
    """Returns what is behind the addresses, or None and the reason."""
    try:
        return ask(namesrv, lambda gateway: gateway.probing.probe()), ""
    except GatewayError as error:
        return None, str(error)


def found_values(found: Probe | None) -> dict[str, Any]:
    """Returns what the cluster is, as the page shows and the audit keeps it; {} where nobody answered."""
    if found is None or not found.broker_count:
        return {}
    return {"found": _kind_words(found), "broker_count": found.broker_count}


def warnings(found: Probe | None, reason: str) -> Iterator[str]:
    """Yields what is slow, half there or something else."""
    if found is None:
        yield reason
        return
    for server in found.name_servers:
        if server.error:
            yield _("The name server %(address)s gives no answer that can be read: %(reason)s") % {
                "address": server.address,
                "reason": server.error,
            }
        elif server.took_s > SLOW_S:
            yield _slow(server.address, server.took_s)
    answered = [server for server in found.name_servers if not server.error]
    if not answered:
        yield _("Nobody answers now. The cluster is followed as soon as somebody does.")
        return
    if len({server.brokers for server in answered}) > 1 and not _are_ours_of_one_cluster(found):
        yield _("The name servers know different brokers: %(which)s. Are they those of one cluster?") % {
            "which": "; ".join(f"{one.address}: {', '.join(one.brokers) or _('none')}" for one in answered)
        }
    if not found.broker_count:
        yield _("The name servers know no broker yet. What there is appears as soon as one registers.")
    yield from _about_brokers(found)


def _are_ours_of_one_cluster(found: Probe) -> bool:
    """Tells whether name servers may know different brokers: each of ours is known to its own one alone."""
    return all(broker.is_ours for broker in found.brokers) and len({broker.cluster for broker in found.brokers}) == 1


def _about_brokers(found: Probe) -> Iterator[str]:
    for broker in found.brokers:
        if broker.error:
            yield _("The broker %(name)s at %(address)s gives no answer that can be read: %(reason)s") % {
                "name": broker.name,
                "address": broker.address,
                "reason": broker.error,
            }
        elif broker.took_s > SLOW_S:
            yield _slow(broker.address, broker.took_s)
    clusters = sorted({broker.cluster for broker in found.brokers if broker.cluster})
    if len(clusters) > 1:
        yield _("The brokers belong to several clusters of RocketMQ (%(names)s): they are shown as one here.") % {
            "names": ", ".join(clusters)
        }


def _slow(address: str, took_s: float) -> str:
    return _("%(address)s answers slowly: it took %(seconds).1f s.") % {"address": address, "seconds": took_s}


def _kind_words(found: Probe) -> str:
    answering = [broker for broker in found.brokers if broker.is_ours is not None]
    if not answering:
        return _("brokers that do not answer")
    versions = sorted({broker.version for broker in answering if not broker.is_ours and broker.version})
    kinds = []
    if any(broker.is_ours for broker in answering):
        kinds.append(_("this project's broker"))
    if any(not broker.is_ours for broker in answering):
        kinds.append(_("Apache RocketMQ %(versions)s") % {"versions": ", ".join(versions)})
    count = len(answering)
    words = ngettext("%(n)d broker answers", "%(n)d brokers answer", count) % {"n": count}
    return f"{' + '.join(kinds)}; {words}"
