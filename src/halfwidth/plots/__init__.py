"""Tables in, pictures out; nothing is computed here."""
