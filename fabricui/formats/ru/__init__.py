"""Russian: numbers as in English, because tables, files and tools beside them write a point."""
