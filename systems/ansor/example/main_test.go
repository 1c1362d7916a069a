package main

func Example() {
	main()
	// Output: faster than by rules: true
}
