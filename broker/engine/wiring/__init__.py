"""Which request code goes to which processor, one subject a file; `broker.engine.pipeline` calls them.

`scheduling.py` makes and starts what falls due, too: it is a part of `broker.engine.broker`.
"""
