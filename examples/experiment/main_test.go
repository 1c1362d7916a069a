package main

func Example() {
	main()
	// Output:
	// network,variant,ddr_tensor_writes
	// resnet18,tvm,24
	// resnet18,cross-layer,1
	// squeezenet,tvm,39
	// squeezenet,cross-layer,1
}
