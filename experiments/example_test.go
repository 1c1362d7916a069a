package experiments_test

import (
	"fmt"

	"github.com/dsasched/dsasched/experiments"
)

func ExampleLookup() {
	e, err := experiments.Lookup("ablation")
	if err != nil {
		panic(err)
	}
	fmt.Println(e.Name + ": " + e.Description)
	// Output: ablation: what each idea of GraphTurbo is worth: ResNet-50 and BERT-128 closely, and all ten configurations
}
