"""The broker without Django: store, topics, groups, members, offsets, schedule, request handling."""
