package main

func Example() {
	main()
	// Output:
	// cross-layer: order bfs, 15 instances, 9 spills
	// frugal: order frugal, 15 instances, 8 spills
	// credit 1: order frugal
	// credit 0: order frugal
	// best: order frugal, credit 0
}
