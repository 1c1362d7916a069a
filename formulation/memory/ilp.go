package memory

// ILPSwitches turn off single strengthenings of the formulation.
type ILPSwitches struct{}
