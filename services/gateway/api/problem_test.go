package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
)

// TestIsFinal: what a limit is in the way of, or something that is down, may be
// asked for again; any other refusal stays one.
func TestIsFinal(t *testing.T) {
	for status, want := range map[int]bool{
		http.StatusBadRequest: true, http.StatusUnauthorized: true, http.StatusForbidden: true, http.StatusNotFound: true, http.StatusConflict: true,
		http.StatusTooManyRequests: false, http.StatusInternalServerError: false, http.StatusServiceUnavailable: false,
	} {
		if problem(status, "words").IsFinal() != want {
			t.Errorf("%d: %t", status, !want)
		}
	}
}

// TestBarred: an answer that is refused for whose it is, and no other failure,
// is of the one alone who asks.
func TestBarred(t *testing.T) {
	for status, want := range map[int]bool{
		http.StatusUnauthorized: true, http.StatusForbidden: true,
		http.StatusNotFound: false, http.StatusTooManyRequests: false, http.StatusServiceUnavailable: false, http.StatusGatewayTimeout: false,
	} {
		err := fmt.Errorf("asked: %w", problem(status, "words"))
		if Barred(err) != want {
			t.Errorf("%d: %t", status, !want)
		}
		if first := FirstBarred([]error{nil, context.DeadlineExceeded, err}); errors.Is(first, err) != want {
			t.Errorf("the first is %v", first)
		}
	}
	if Barred(nil) || Barred(context.DeadlineExceeded) {
		t.Error("an error without a status is of the one who asks")
	}
}
