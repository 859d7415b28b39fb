// Package wire is between a forge for tests and those who talk with it: answers that are faulty or
// lost, and hooks that are lost, doubled or late.
//
// Package forgetest passes every request and hook through it. A Script of faults is used up in
// order, one for each request that it matches, so a test says exactly which answer is lost.
package wire

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Fault is an answer that the forge gives in place of its own.
type Fault struct {
	// Method, Part and By say of which requests: those with that method, or any, whose path holds
	// the part, by that user, or any.
	Method, Part, By string
	// Status, Header and Message are the answer's; a Status of 0 hangs up.
	Status  int
	Header  http.Header
	Message string
	// After has the request carried out all the same, so that only the answer is lost.
	After bool
}

// Script has faults, each for one request.
type Script []Fault

// Take takes the first fault that is about a request of a user; nil if none is.
func (s *Script) Take(r *http.Request, user string) *Fault {
	for i, t := range *s {
		if (t.Method == "" || t.Method == r.Method) && strings.Contains(r.URL.Path, t.Part) && (t.By == "" || user == t.By) {
			*s = slices.Delete(*s, i, i+1)
			return &t
		}
	}
	return nil
}

// Answer gives the faulty answer, or hangs up.
func (t *Fault) Answer(w http.ResponseWriter) {
	if t.Status == 0 {
		panic(http.ErrAbortHandler)
	}
	maps.Copy(w.Header(), t.Header)
	w.WriteHeader(t.Status)
	text, err := json.Marshal(cmp.Or(t.Message, "a fault"))
	if err != nil {
		panic(err) // every text can be spelled
	}
	fmt.Fprintf(w, `{"message": %s}`, text)
}

// Mode says how the forge sends hooks.
type Mode int

// The ways of sending hooks.
const (
	// Good sends each at once.
	Good Mode = iota
	// Lost sends none.
	Lost
	// Doubled sends each twice, with one id.
	Doubled
	// Late holds them back until Held is called, which has the last one first.
	Late
)

// Hooks are hooks on their way. Its methods but Wait are not for concurrent use.
type Hooks struct {
	// Mode is for those that are sent from now on.
	Mode Mode

	held []func()
	wg   sync.WaitGroup
}

// Send sends one.
func (h *Hooks) Send(send func()) {
	switch h.Mode {
	case Good:
		h.wg.Go(send)
	case Doubled:
		h.wg.Go(send)
		h.wg.Go(send)
	case Late:
		h.held = append(h.held, send)
	case Lost:
	}
}

// Held returns the hooks that were held back, the last one first, and holds them no more.
func (h *Hooks) Held() []func() {
	held := h.held
	h.held = nil
	slices.Reverse(held)
	return held
}

// Wait returns when all that was sent is answered.
func (h *Hooks) Wait() { h.wg.Wait() }

// Exchange is a request with its answer, as contracts with published
// descriptions compare them. Path is below the beginning of the API, and In and
// Out are bodies of JSON, empty where there is none.
type Exchange struct {
	Method, Path, Query string
	In                  []byte
	Status              int
	Out                 []byte
}

// The dialects of hooks; an empty one is Gitea's.
const (
	GitHub = "github"
	GitLab = "gitlab"
)

// Hook is an address that is told of all that happens, in a dialect. Secret is
// the key of a signature, or, for GitLab, the token that is sent itself.
type Hook struct{ URL, Secret, Dialect string }

// Post sends one delivery, with an id that stays the same where it is sent
// again. Gitea does not look at the answer either.
func (h Hook) Post(event, id string, body []byte) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, []byte(h.Secret))
	mac.Write(body)
	signature := "sha256=" + hex.EncodeToString(mac.Sum(nil))
	for header, value := range map[string]map[string]string{
		"":     {"X-Gitea-Delivery": id, "X-Gitea-Event-Type": event, "X-Hub-Signature-256": signature},
		GitHub: {"X-Gitea-Delivery": id, "X-GitHub-Delivery": id, "X-GitHub-Event": event, "X-Hub-Signature-256": signature},
		GitLab: {"Idempotency-Key": id, "X-Gitlab-Event": event, "X-Gitlab-Token": h.Secret},
	}[h.Dialect] {
		r.Header.Set(header, value)
	}
	r.Header.Set("Content-Type", "application/json")
	if resp, err := http.DefaultClient.Do(r); err == nil {
		resp.Body.Close()
	}
}
