"""What wraps each call of a listener: the setting CONSUMER_MIDDLEWARE, in the shape of Django's own middleware.

    CONSUMER_MIDDLEWARE = [
        "consumer.middleware.logging_context.logging_context",
        "consumer.middleware.connections.database_connections",
        "shop.middleware.tenant",
    ]

    def tenant(consume):
        def middleware(message):
            with tenant_of(message.properties["tenant"]):
                return consume(message)
        return middleware

The first in the list is the outermost. `chain.py` has the rules.
"""
