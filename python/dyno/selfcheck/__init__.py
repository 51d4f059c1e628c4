"""The instrument looks at itself: on this machine through the real lab, and its statistics by simulation."""
