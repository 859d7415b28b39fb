// Package person has people act at a forge in tests, a fake one or a real one, by an
// API of it: most tests speak Gitea's, which the fake has for people in each dialect.
package person

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/pfl-forge/pfl-forge/internal/wait"
)

// Gitea is where Gitea's API begins, below the address of a forge.
const Gitea = "/api/v1"

// Person is an account at a forge.
type Person struct {
	// API is where the API begins, such as that of a fake and Gitea.
	API string
	// Token is the account's; at the fake its login.
	Token string
}

// Does calls the API. in is the body in JSON, and out is filled from that of the
// answer, if there is one; both may be nil. It ends the test if the forge refuses.
func (p Person) Does(t testing.TB, method, path string, in, out any) {
	t.Helper()
	status, text := p.Tries(t, method, path, in)
	if status >= http.StatusMultipleChoices {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	if out != nil && len(text) > 0 {
		if err := json.Unmarshal(text, out); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
}

// Tries is Does for a call that the forge may refuse. It returns the status and
// the body of the answer.
func (p Person) Tries(t testing.TB, method, path string, in any) (status int, answer []byte) {
	t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(wait.Context(t), method, p.API+path, bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "token "+p.Token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "person") // without one, GitHub refuses
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return resp.StatusCode, answer
}
