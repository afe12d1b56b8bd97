"""Which request code goes to which processor, one subject a file; `broker.engine.pipeline` calls them."""
