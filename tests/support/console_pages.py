"""Addresses of the console's pages, for tests that look at every one; "local" is what `console_story.shop` makes."""

from __future__ import annotations

# What they show is in the database.
PAGES = (
    "/",
    "/add-cluster/",
    "/audit/",
    "/jobs/",
    "/jobs/make/",
    "/people/",
    "/people/add/",
    "/people/admin/",
    "/people/admin/role/",
    "/read-only/local/?read_only=yes",
    "/tokens/",
    "/tokens/create/",
    "/workers/",
    "/clusters/local/",
    "/clusters/local/groups/",
    "/clusters/local/groups/?q=nothing",
    "/clusters/local/groups/billing/",
    "/clusters/local/groups/billing/members/",
    "/clusters/local/groups/billing/subscriptions/",
    "/clusters/local/groups/billing/rebalances/",
    "/clusters/local/groups/billing/deadletters/",
    "/clusters/local/deadletters/",
    "/clusters/local/deadletters/?q=PaymentTimeout",
    "/clusters/local/deadletters/failures/1/",
    "/clusters/local/deadletters/1/",
    "/clusters/local/rebalances/",
    "/clusters/local/topics/",
    "/clusters/local/topics/orders/",
)
NO_PAGE = "/nothing-there/"
# Pages of a cluster that ask its brokers while they open: what follows /clusters/<name>/.
ASKING = (
    "brokers/broker-a/",
    "brokers/broker-a/settings/",
    "brokers/broker-a/configuration/?settings=fileReservedTime%3D48",
    "topics/orders/producers/",
    "topics/orders/change/",
    "topics/orders/delete/",
    "groups/billing/settings/",
    "groups/billing/change/",
    "groups/billing/delete/",
    "create-group/",
    "create-topic/",
    "create-topic/?topic=x&read_queues=0&write_queues=1&perm=6",
    "configuration/",
    "change-groups/?chosen=billing",
    "change-topics/",
    "change-topics/?action=set_topic_permission&asked=1&perm=4&subject=orders&subject=TBW102",
)
