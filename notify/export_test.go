package notify

import (
	"crypto/hmac"
	"strconv"
	"strings"
	"time"
)

// Verify is what a receiver does.
func Verify(secret, signature string, body []byte) bool {
	at, _, ok := strings.Cut(strings.TrimPrefix(signature, "t="), ",")
	unix, err := strconv.ParseInt(at, 10, 64)
	return ok && err == nil && time.Since(time.Unix(unix, 0)) < time.Minute &&
		hmac.Equal([]byte(signature), []byte(sign(secret, time.Unix(unix, 0), body)))
}
