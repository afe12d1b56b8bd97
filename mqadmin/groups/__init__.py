"""What people do to the groups of a cluster: one file per verb. What is known of groups is in `mqadmin/clusters`."""
