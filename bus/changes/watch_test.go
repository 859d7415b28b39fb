package changes

import "testing"

// TestEar: a watch looks again for what it has heard and not found, and is not
// waiting for what it found before it heard of it, or without.
func TestEar(t *testing.T) {
	e := ear{wake: make(chan struct{}, 1)}
	is := func(about string, want bool) {
		t.Helper()
		if e.waits() != want {
			t.Errorf("%s: %t", about, e.waits())
		}
	}
	is("at the start", false)
	e.found()
	e.found()
	is("found what others published before", false)
	e.add()
	e.add()
	is("heard", true)
	e.found()
	is("one of two is found", true)
	e.found()
	is("both are", false)
	e.add()
	e.forget()
	is("not waited for any more", false)
	if len(e.wake) != 1 {
		t.Error("nothing wakes the watch")
	}
}
