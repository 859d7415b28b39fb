package notify

import (
	"errors"
	"net/http"
	"testing"
	"time"
)

// TestRetryAfterIsBounded: a webhook has us wait as long as it says, and five
// minutes at most, also where it says more than a time can hold.
func TestRetryAfterIsBounded(t *testing.T) {
	for said, want := range map[string]time.Duration{
		"7": 7 * time.Second, "301": maxRetryAfter, "9300000000": maxRetryAfter, "9223372036854775807": maxRetryAfter, "0": 0, "-5": 0, "soon": 0, "": 0,
	} {
		err := checkStatus(&http.Response{StatusCode: http.StatusTooManyRequests, Status: "429", Header: http.Header{"Retry-After": {said}}})
		later, ok := errors.AsType[*retryAfterError](err)
		switch {
		case err == nil:
			t.Errorf("%q: it counts as delivered", said)
		case ok != (want > 0), ok && later.after != want:
			t.Errorf("%q: wait %+v, want %s", said, later, want)
		}
	}
}
