"""Every sentence and table that a person reads, made from data."""
