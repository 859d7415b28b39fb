package outside

import (
	"crypto/sha256"
	"encoding/hex"
)

// sha returns what the file of tokens has of one.
func sha(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
