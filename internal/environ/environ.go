// Package environ keeps the secrets of the process's environment, such as the
// keys of models, where nothing reads them by accident: Hide takes them out of
// the environment when the process begins, and from then on only who asks here
// has them. A child gets none of them unless it is handed them by name.
package environ

import (
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/pfl-forge/pfl-forge/internal/redact"
)

// hidden has the secrets that were taken out of the environment, by name.
var hidden sync.Map

// Hide takes the variables that are named like secrets (see redact.SecretNames), and settings
// of ours with a password in a URL, out of the environment. On Linux it also erases them in
// the block of memory that /proc/<pid>/environ shows, as far as the kernel lets it. A main
// calls it first, before process.Protect, which takes the right to do that. It is called once.
func Hide() {
	// What is no secret by its name stays: most variables are read by
	// libraries, in the environment alone.
	names := redact.SecretNames(os.Environ())
	for _, entry := range os.Environ() {
		// Those of others stay, such as HTTPS_PROXY: libraries read them there.
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "FORGE_") && len(redact.URL(value)) > 0 && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, name := range names {
		value := os.Getenv(name)
		hidden.Store(name, strings.Clone(value)) // the value itself lies in what is erased
		_ = os.Unsetenv(name)                    // fails for names that Getenv knows none of
	}
	if len(names) > 0 {
		erase(names)
	}
}

// Lookup is os.LookupEnv with the hidden variables.
func Lookup(name string) (string, bool) {
	// One that was set since goes first, as it would have replaced the other.
	if value, ok := os.LookupEnv(name); ok {
		return value, true
	}
	if value, ok := hidden.Load(name); ok {
		return value.(string), true
	}
	return "", false
}

// Get is os.Getenv with the hidden variables.
func Get(name string) string {
	value, _ := Lookup(name)
	return value
}

// All is os.Environ with the hidden variables.
func All() []string {
	all := os.Environ()
	hidden.Range(func(name, value any) bool {
		if _, ok := os.LookupEnv(name.(string)); !ok {
			all = append(all, name.(string)+"="+value.(string))
		}
		return true
	})
	slices.Sort(all)
	return all
}
