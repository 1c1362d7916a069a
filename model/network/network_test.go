package network

import "testing"

func TestAssumed(t *testing.T) {
	for name, want := range map[string]string{
		"mixtral-8x7b-decode": "all tokens of a batch choose the same 2 experts of a layer, and the other 6 are not there",
		"alexnet":             "",
	} {
		if n, err := Open(name, Options{}); err != nil || n.Assumed != want {
			t.Errorf("%s assumes %q (%v), want %q", name, n.Assumed, err, want)
		}
	}
}
