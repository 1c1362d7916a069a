package kernels

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/dsasched/dsasched/hardware/simt"
	"github.com/dsasched/dsasched/model"
	"github.com/dsasched/dsasched/model/network"
)

func TestZZ(t *testing.T) {
	m, _ := simt.Load("v100-simt")
	for _, n := range []string{"bert-128", "vit-b16", "conformer-s", "swin-t", "dlrm", "nasnet-large"} {
		g, err := Open(n, 1, network.Options{DType: model.F32})
		if err != nil {
			t.Fatal(err)
		}
		t0 := time.Now()
		r, err := Run(context.Background(), g, m, "exact", Options{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%s %v %+v kernels %d\n", n, time.Since(t0), *r.Exact, r.Summary.MemoryKernels)
	}
}
