"""The posterior density of the combinations, with noise parameters integrated out."""
