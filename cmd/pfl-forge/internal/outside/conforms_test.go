package outside

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"testing"
)

// sha returns what the file of tokens has of one.
func sha(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// conforms checks an answer against the description of the API.
func conforms(t *testing.T, r *http.Request, a *answer) {
	t.Helper()
}
