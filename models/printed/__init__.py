"""The papers' printed equations, one function each, named by its number. Nothing here is corrected without saying
so."""
