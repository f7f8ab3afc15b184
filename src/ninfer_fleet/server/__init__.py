"""The server of a box: what it is started from, how it is judged, stopped and started."""
