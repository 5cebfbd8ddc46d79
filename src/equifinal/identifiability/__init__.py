"""What ideal data could determine: the analysis, its verdicts, freedoms and advice, all as data."""
