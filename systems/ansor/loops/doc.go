// Package loops asks what a search of the loops inside kernels is worth, as Ansor's (OSDI
// 2020): on single operators, against its parts switched off, against the best there is,
// and how well its learned cost ranks and its scheduler divides trials. Published numbers
// are of CPUs and GPUs, whose caches forgive less than managed memories hide: orders and
// ratios can be compared, times can't. Some are read off figures, as the remarks say.
package loops
