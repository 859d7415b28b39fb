package redact

import (
	"regexp"
	"strings"
)

var (
	// secretName matches names of variables that hold a secret.
	secretName = regexp.MustCompile(`(?i)TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|API_?KEY|(?:ACCESS|PRIVATE|SIGNING|ENCRYPTION)_?KEY|_KEY$|_PAT$|_DSN$`)
	// userinfo matches what comes before the host of a URL.
	userinfo = regexp.MustCompile(`://([^/\s@]+)@`)
)

// Environ returns what is secret in an environment: the values of variables that
// are named like it, and passwords in URLs. Paths are not.
func Environ(environ []string) []string {
	var secrets []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		secrets = append(secrets, URL(value)...)
		if secretName.MatchString(name) && !isPath(value) && !strings.Contains(value, "://") {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// URL returns the passwords and tokens in a text that may hold URLs.
func URL(text string) []string {
	var secrets []string
	for _, m := range userinfo.FindAllStringSubmatch(text, -1) {
		user, password, ok := strings.Cut(m[1], ":")
		if !ok {
			password = user // a lone user part is a token
		}
		secrets = append(secrets, password)
	}
	return secrets
}

func isPath(value string) bool {
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "~")
}
