"""What the broker does for each request code: one verb a file, named as RocketMQ names the code."""
