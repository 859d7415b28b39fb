package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/pfl-forge/pfl-forge/services/gateway/tokens"
)

// Finder returns the token of a holder as the operator's file has it now, or says why it
// does not count any more.
type Finder func() (*tokens.Token, error)

// Holder asks the API from within this process, for the holder of a token who showed it
// earlier, as to the console. There is one way in: the routes, with every check, bound and
// log line that a request by HTTP has. Only the header with the token is missing.
//
// One Holder is for one request of a browser: it is counted once among the requests of its
// token, however many answers the page is made of.
type Holder struct {
	api     *API
	find    Finder
	counted atomic.Bool
	// account and ref say who the holder is to the gateway, and where they said
	// it; empty: by a token, in a request.
	account, ref string
	// later says that the sender was answered before: what is submitted is
	// stored also while no runner is up.
	later bool
}

// For returns a Holder.
func (a *API) For(find Finder) *Holder { return &Holder{api: a, find: find} }

// ForAccount returns a Holder who did not show a token, but is known by an
// account elsewhere. The journal has that account, and where its holder acted.
func (a *API) ForAccount(find Finder, account, ref string) *Holder {
	return &Holder{api: a, find: find, account: account, ref: ref}
}

// ForHook is ForAccount for a system whose request came through a hook and was
// answered before: what it submits is stored also while no runner is up, since
// its sender cannot be told to come again.
func (a *API) ForHook(find Finder, account, ref string) *Holder {
	return &Holder{api: a, find: find, account: account, ref: ref, later: true}
}

// Call is a request of a Holder.
type Call struct {
	// Method and Path are those of a request by HTTP, Path with its query.
	Method, Path string
	// Key is the Idempotency-Key; empty for none.
	Key string
	// Content is sent as JSON; nil for none.
	Content any
	// Admitted asks whether it would be answered, and for nothing else: it is
	// admitted and counted as any other, and not served.
	Admitted bool
}

// admittedKey is in the context of a request that is only admitted.
type admittedKey struct{}

// onlyAdmitted reports whether a request asks for nothing else. None from outside does.
func onlyAdmitted(r *http.Request) bool { return r.Context().Value(admittedKey{}) != nil }

// holderKey has the Holder in the context of a request. No request from outside has one.
type holderKey struct{}

// holderOf returns the Holder whose request it is; nil for one from outside.
func holderOf(r *http.Request) *Holder {
	h, _ := r.Context().Value(holderKey{}).(*Holder)
	return h
}

// counted reports whether the request is part of one that was counted already.
func (c *call) counted() bool {
	h := holderOf(c.r)
	return h != nil && h.counted.Swap(true)
}

// Serve answers with the API's own answer, as it comes: it is for streams.
func (h *Holder) Serve(w http.ResponseWriter, r *http.Request, path string) error {
	inner, err := http.NewRequestWithContext(context.WithValue(r.Context(), holderKey{}, h), http.MethodGet, path, http.NoBody)
	if err != nil {
		return err
	}
	if last := r.Header.Values("Last-Event-ID"); len(last) > 0 {
		inner.Header["Last-Event-Id"] = last
	}
	h.api.ServeHTTP(w, inner)
	return nil
}

// Ask reads the answer into a document, unless that is nil. What was not done is a *Problem.
func (h *Holder) Ask(ctx context.Context, c Call, into any) error {
	var body []byte
	if c.Content != nil {
		var err error
		if body, err = json.Marshal(c.Content); err != nil {
			return err
		}
	}
	if c.Admitted {
		ctx = context.WithValue(ctx, admittedKey{}, true)
	}
	r, err := http.NewRequestWithContext(context.WithValue(ctx, holderKey{}, h), c.Method, c.Path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.Key != "" {
		r.Header.Set("Idempotency-Key", c.Key)
	}
	w := &kept{header: http.Header{}, status: http.StatusOK}
	h.api.ServeHTTP(w, r)
	if w.status >= http.StatusBadRequest {
		p := &Problem{}
		if err := json.Unmarshal(w.body.Bytes(), p); err != nil {
			return fmt.Errorf("an answer with status %d: %w", w.status, err)
		}
		return p
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(w.body.Bytes(), into)
}

// kept keeps an answer in memory.
type kept struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header returns the headers of the answer.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader keeps the status.
func (k *kept) WriteHeader(status int) { k.status = status }

// Write keeps a part of the content.
func (k *kept) Write(p []byte) (int, error) { return k.body.Write(p) }
