package solve

// Units of objectives and bounds.
const (
	BytesUnit   = "bytes moved"
	SecondsUnit = "s"
)

// SolverMemory keeps an integer program below what a small machine has.
const SolverMemory = 4 << 30
