"""Compilers and build tools."""
