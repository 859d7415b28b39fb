package requests

import "testing"

// TestNothingBeginsAfterTheEnd: the library hands over requests after a service was stopped, and
// whoever waited for the answers would not wait for theirs.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	var u underWay
	answer, answered := make(chan struct{}), make(chan struct{})
	if !u.begin(func() { <-answer; close(answered) }) {
		t.Fatal("nothing begins")
	}
	ended := make(chan struct{})
	go func() { defer close(ended); u.end() }()
	begins := true
	for begins { // until end is reached
		begins = u.begin(func() {})
	}
	select {
	case <-ended:
		t.Error("the end does not wait for what has begun")
	default:
	}
	close(answer)
	<-ended
	<-answered
}
