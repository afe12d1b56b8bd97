"""Sentences at the top of pages, below the title, that sum up what the page shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import reduce

from django.utils.translation import gettext, ngettext

from mqadmin.action_runs.runs import Result
from mqadmin.actions.declaration import ItemState
from mqadmin.actions.present import OnBrokers
from mqadmin.audit.models import Outcome
from mqadmin.brokers.settings import BrokerSettings
from mqadmin.clusters.models import (
    NEEDS_ATTENTION,
    POLLED_KINDS,
    Broker,
    Cluster,
    ClusterKind,
    ClusterState,
    Group,
    Topic,
)
from mqadmin.clusters.selectors import ClusterCard, ListPage, Overview, TopicPage
from mqadmin.console.figures import age_text, count_text, duration_text, milliseconds
from mqadmin.deadletters.failing import StatusAnswers
from mqadmin.deadletters.models import DeadLetter
from mqadmin.deadletters.selectors import Totals
from mqadmin.flows.selectors import FlowMap
from mqadmin.hosting.hosted import HostedInstances
from mqadmin.hosting.outbox import OutboxCounts
from mqadmin.producers.asking import ProducersAnswer
from mqadmin.retries.models import FailedAttempt
from mqadmin.retries.selectors import Waiting
from mqadmin.retries.standing import Standing


def one_after_another(sentences: Iterable[str]) -> str:
    """Returns sentences as one text, with what the language has between two."""
    return reduce(lambda before, after: gettext("%(before)s %(after)s") % {"before": before, "after": after}, sentences)


def headline(overview: Overview, attention_count: int) -> str:
    """Returns the title of the overview."""
    if attention_count:
        return ngettext("%(n)d thing needs attention", "%(n)d things need attention", attention_count) % {
            "n": attention_count
        }
    if not overview.clusters:
        return gettext("No cluster yet")
    if all(card.head.state == ClusterState.NEW for card in overview.clusters):
        return gettext("Waiting for the first answer")
    return gettext("Nothing needs attention")


def first_steps_headline(head: Cluster) -> str:
    """Returns the title of a fresh install's overview."""
    return gettext("%(cluster)s is ready for its first message") % {"cluster": head.name}


def first_steps_sentence() -> str:
    return gettext("Its broker answers; no message has been sent yet. This page updates by itself.")


def overview_sentence(overview: Overview) -> str:
    if not overview.clusters:
        return gettext("The first one appears when the background workers run. manage.py up starts them all.")
    if all(card.head.state == ClusterState.NEW for card in overview.clusters):
        return gettext("The console has asked the clusters below. Their figures appear within seconds.")
    cards = overview.clusters
    return one_after_another(
        [
            brokers_sentence(
                sum(card.answering_broker_count for card in cards), sum(card.broker_count for card in cards)
            ),
            _groups_sentence(sum(card.group_count for card in cards)),
        ]
    )


def group_settings_sentence(found: OnBrokers) -> str:
    """Returns which brokers have the group, and whether they have it alike."""
    having = list(found.having)
    if not having:
        return gettext("No broker that answered has settings of it: a new group is made with the defaults.")
    if len(having) == 1:
        return gettext("%(broker)s has these settings of it.") % {"broker": having[0]}
    if found.differing:
        return gettext("The brokers that have it differ.")
    return gettext("All %(n)s brokers that have it have the same settings.") % {"n": count_text(len(having))}


def settings_sentence(found: BrokerSettings) -> str:
    """Returns how many settings differ from their defaults, and where the defaults are known from."""
    if found.defaults is None:
        words = gettext(
            "What differs from the defaults is not known: those of RocketMQ %(version)s were never measured."
        )
        return words % {"version": found.version}
    differ = (
        ngettext(
            "One setting differs from its default.", "%(n)s settings differ from their defaults.", found.changed_count
        )
        if found.changed_count
        else gettext("All settings are at their defaults.")
    ) % {"n": count_text(found.changed_count)}
    if not found.defaults.version:
        return differ
    source = gettext("The defaults are what a fresh broker of Apache RocketMQ %(version)s answered.")
    return f"{differ} {source % {'version': found.defaults.version}}"


def producers_sentence(answer: ProducersAnswer, topic: str, group: str) -> str:
    """Returns how many producers were found, and what that means."""
    if not answer.broker_count:
        return gettext("No broker of this cluster is known yet that could be asked.")
    if len(answer.failures) == answer.broker_count:
        return gettext("No broker answered which producers are connected.")
    numbers = {"n": count_text(answer.total_count), "topic": topic, "group": group}
    if group:
        return (
            ngettext(
                "One producer of the group %(group)s is connected to the brokers that have %(topic)s.",
                "%(n)s producers of the group %(group)s are connected to the brokers that have %(topic)s.",
                answer.total_count,
            )
            if answer.total_count
            else gettext("No producer of the group %(group)s is connected to the brokers that have %(topic)s.")
        ) % numbers
    return (
        ngettext(
            "One producer is connected to the brokers that have %(topic)s.",
            "%(n)s producers are connected to the brokers that have %(topic)s.",
            answer.total_count,
        )
        if answer.total_count
        else gettext("No producer is connected to the brokers that have %(topic)s.")
    ) % numbers


def brokers_sentence(answering: int, known: int) -> str:
    if known == 0:
        return gettext("No broker is known yet.")
    if answering == known:
        return ngettext("The one broker answers.", "All %(n)s brokers answer.", known) % {"n": count_text(known)}
    return gettext("%(answering)s of %(known)s brokers answer.") % {
        "answering": count_text(answering),
        "known": count_text(known),
    }


def cluster_sentence(card: ClusterCard, brokers: Sequence[Broker]) -> str:
    words = [brokers_sentence(card.answering_broker_count, card.broker_count)]
    if any(broker.scheduler is not None and not broker.scheduler.driver for broker in brokers):
        words.append(gettext("No worker runs the scheduler, so delayed messages and retries wait."))
    if card.group_count:
        words.append(_groups_sentence(card.group_count, card.attention_count))
    return one_after_another(words)


def polling_sentence(head: Cluster, interval_s: int) -> str:
    """Returns what polling the cluster costs it; "" where it is followed or was not asked yet."""
    if head.kind not in POLLED_KINDS or head.cycle_request_count is None or head.cycle_seconds is None:
        return ""
    words = [
        ngettext(
            "Polled every %(interval)s s: the last cycle took %(n)s request and %(seconds)s s.",
            "Polled every %(interval)s s: the last cycle took %(n)s requests and %(seconds)s s.",
            head.cycle_request_count,
        )
        % {"interval": interval_s, "n": count_text(head.cycle_request_count), "seconds": f"{head.cycle_seconds:.1f}"}
    ]
    if head.kind == ClusterKind.MIXED:
        words.append(gettext("It cannot be followed, because some of its brokers are Apache’s."))
    return " ".join(words)


def instances_sentence(hosted: HostedInstances) -> str:
    """Returns how many of the wanted instances are running, and how many are starting; or that they are stopped."""
    if hosted.is_stopped:
        return ngettext(
            "Stopped: this project’s workers run %(n)s instance when it is started again.",
            "Stopped: this project’s workers run %(n)s instances when they are started again.",
            hosted.wanted,
        ) % {"n": count_text(hosted.wanted)}
    words = [
        ngettext(
            "Run by this project’s workers: %(running)s of %(n)s instance is running.",
            "Run by this project’s workers: %(running)s of %(n)s instances are running.",
            hosted.wanted,
        )
        % {"running": count_text(hosted.running), "n": count_text(hosted.wanted)}
    ]
    if hosted.starting:
        starting = hosted.starting
        words.append(ngettext("%(n)s is starting.", "%(n)s are starting.", starting) % {"n": count_text(starting)})
    return one_after_another(words)


def instances_set_sentence(group: str, wanted: int) -> str:
    """Returns the notice after the number was changed."""
    return ngettext(
        "%(group)s is set to %(n)s instance. The workers follow within seconds.",
        "%(group)s is set to %(n)s instances. The workers follow within seconds.",
        wanted,
    ) % {"n": count_text(wanted), "group": group}


def outcome_words(result: Result) -> str:
    """Sums up what became of a run; its items say the rest."""
    match result.outcome:
        case Outcome.DONE if all(one.state == ItemState.UNCHANGED for one in result.items):
            return gettext("Nothing was changed: it was so already.")
        case Outcome.DONE:
            return gettext("It was carried out.")
        case Outcome.PARTIAL:
            good = sum(one.state in (ItemState.DONE, ItemState.UNCHANGED) for one in result.items)
            return gettext("%(good)s of %(n)s items are as wanted; the others say why they are not.") % {
                "good": count_text(good),
                "n": count_text(len(result.items)),
            }
        case Outcome.UNKNOWN:
            return gettext("It may have been carried out: no answer came. Look at what is there now.")
        case Outcome.FAILED | Outcome.REFUSED:
            return gettext("Nothing was changed.")


def together_sentence(results: Sequence[Result], expected: int, *, is_running: bool) -> str:
    """Sums up what became of the runs of one change of many."""
    numbers = {
        "done": count_text(sum(one.outcome == Outcome.DONE for one in results)),
        "n": count_text(max(expected, len(results))),
    }
    if is_running:
        return gettext("%(done)s of %(n)s are done so far.") % numbers
    if len(results) < expected:
        numbers["missing"] = count_text(expected - len(results))
        return (
            gettext(
                "%(done)s of %(n)s are done; %(missing)s were not begun, since the console ended: do the same again."
            )
            % numbers
        )
    if all(one.outcome == Outcome.DONE for one in results):
        return ngettext("It is done.", "All %(n)s are done.", len(results)) % numbers
    return gettext("%(done)s of %(n)s are done; the others say why they are not.") % numbers


def flows_sentence(flows: FlowMap) -> str:
    groups = {one.group.pk: one for flow in flows.topics for one in flow.groups}.values()
    unwell = sum(one.group.verdict in NEEDS_ATTENTION for one in groups)
    failing = sum(one.dead is not None and bool(one.dead.in_per_s) for one in groups)
    if not groups:
        return gettext("No group is known to read what is shown here.")
    if not unwell and not failing:
        return ngettext(
            "One group is shown; messages reach it.", "%(n)s groups are shown; messages reach all of them.", len(groups)
        ) % {"n": count_text(len(groups))}
    return gettext("Groups shown: %(n)s. They need attention: %(unwell)s. Dead letters come in: %(failing)s.") % {
        "n": count_text(len(groups)),
        "unwell": count_text(unwell),
        "failing": count_text(failing),
    }


def topic_sentence(page: TopicPage) -> str:
    readers = len(page.readers)
    if not readers:
        return gettext("No consumer group is known to read it.")
    unwell = sum(reader.group.verdict in NEEDS_ATTENTION for reader in page.readers)
    if not unwell:
        return ngettext(
            "One group reads it; it needs no attention.", "%(n)s groups read it; none needs attention.", readers
        ) % {"n": count_text(readers)}
    return ngettext(
        "One group reads it; it needs attention.",
        "%(n)s groups read it; %(unwell)s of them need attention.",
        readers,
    ) % {"n": count_text(readers), "unwell": count_text(unwell)}


def groups_total(page: ListPage[Group]) -> str:
    return ngettext("%(n)s group", "%(n)s groups", page.total_count) % {"n": count_text(page.total_count)}


def topics_total(page: ListPage[Topic]) -> str:
    return ngettext("%(n)s topic", "%(n)s topics", page.total_count) % {"n": count_text(page.total_count)}


def _groups_sentence(group_count: int, attention_count: int = 0) -> str:
    if group_count == 0:
        return gettext("No consumer group is known yet.")
    if attention_count == 0:
        return ngettext(
            "One consumer group; it needs no attention.",
            "%(n)s consumer groups; none needs attention.",
            group_count,
        ) % {"n": count_text(group_count)}
    return gettext("%(attention)s of %(n)s consumer groups need attention.") % {
        "attention": count_text(attention_count),
        "n": count_text(group_count),
    }


def dead_letters_sentence(totals: Totals) -> str:
    """Sums up what the index of dead letters holds."""
    if not totals.failure_count:
        return gettext("No message has died.") if not totals.not_indexed_count else _not_indexed(totals)
    parts = [
        ngettext("%(count)s dead letter", "%(count)s dead letters", totals.dead_count)
        % {"count": count_text(totals.dead_count)},
        ngettext("of %(count)s failure", "of %(count)s failures", totals.failure_count)
        % {"count": count_text(totals.failure_count)},
    ]
    told = gettext("%(letters)s %(failures)s; %(recent)s in the last 24 hours.") % {
        "letters": parts[0],
        "failures": parts[1],
        "recent": count_text(totals.dead_last_day),
    }
    return one_after_another([told, _not_indexed(totals)]) if totals.not_indexed_count else told


def _not_indexed(totals: Totals) -> str:
    return ngettext(
        "%(count)s more is not indexed yet.", "%(count)s more are not indexed yet.", totals.not_indexed_count
    ) % {"count": count_text(totals.not_indexed_count)}


def born_sentence(message: DeadLetter) -> str:
    """Says where a dead letter came from."""
    if not message.origin_topic:
        return gettext("sent by %(host)s") % {"host": message.born_host}
    return gettext("sent to %(topic)s by %(host)s") % {"topic": message.origin_topic, "host": message.born_host}


def died_sentence(message: DeadLetter) -> str:
    """Says how it died."""
    if message.attempt_count < 0:
        return gettext("dead in group %(group)s") % {"group": message.group_name}
    return ngettext(
        "dead in group %(group)s after %(count)d attempt",
        "dead in group %(group)s after %(count)d attempts",
        message.attempt_count,
    ) % {"group": message.group_name, "count": message.attempt_count}


def outbox_sentence(counts: OutboxCounts, now: datetime) -> str:
    """Sums up one database's outbox."""
    if not counts.waiting and not counts.given_up:
        return gettext("Everything that was written has been sent.")
    parts = []
    if counts.given_up:
        parts.append(
            ngettext("%(n)s message was given up.", "%(n)s messages were given up.", counts.given_up)
            % {"n": count_text(counts.given_up)}
        )
    if counts.waiting:
        waits = ngettext("%(n)s message waits", "%(n)s messages wait", counts.waiting)
        values = {"messages": waits % {"n": count_text(counts.waiting)}, "time": _time_since(counts.waiting_since, now)}
        parts.append(gettext("%(messages)s, the oldest for %(time)s.") % values)
    return one_after_another(parts)


def _time_since(moment: datetime | None, now: datetime) -> str:
    return duration_text(max(0, int((now - moment).total_seconds() * 1000))) if moment is not None else "0 s"


def failing_sentence(told: StatusAnswers) -> str:
    """Sums up what members say of their failures."""
    suspended = sum(bool(one.status and one.status.suspended) for one in told.members)
    failing = sum(bool(one.status and one.status.failures) for one in told.members)
    if not told.members:
        return gettext("No member is online to be asked.")
    parts = []
    if suspended:
        parts.append(
            ngettext("%(n)s member has suspended its consumption.", "%(n)s members have suspended it.", suspended)
            % {"n": count_text(suspended)}
        )
    if failing:
        parts.append(
            ngettext(
                "%(n)s member tells of messages that failed.", "%(n)s members tell of messages that failed.", failing
            )
            % {"n": count_text(failing)}
        )
    return one_after_another(parts) if parts else gettext("No member tells of a message that failed.")


def retries_sentence(waiting: Waiting, standing: Standing, now: datetime) -> str:
    """Sums up what of a group waits to be retried."""
    if not waiting.count and not standing.due_count:
        return (
            gettext("Not all brokers answered; of the others no message waits to be retried.")
            if standing.failures
            else gettext("No message waits to be retried.")
        )
    parts = []
    if waiting.count:
        words = ngettext(
            "%(n)s message waits for its next attempt", "%(n)s messages wait for their next attempt", waiting.count
        ) % {"n": count_text(waiting.count)}
        first = waiting.rows[0].due_at if waiting.rows else None
        parts.append(
            gettext("%(messages)s, the first of them %(when)s.")
            % {"messages": words, "when": age_text(first or now, now)}
        )
    if standing.due_count:
        parts.append(
            ngettext("%(n)s is due and not consumed yet.", "%(n)s are due and not consumed yet.", standing.due_count)
            % {"n": count_text(standing.due_count)}
        )
    return one_after_another(parts)


def limit_sentence(attempt_count: int | None, *, is_of_members: bool) -> str:
    """Says how many attempts a message has, and who says so."""
    if attempt_count is None:
        return (
            gettext("Its members have messages retried without end.")
            if is_of_members
            else gettext("How many attempts a message has is not known.")
        )
    values = {"n": count_text(attempt_count)}
    if is_of_members:
        return gettext("A message has %(n)s attempts, as the members say; then it is a dead letter.") % values
    return (
        gettext("A message has %(n)s attempts by the group’s setting; members that are online then may want others.")
        % values
    )


def attempt_sentence(attempt: FailedAttempt) -> str:
    """Says of an attempt that failed, why, and when the next one was to come."""
    values = {"number": attempt.attempt_count, "why": failure_in_words(attempt.failure_class, attempt.failure_text)}
    words = (
        gettext("attempt %(number)d failed: %(why)s") if values["why"] else gettext("attempt %(number)d failed")
    ) % values
    if attempt.due_at is None:
        return words
    wait_ms = milliseconds(attempt.due_at - attempt.failed_at)
    return gettext("%(failed)s; the next one came %(time)s later") % {"failed": words, "time": duration_text(wait_ms)}


def failure_in_words(exception: str, text: str) -> str:
    """Returns an exception and its text, as a log has it; "" where no member told."""
    name = exception.rpartition(".")[2]
    return f"{name}: {text}" if name and text else name
