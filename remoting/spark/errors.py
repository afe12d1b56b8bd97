"""What a job is told that cannot read on; Spark shows the text as the reason why the query failed."""

from __future__ import annotations

from remoting.spark.spans import Span


class OptionError(ValueError):
    """An option is missing, unknown or no such value."""


class MessagesLost(Exception):
    """Messages that were to be read are not there any more."""

    def __init__(self, topic: str, lost: Span) -> None:
        super().__init__(
            f"topic {topic!r}: of queue {lost.queue} the messages from {lost.start} to {lost.end - 1} are gone: deleted"
            " by the broker's retention, or with the topic. Set the option failOnDataLoss to false to go on with what"
            " is there."
        )
        self.lost = lost
