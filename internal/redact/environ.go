package redact

import (
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

var (
	// secretName matches names of variables that hold a secret.
	secretName = pattern.New(`(?i)TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|API_?KEY|(?:ACCESS|PRIVATE|SIGNING|ENCRYPTION)_?KEY|_KEY$|_PAT$|_DSN$`)
	// userinfo matches the user and password in front of the host of a URL.
	userinfo = pattern.New(`://([^/\s@]+)@`)
)

// Environ returns the secrets in an environment, in the form of os.Environ: the values of
// variables that are named like one (..._TOKEN, DB_PASSWORD), and passwords in the URLs of
// all others. Paths and URLs are no secrets as a whole. The list may hold empty values, which
// New ignores.
func Environ(environ []string) []string {
	var secrets []string
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		secrets = append(secrets, URL(value)...)
		if isSecret(name, value) {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// SecretNames returns the names of the variables in an environment whose whole
// values Environ takes for secrets.
func SecretNames(environ []string) []string {
	var names []string
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); isSecret(name, value) {
			names = append(names, name)
		}
	}
	return names
}

// isSecret reports whether a variable is named like a secret and may be one.
func isSecret(name, value string) bool {
	return secretName.MatchString(name) && !isPath(value) && !strings.Contains(value, "://")
}

// URL returns the passwords and tokens in the URLs of a text. A user without a password counts
// as a token.
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

// isPath reports whether the value of a variable names a file, such as SSH_AUTH_SOCK.
func isPath(value string) bool {
	return strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "~")
}
