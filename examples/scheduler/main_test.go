package main

func Example() {
	main()
	// Output:
	// cross-layer: order bfs, 15 instances, 9 spills
	// frugal: order frugal, 15 instances, 8 spills
	// best: credit 1
}
