"""Ingest: plan what to read, read it into batches, load whole runs."""
