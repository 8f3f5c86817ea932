"""What others can check of releases: who signed them, what all of one data set come to, records, and hubs."""
