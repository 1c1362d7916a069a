package main

func Example() {
	main()
	// Output:
	// my-npu: 4 cores, 3.28 TMAC/s
	// my-npu: 6 groups, 35 instances, 31 spills
	// my-npu-8m: 6 groups, 35 instances, 29 spills
}
