"""Where codes are served and searched: one file a program that takes them, imported by name when it is needed."""
