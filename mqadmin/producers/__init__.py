"""Who sends: producers that brokers have a connection of, and since when the console has been seeing each."""
