"""Observes clusters: asks their brokers, keeps the rows of `mqadmin.clusters` true, and publishes what it applied."""
