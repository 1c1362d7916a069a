package suggest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dsasched/dsasched/internal/suggest"
)

func TestNearest(t *testing.T) {
	known := []string{"resnet50", "resnet18", "bert-128", "bert-384", "stcp920", "stcp920-paper", "tvm"}
	for _, c := range []struct {
		name string
		want []string
	}{
		{"resent50", []string{"resnet50"}},
		{"ResNet-50", []string{"resnet50"}},
		{"resnet", []string{"resnet50", "resnet18"}},
		{"stcp92", []string{"stcp920", "stcp920-paper"}},
		{"bert128", []string{"bert-128"}},
		{"tmv", nil}, // two of three letters
		{"tvn", []string{"tvm"}},
		{"yolo", nil},
		{strings.Repeat("resnet50", 1<<20), nil},
		{"", nil},
		{"tvm", []string{"tvm"}},
	} {
		if got := suggest.Nearest(c.name, known); !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, want %q", c.name, got, c.want)
		}
	}
	if got := suggest.Nearest("a", []string{"ab", "ab"}); len(got) != 1 {
		t.Errorf("a name that is there twice is named %d times", len(got))
	}
}

func ExampleHint() {
	fmt.Printf("unknown variant %q%s\n", "cros-layer",
		suggest.Hint("cros-layer", []string{"tvm", "ordering", "cross-layer"}))
	fmt.Printf("unknown variant %q%s\n", "mofang", suggest.Hint("mofang", []string{"tvm", "ordering", "cross-layer"}))
	fmt.Printf("unknown variant %q%s\n", "mofang", suggest.Expected("mofang", []string{"tvm", "ordering", "cross-layer"}))
	fmt.Printf("unknown letter %q%s\n", "?", suggest.Expected("?", strings.Split("abcdefghij", "")))
	// Output:
	// unknown variant "cros-layer" (did you mean cross-layer?)
	// unknown variant "mofang"
	// unknown variant "mofang", expected one of tvm, ordering, cross-layer
	// unknown letter "?", expected one of a, b, c, d, e, f, g, h and 2 more
}
