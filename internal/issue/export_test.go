package issue

// GapAtMost is the share of the in-order time that reordering can save at most.
func (c *Comparison) GapAtMost() float64 {
	if c.InOrderPs == 0 {
		return 0
	}
	return float64(c.InOrderPs-c.BoundPs) / float64(c.InOrderPs)
}
