package main

func Example() {
	main()
	// Output:
	// my-npu: 4 cores, 3.28 TMAC/s
	// my-npu: 10 groups, 52 instances, 68 spills
	// my-npu-8m: 10 groups, 52 instances, 42 spills
}
