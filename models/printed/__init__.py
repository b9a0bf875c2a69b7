"""The papers' printed equations, one function each, with its number. Nothing here is corrected without saying
so."""
