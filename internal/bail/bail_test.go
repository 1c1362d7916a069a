package bail

import (
	"errors"
	"io"
	"testing"
)

// Caught returns the thrown error unchanged, behind the names of its parts. Other panics pass through.
func TestCaught(t *testing.T) {
	work := func(thrown error) (n int, err error) {
		defer Caught(&err)
		defer Within(func() string { return "a part" })
		n = Of(1, nil)
		n = Of(2, thrown)
		return n, nil
	}
	if n, err := work(nil); n != 2 || err != nil {
		t.Errorf("%d, %v without an error", n, err)
	}
	if n, err := work(io.EOF); n != 1 || err == nil || err.Error() != "a part: EOF" || !errors.Is(err, io.EOF) {
		t.Errorf("%d, %v", n, err)
	}
	defer func() {
		if recover() != "other" {
			t.Error("another panic is caught")
		}
	}()
	var err error
	defer Caught(&err)
	defer Within(func() string { return "a part" })
	panic("other")
}
