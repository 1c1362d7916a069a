package highs

import "errors"

// ErrUnavailable is wrapped by the error of [New] in a build without cgo.
var ErrUnavailable = errors.New(
	"HiGHS is not in this build: rebuild with cgo enabled (CGO_ENABLED=1) after ./scripts/setup.sh")
