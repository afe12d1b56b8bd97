from __future__ import annotations

from django.apps import AppConfig


class TopicsConfig(AppConfig):
    name = "mqadmin.topics"
    label = "mq_topics"

    def ready(self) -> None:
        from mqadmin.actions import registry  # needs the models
        from mqadmin.topics import create_topic, delete_topic, set_topic_permission  # needs the models

        registry.register(create_topic.DECLARATION, delete_topic.DECLARATION, set_topic_permission.DECLARATION)
