"""The tables and figures of the paper's case studies, and the folder they are written to."""
