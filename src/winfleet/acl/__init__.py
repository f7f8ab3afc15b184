"""Access control lists of files and folders."""
