"""From raw columns to numbers: formulas, levels, labels, and which rows cannot be used."""
