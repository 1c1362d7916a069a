package main

func Example() {
	main()
	// Output:
	// tables are faster: true
	// the same tensor writes: true
}
