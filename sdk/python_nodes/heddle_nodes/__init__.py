"""The Python end of a worker: runs the nodes of one pack for an engine in another process."""
