"""Analyses: a cohort in SQL, a classification or fit in NumPy, a `Result` with tables, headline numbers and charts."""
