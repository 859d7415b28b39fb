package kit

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// Complete fills in from the environment what the flags leave open: FORGE_SERVER or
// FORGE_CONTEXT, and with either of them FORGE_PROJECT, FORGE_PERSON, FORGE_TRACE_URL and the
// variables of credentials and certificates.
// Outside of a repository the context counts that `nats context select` has remembered, of
// which it returns the name.
func (w *Where) Complete(getenv func(string) string) (remembered string) {
	if !w.Remote() {
		w.Server = getenv("FORGE_SERVER")
	}
	if !w.Remote() {
		w.Context = getenv("FORGE_CONTEXT")
	}
	if !w.Remote() && !inRepository(w.Dir) {
		remembered = selectedContext(getenv)
		w.Context = remembered
	}
	if !w.Remote() {
		return ""
	}
	if w.Project == "" {
		w.Project = getenv("FORGE_PROJECT")
	}
	if w.TLSCA == "" {
		w.TLSCA = getenv("FORGE_TLS_CA")
	}
	if w.TraceURL == "" {
		w.TraceURL = getenv("FORGE_TRACE_URL")
	}
	if w.ByHTTP() { // what else there is in the environment is for NATS
		if w.TokenFile == "" && getenv("PFL_FORGE_TOKEN") == "" {
			w.TokenFile = getenv("FORGE_TOKEN_FILE")
		}
		return remembered
	}
	if w.TokenFile == "" && w.Creds == "" && w.NKey == "" {
		w.TokenFile, w.Creds, w.NKey = getenv("FORGE_TOKEN_FILE"), getenv("FORGE_CREDS"), getenv("FORGE_NKEY")
	}
	if w.TLSCert == "" && w.TLSKey == "" {
		w.TLSCert, w.TLSKey = getenv("FORGE_TLS_CERT"), getenv("FORGE_TLS_KEY")
	}
	if w.Person == "" {
		w.Person = getenv("FORGE_PERSON")
	}
	return remembered
}

// NATSConfig returns the folder in which the nats command line keeps its
// contexts; empty if the environment names no home directory: a folder that the
// command happens to run in, such as a repository, names no servers.
func NATSConfig(getenv func(string) string) string {
	home := getenv("XDG_CONFIG_HOME")
	if home == "" {
		home = filepath.Join(getenv("HOME"), ".config")
	}
	if !filepath.IsAbs(home) {
		return ""
	}
	return filepath.Join(home, "nats")
}

// selectedContext returns the name of the context that is selected, empty if none is.
func selectedContext(getenv func(string) string) string {
	folder := NATSConfig(getenv)
	if folder == "" {
		return ""
	}
	name, err := os.ReadFile(filepath.Join(folder, "context.txt"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(name))
}

// inRepository reports whether a folder looks like one of a repository. What a repository is
// git decides later.
func inRepository(dir string) bool {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return true
	}
	for {
		for _, name := range []string{".git", "HEAD"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				return true
			}
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// suggested matches a command in a text, up to its first word.
var suggested = pattern.New(`\bpfl-forge (init|create|goal|audit|run|reflect|operator|status|watch|inbox|clarifications|answer|show|logs|` +
	`costs|history|approve|reject|retry|pause|resume|cancel|clean|doctor|trust)\b`)

// Pasted returns a text in which every command of this program has the flags that say which
// project it is about, as far as they were typed, so that it can be pasted.
func (w *Where) Pasted(text string) string {
	if w.typed == "" {
		return text
	}
	return suggested.ReplaceAllString(text, "pfl-forge"+strings.ReplaceAll(w.typed, "$", "$$")+" $1")
}

// Remember notes which flags were typed, for Pasted. It is called before Complete.
func (w *Where) Remember() {
	w.typed = ""
	for _, f := range []struct{ name, value, initial string }{
		{"-C", w.Dir, "."},
		{"--server", withoutUser(w.Server), ""},
		{"--context", w.Context, ""},
		{"--token-file", w.TokenFile, ""},
		{"--creds", w.Creds, ""},
		{"--nkey", w.NKey, ""},
		{"--tls-ca", w.TLSCA, ""},
		{"--tls-cert", w.TLSCert, ""},
		{"--tls-key", w.TLSKey, ""},
		{"--person", w.Person, ""},
		{"--project", w.Project, ""},
	} {
		if f.value != f.initial {
			w.typed += " " + f.name + " " + Quote(f.value)
		}
	}
}

// withoutUser returns the address of a server without the name and the password
// that may stand before its host, however it is written: lines that people are
// to paste end in chats and in the logs of other programs.
func withoutUser(server string) string {
	scheme, rest, found := strings.Cut(server, "://")
	if !found {
		scheme, rest = "", server
	}
	host, path := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		host, path = rest[:i], rest[i:]
	}
	host = host[strings.LastIndexByte(host, '@')+1:]
	if found {
		scheme += "://"
	}
	return scheme + host + path
}
