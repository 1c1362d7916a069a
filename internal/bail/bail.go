// Package bail ends work at its first error, where each step behind it would only ask whether there was one. What
// throws runs in the goroutine of who catches, and nothing but deferred calls is left to do after the error.
package bail

import "fmt"

// A failure is an error that was thrown.
type failure struct{ error }

// Check throws the error, if there is one.
func Check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Of is a value, or throws the error in its place.
func Of[T any](v T, err error) T {
	Check(err)
	return v
}

// Caught, deferred by who began the work, makes a returned error of what was thrown.
func Caught(err *error) {
	catch(recover(), func(e error) { *err = e })
}

// Within, deferred by who does a part of the work, puts the part's name in front of what was thrown.
func Within(part func() string) {
	catch(recover(), func(e error) { Check(fmt.Errorf("%s: %w", part(), e)) })
}

func catch(p any, f func(error)) {
	switch p := p.(type) {
	case nil:
	case failure:
		f(p.error)
	default:
		panic(p)
	}
}
