"""What people do to the topics of a cluster: one file per verb. What is known of topics is in `mqadmin/clusters`."""
