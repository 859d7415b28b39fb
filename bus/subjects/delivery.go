package subjects

import (
	"fmt"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
)

// EveryDelivery matches the deliveries of all hooks. They belong to no project:
// which one they are about is not known before the forge was asked.
const EveryDelivery = "forge.hook.*.*"

// Delivery is where what came through a hook is stored; digest stands for the sender's id of it.
func Delivery(hook, digest string) (string, error) {
	if _, err := forge.ParseProjectID(hook); err != nil {
		return "", fmt.Errorf("name of a hook %.70q: use a-z, 0-9 and hyphens", hook)
	}
	if !isDigest(digest) {
		return "", fmt.Errorf("%.70q is no digest of a delivery", digest)
	}
	return "forge.hook." + hook + "." + digest, nil
}

// ParseDelivery returns the hook in a subject of Delivery.
func ParseDelivery(s string) (hook string, err error) {
	t := strings.Split(s, ".")
	if len(t) == 4 {
		if again, err := Delivery(t[2], t[3]); err == nil && again == s {
			return t[2], nil
		}
	}
	return "", fmt.Errorf("subject %.100q is not %s", s, EveryDelivery)
}

// isDigest reports whether s is 32 hexadecimal digits.
func isDigest(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}
