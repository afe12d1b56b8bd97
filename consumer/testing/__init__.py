"""The test kit: a broker in memory that runs declared listeners at once, in time that only tests let pass.

def test_a_paid_order_is_billed(mq):          # the fixture comes with the package
    mq.send("orders", {"cents": 1200}, tags="paid")
    assert Invoice.objects.get().cents == 1200

def test_what_cannot_be_billed_is_a_dead_letter(mq):
    mq.send("orders", {"cents": "many"}, tags="paid")
    assert [type(one.error) for one in mq.failures] == [ValueError]
    mq.run_until_quiet()                      # 16 retries, five hours, no waiting
    assert [one.json() for one in mq.dead_letters("billing")] == [{"cents": "many"}]
"""

from consumer.testing.memory_broker import Attempt, MemoryBroker

__all__ = ["Attempt", "MemoryBroker"]
