from __future__ import annotations

from django.apps import AppConfig


class ReplaysConfig(AppConfig):
    name = "mqadmin.replays"
    label = "mq_replays"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.replays import (  # needs the models; importing the receivers connects them
            approve_replay,
            cancel_replay,
            delete_replay_file,
            pause_replay,
            receivers,  # noqa: F401
            resume_replay,
            set_replay_rate,
            start_replay,
        )

        registry.register(
            start_replay.DECLARATION,
            approve_replay.APPROVE_DECLARATION,
            approve_replay.REFUSE_DECLARATION,
            pause_replay.DECLARATION,
            resume_replay.DECLARATION,
            cancel_replay.DECLARATION,
            set_replay_rate.DECLARATION,
            delete_replay_file.DECLARATION,
        )
