"""Where rows come from: files, standard input and tables, read in blocks."""
