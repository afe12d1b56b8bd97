"""Which request code goes to which processor, one subject a file; `broker.engine.broker` calls them all."""
