"""The attack catalogue, row by row: what is sent, its benign twin, the exact answer and record."""
