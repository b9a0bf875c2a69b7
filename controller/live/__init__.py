"""What goes on right now, for those who watch: events as they happen, and samples of links and flows."""
