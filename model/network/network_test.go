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

// The description of an accelerator in the place of a network is told from a damaged network.
func TestMachineForNetwork(t *testing.T) {
	_, err := Raw("./edge.yaml", 1, Options{})
	if want := "found ./edge.yaml, which describes an accelerator (--hardware), expected a network"; err == nil ||
		err.Error() != want {
		t.Errorf("found %v, expected %q", err, want)
	}
}
