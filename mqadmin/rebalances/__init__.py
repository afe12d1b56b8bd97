"""Who joined, left and got which queues."""
