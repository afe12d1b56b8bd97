"""What people do to the brokers of a cluster: one file per verb. What is known of brokers is in `mqadmin/clusters`."""
