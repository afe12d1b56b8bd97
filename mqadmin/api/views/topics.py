"""`…/topics`: topics with their queues, and the groups that read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from mqadmin.api.listing import (
    FILTER_CHARS_MAX,
    ListQuery,
    ListResource,
    described,
    filter_field,
    owner_filter,
    sort_field,
)
from mqadmin.api.resource import Resource
from mqadmin.api.rows import Rows
from mqadmin.api.serializers.producers import ProducersSerializer
from mqadmin.api.serializers.topics import (
    TopicDetailSerializer,
    TopicQueueSerializer,
    TopicReaderSerializer,
    TopicSerializer,
)
from mqadmin.clusters import selectors
from mqadmin.clusters.models import Topic, TopicKind
from mqadmin.clusters.selectors.sorted_rows import SortedRows
from mqadmin.ownership.models import Described
from mqadmin.ownership.rows import attach_owners, with_owners
from mqadmin.producers.asking import producers_of

ALL_KINDS = "all"


class TopicsQuery(ListQuery):
    q = filter_field("name")
    kind = serializers.ChoiceField(choices=[*TopicKind.values, ALL_KINDS], default=TopicKind.NORMAL)
    owner = owner_filter()
    sort = sort_field(selectors.TOPIC_SORTS, "name")


@described("list_topics", "List topics")
class Topics(ListResource):
    """Topics of a cluster: normal ones, unless another kind is asked for."""

    row = TopicSerializer
    query = TopicsQuery

    def rows(self, query: Mapping[str, Any], **names: str) -> Rows[Topic]:
        return topic_rows(names["cluster"], query)


def topic_rows(cluster: str, query: Mapping[str, Any]) -> SortedRows[Topic]:
    """Returns the topics that the query string of the list asks for. Raises Cluster.DoesNotExist."""
    head = selectors.cluster_head(cluster)
    found = selectors.topic_rows(
        head,
        filter=query["q"].strip(),
        kind="" if query["kind"] == ALL_KINDS else query["kind"],
        sort=query["sort"].removeprefix("-"),
        is_descending=query["sort"].startswith("-"),
    )
    return with_owners(found, head, Described.TOPIC, query["owner"])


class TopicDetail(Resource):
    """A topic with its queues, and the first 100 groups that read it, the most urgent first."""

    @extend_schema(operation_id="get_topic", summary="Get a topic", responses=TopicDetailSerializer)
    def get(self, request: Request, cluster: str, topic: str) -> Response:
        return self.when_changed(request, {"cluster": cluster}, lambda: self._document(cluster, topic))

    def _document(self, cluster: str, topic: str) -> Response:
        page = selectors.topic_page(cluster, topic)
        attach_owners([page.topic], page.cluster, Described.TOPIC)
        shown = {
            "queues": TopicQueueSerializer(page.queues, many=True).data,
            "readers": TopicReaderSerializer(page.readers, many=True).data,
        }
        return Response(TopicSerializer(page.topic).data | shown)


class ProducersQuery(serializers.Serializer[Any]):
    """Which producers."""

    group = serializers.CharField(
        max_length=FILTER_CHARS_MAX,
        default="",
        allow_blank=True,
        help_text="Those of this producer group alone; older brokers answer for one group by its name only.",
    )


class TopicProducers(Resource):
    """Producers that are connected now to the brokers that have the topic: they are asked while the caller waits.

    Brokers do not know to which topics a producer sends.
    """

    @extend_schema(
        operation_id="list_topic_producers",
        summary="List who can send to a topic",
        parameters=[ProducersQuery],
        responses=ProducersSerializer,
    )
    def get(self, request: Request, cluster: str, topic: str) -> Response:
        query = ProducersQuery(data=request.query_params)
        query.is_valid(raise_exception=True)
        head, found = selectors.cluster_head(cluster), selectors.topic_head(cluster, topic)
        answer = producers_of(head, found, query.validated_data["group"].strip(), timezone.now())
        failures = [{"broker": broker, "reason": reason} for broker, reason in sorted(answer.failures.items())]
        document = {
            "items": answer.producers,
            "total_count": answer.total_count,
            "broker_count": answer.broker_count,
            "failures": failures,
        }
        return Response(ProducersSerializer(document).data)
