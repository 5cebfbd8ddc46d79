"""What a run leaves behind: the stored draws, their diagnostics, their meaning, their efficiency. All of it data."""
