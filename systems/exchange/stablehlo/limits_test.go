package stablehlo

import (
	"fmt"
	"strings"
	"testing"
)

// Texts that are small and would become much: each is refused, and names what is too many.
func TestLimits(t *testing.T) {
	var ladder strings.Builder // each function calls the one before twice, the first has no operator
	ladder.WriteString("func.func private @f0() -> () { return }\n")
	for k := 1; k < 40; k++ {
		fmt.Fprintf(&ladder,
			"func.func private @f%d() -> () {\n func.call @f%d() : () -> ()\n func.call @f%[2]d() : () -> ()\n return\n}\n",
			k, k-1)
	}
	ladder.WriteString(
		"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n func.call @f39() : () -> ()\n return %x : tensor<4xf32>\n}\n")
	for _, c := range []struct{ name, text, want string }{
		{"calls", ladder.String(), "calls"},
		{"results", "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n " + strings.Repeat("%a:4096, ", 1000) +
			"%b = stablehlo.add %x, %x : tensor<4xf32>\n return %x : tensor<4xf32>\n}\n", "results of one operator"},
		{"types", "func.func @main(%x: " + strings.Repeat("() -> ", 100_000) + "tensor<4xf32>) -> () { return }",
			"nested deeper"},
	} {
		if _, err := read(c.text, Options{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: found error %.200v, expected one of %q", c.name, err, c.want)
		}
	}
}
