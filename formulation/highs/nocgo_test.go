//go:build !cgo

package highs

import (
	"errors"
	"testing"
)

func TestUnavailable(t *testing.T) {
	s, err := New()
	if s != nil || !errors.Is(err, ErrUnavailable) {
		t.Errorf("New() = %v, %v; want an error that wraps ErrUnavailable", s, err)
	}
	if Version() != "unavailable" {
		t.Errorf("Version() = %q", Version())
	}
}
