"""What people do to the list of clusters that this installation follows: one file per verb."""
