package hardware_test

import (
	"fmt"

	"github.com/dsasched/dsasched/hardware"
)

func ExampleLoad() {
	s, err := hardware.Load("stcp920")
	if err != nil {
		fmt.Println(err)
		return
	}
	mme, _ := s.UnitOf(hardware.Matrix)
	fmt.Printf("%d clusters of %d cores, %v of L1 and %v of LLB in each\n",
		s.Clusters, s.Cores(), s.L1TotalBytes(), s.LLB.SizeBytes)
	fmt.Printf("%s: %d x %d\n", mme.Name, mme.Rows, mme.Cols)
	fmt.Printf("peak: %.1f TFLOPS\n", 2*s.PeakMACsPerSecond("f16")/1e12)
	// Output:
	// 4 clusters of 8 cores, 8MiB of L1 and 8MiB of LLB in each
	// mme: 64 x 32
	// peak: 131.1 TFLOPS
}

func ExampleParse_mistakes() {
	_, err := hardware.Parse("my.yaml", []byte(`name: my-npu
clock: 1.0GHz
clusters: 0
core_types:
  - name: core
    count: 8
    units:
      - name: mme
        kind: matrix
        rows: 64
        cols: 32
        rate: {f16: 1, fp8: 2}
        fill: 25cycles
lb:
  size: 0KiB
  bandwidth: 512GB/s
  latency: 0ns
gb: none
ddr:
  size: 16GiB
  bandwidth: 108
  latency: 150ns
core_link: {bandwidth: 64GB/s, latency: 76cycles}
ddr_link: {bandwidth: unlimited, latency: 0ns}
launch: 10us
`))
	fmt.Println(err)
	// Output:
	// my.yaml:1: sync: missing, expected a time such as 84ns, 10us or 84cycles
	// my.yaml:3: clusters: found "0", expected a whole number from 1 to 1024
	// my.yaml:12: core_types[0].units[0].rate.fp8: found an unknown dtype, expected one of f64, f32, f16, bf16, i8, u8, i16, i32, i64, bool, f8
	// my.yaml:15: lb.size: found "0KiB", expected a size above zero such as 64KiB
	// my.yaml:21: ddr.bandwidth: found "108", expected a bandwidth above zero such as 108GB/s or 64B/cycle
}

func ExampleParse() {
	data, err := hardware.PresetYAML("stcp920")
	if err != nil {
		fmt.Println(err)
		return
	}
	s, err := hardware.Parse("stcp920.yaml", data)
	if err != nil {
		fmt.Println(err)
		return
	}
	// What would twice the bandwidth do?
	s.DDR.BandwidthBytesPerSecond *= 2
	fmt.Println(s.DDR.BandwidthBytesPerSecond/1e9, "GB/s, valid:", s.Validate() == nil)
	// Output: 216 GB/s, valid: true
}
