"""Classroom labs (docs/labs): what `capstan lab-check` asks of a student's file. One module a lab."""
