"""Laws of points on fibres, and the unbiased estimate of the density of the combinations that they give."""
