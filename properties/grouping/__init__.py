"""Room ``grouping``: balanced routing of skewed streams to unequal workers."""
