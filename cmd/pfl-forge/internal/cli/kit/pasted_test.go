package kit

import "testing"

// TestPastedHasNoPassword: a command that is told to be pasted does not repeat
// what stands before the host in an address, which may be a password.
func TestPastedHasNoPassword(t *testing.T) {
	for server, want := range map[string]string{
		"https://ada:hunter2@forge.example.com/x": "pfl-forge --server https://forge.example.com/x show a",
		"nats://t0ken@host:4222":                  "pfl-forge --server nats://host:4222 show a",
		"https://ada:hunter2@no host":             "pfl-forge --server 'https://no host' show a",
		"ada:hun@ter2@host:4222":                  "pfl-forge --server host:4222 show a",
		"https://forge.example.com/@ada":          "pfl-forge --server https://forge.example.com/@ada show a",
		"https://forge.example.com":               "pfl-forge --server https://forge.example.com show a",
	} {
		w := Where{Server: server, Dir: "."}
		w.Remember()
		if got := w.Pasted("pfl-forge show a"); got != want {
			t.Errorf("%s: %s, want %s", server, got, want)
		}
	}
}
