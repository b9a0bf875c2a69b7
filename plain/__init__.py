"""Plain data (what JSON and YAML give): read strictly into types, with what is wrong said by its place."""
