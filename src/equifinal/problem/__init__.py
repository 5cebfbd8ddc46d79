"""What is asked: experiments with their data and noise, priors, and the problem that joins them. No solver."""
