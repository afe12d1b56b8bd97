"""Clusters, their parts, and the one door to their brokers."""
