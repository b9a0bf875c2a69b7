"""The papers' analyses as functions, figures and tables. Formulas that run in host agents stay in host_agent."""
