package highs

import "testing"

// TestErrUnavailableText pins the one sentence that a user without HiGHS sees.
func TestErrUnavailableText(t *testing.T) {
	const want = "HiGHS is not in this build: rebuild with cgo enabled (CGO_ENABLED=1) after ./scripts/setup.sh"
	if got := ErrUnavailable.Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
