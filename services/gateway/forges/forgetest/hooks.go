package forgetest

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
)

// hook is an address that is told what happens in a repository.
type hook struct {
	url, secret string
	// hub says that it was made in GitHub's dialect, and is told in it.
	hub bool
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
	// Late holds them back until Release, which sends the last one first.
	Late
)

// commented is the event of a comment on an issue or a pull request.
const commented = "issue_comment"

// sends are hooks on their way.
type sends struct {
	mode Mode
	held []func()
	wg   sync.WaitGroup
}

// wait returns when all that was sent is answered.
func (s *sends) wait() { s.wg.Wait() }

// Send changes how hooks are sent.
func (f *Fake) Send(m Mode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hooks.mode = m
}

// Release sends the hooks that were held back, the last one first, and returns when they are
// answered.
func (f *Fake) Release() {
	f.mu.Lock()
	held := f.hooks.held
	f.hooks.held = nil
	f.mu.Unlock()
	for i := range held {
		held[len(held)-1-i]()
	}
}

// tell sends a hook about an issue or a pull request, or about neither, to all who want it.
func (f *Fake) tell(q *request, i *issue, event string, o object) {
	o["sender"] = f.user(q.user)
	switch {
	case i == nil:
	case i.pull != nil && event != commented: // a comment has the issue, as also a pull request is one
		o["number"], o["pull_request"] = i.number, pulls{f}.pullObject(q.repo, i)
	default:
		o["issue"] = f.issueObject(q.repo, i)
	}
	o["repository"] = object{"id": q.repo.id, "full_name": q.repo.name}
	body, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	for _, h := range q.repo.hooks {
		id := fmt.Sprintf("delivery-%d", f.next())
		send := func() { post(h, event, id, body) }
		if h.hub {
			send = f.Hub.hubSend(q, i, h, event, id, o)
		}
		switch f.hooks.mode {
		case Good:
			f.hooks.wg.Go(send)
		case Doubled:
			f.hooks.wg.Go(send)
			f.hooks.wg.Go(send)
		case Late:
			f.hooks.held = append(f.hooks.held, send)
		case Lost:
		}
	}
}

// post sends one delivery. Gitea does not look at the answer either.
func post(h hook, event, id string, body []byte) {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, []byte(h.secret))
	mac.Write(body)
	dialect := "X-Gitea-Event-Type"
	if h.hub {
		dialect = "X-GitHub-Event"
		r.Header.Set("X-Github-Delivery", id)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Gitea-Delivery", id)
	r.Header.Set(dialect, event)
	r.Header.Set("X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
	if resp, err := http.DefaultClient.Do(r); err == nil {
		resp.Body.Close()
	}
}

// queryNumber returns a number of the query; 0 if there is none.
func (q *request) queryNumber(name string) int {
	n, _ := strconv.Atoi(q.URL.Query().Get(name))
	return n
}
