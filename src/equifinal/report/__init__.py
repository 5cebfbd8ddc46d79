"""One self-contained page on a run, and one on several samplers side by side."""
