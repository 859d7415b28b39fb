package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"strings"
	"time"
)

// maxRequest bounds the body of a request, in bytes. Providers accept less.
const maxRequest = 64 << 20

// unknownCost is logged of a request that ended before its answer said what it has cost: the
// provider may charge more than was counted.
const unknownCost = "a model's answer broke off, and may have cost more than is counted"

// refusal is an answer of the gateway itself, in a form that the CLIs of all providers
// understand.
type refusal struct {
	status  int
	kind    string
	message string
}

// Refused requests fail at once: only errors that may be gone later have a status
// that makes CLIs retry.
var (
	errUnknownToken = &refusal{http.StatusUnauthorized, "authentication_error", "this token is of no call"}
	errGrantClosed  = &refusal{http.StatusUnauthorized, "authentication_error", "the call that this token was for is over"}
	errBudget       = &refusal{http.StatusBadRequest, "invalid_request_error", "the budget of this call is used up"}
	errEndpoint     = &refusal{http.StatusNotFound, "not_found_error", "the gateway does not forward this"}
	errLarge        = &refusal{http.StatusRequestEntityTooLarge, "request_too_large", "the request is too large"}
	errRedirect     = &refusal{http.StatusBadGateway, "api_error", "the model's address answers with a redirect"}
	errEncoding     = &refusal{http.StatusBadGateway, "api_error", "the model's answer is encoded in a way that was not asked for"}
	errNoKey        = &refusal{http.StatusUnauthorized, "authentication_error", "the service has no key for this model API any more"}
	errUnreadable   = &refusal{http.StatusServiceUnavailable, "api_error", "the service cannot read its key for this model API; its log says why"}
)

// refusalBody has the fields of all providers' errors at once.
type refusalBody struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
		Code    int    `json:"code"`
		Status  string `json:"status"`
	} `json:"error"`
}

func (r *refusal) Error() string { return r.message }

// write answers a request with the refusal.
func (r *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	body := refusalBody{Type: "error"}
	body.Error.Type, body.Error.Message = r.kind, r.message
	body.Error.Code, body.Error.Status = r.status, strings.ToUpper(r.kind)
	_ = json.NewEncoder(w).Encode(body) //nolint:errchkjson // strings and numbers, for a client that may be gone
}

// serve handles one request of a CLI. The body is read completely, so that it can be
// sent again.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	grant := g.grantOf(requestToken(r))
	if grant == nil {
		errUnknownToken.write(w)
		return
	}
	endpoint, ok := grant.account.api.endpoint(r)
	if !ok {
		errEndpoint.write(w)
		return
	}
	account, refused := g.accountNow(grant)
	if refused != nil {
		refused.write(w)
		return
	}
	// After this, Close waits for the request.
	if refused := grant.acquire(); refused != nil {
		refused.write(w)
		return
	}
	defer grant.release()

	// The request ends with the client or with the grant, whichever is first.
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(grant.ctx, cancel)()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if err != nil {
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			errLarge.write(w)
		}
		return
	}
	if grant.limit.ModelOnly {
		if refused := grant.account.api.screen(endpoint, r.Header, body); refused != nil {
			refused.write(w)
			return
		}
		keepBetas(r.Header)
	}
	m := &meter{api: grant.account.api, report: grant.add}
	if grant.limit.USD > 0 {
		q, refused := grant.account.api.read(endpoint, body)
		var paid *reservation
		if refused == nil && q != nil {
			paid, body, refused = grant.reserve(ctx, q, body)
		}
		if refused != nil {
			refused.write(w)
			return
		}
		if paid != nil {
			defer paid.commit(m)
		}
	}
	grant.count()
	// Deferred, as a proxy whose client is gone ends with a panic.
	defer func() {
		if !m.rejected && !m.complete() {
			g.log.WarnContext(ctx, unknownCost, "output_tokens", m.count.usage.OutputTokens, "bytes", m.received)
		}
	}()
	r = r.WithContext(ctx)
	// With GetBody the request is repeated if a kept-alive connection turns out to be closed.
	r.ContentLength, r.Body = int64(len(body)), io.NopCloser(bytes.NewReader(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	g.forward(w, r, grant, account, endpoint, m)
}

// accountNow returns the account that a request of a grant uses: that of the grant, with
// the key as it is now.
func (g *Gateway) accountNow(grant *Grant) (*Account, *refusal) {
	account, err := accountOf(grant.account.Provider, g.variables())
	switch {
	case errors.Is(err, ErrNoAccount):
		return nil, errNoKey
	case err != nil:
		g.log.Warn("a request to a model is refused", "error", err)
		return nil, errUnreadable
	}
	return account, nil
}

// forward sends a request to the account's provider, and its answer to the CLI as it arrives.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request, grant *Grant, account *Account, endpoint string, m *meter) {
	proxy := httputil.ReverseProxy{
		Rewrite:   func(p *httputil.ProxyRequest) { account.rewrite(p.Out, endpoint) },
		Transport: g.upstream,
		// Events pass at once, so that the CLI shows progress and does not time out.
		FlushInterval: -1,
		ModifyResponse: func(resp *http.Response) error {
			grant.setLimited(limitedUntil(resp, time.Now()))
			return m.wrap(resp)
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			// A client that goes away before a stream begins may have had its input read.
			m.rejected = m.rejected || r.Context().Err() == nil
			refused, ok := errors.AsType[*refusal](err)
			if !ok {
				g.log.DebugContext(r.Context(), "a request to a model failed", "error", err)
				refused = &refusal{http.StatusBadGateway, "api_error", fmt.Sprintf("the model cannot be reached: %v", err)}
			}
			if r.Context().Err() == nil {
				refused.write(w)
			}
		},
		ErrorLog: g.server.ErrorLog,
	}
	proxy.ServeHTTP(w, r)
}

// rewrite directs a request to the account's provider, with its key.
func (a *Account) rewrite(out *http.Request, endpoint string) {
	out.URL.Scheme, out.URL.Host = a.base.Scheme, a.base.Host
	out.URL.Path, out.URL.RawPath = a.base.Path+endpoint, ""
	query := out.URL.Query()
	// Nothing else is of use, and Google's APIs take keys and headers as parameters.
	for name := range query {
		if name != "beta" && name != "alt" {
			query.Del(name)
		}
	}
	out.URL.RawQuery = query.Encode()
	out.Host = ""
	for _, name := range strippedHeaders {
		out.Header.Del(name)
	}
	// No upgrade to a protocol that the meter cannot read.
	out.Header.Del("Connection")
	out.Header.Del("Upgrade")
	// A compressed answer could not be counted; see meter.wrap.
	out.Header.Set("Accept-Encoding", "identity")
	out.Header.Set(a.key.header, a.key.scheme+a.secret)
	if beta := a.key.beta; beta != "" && !strings.Contains(strings.Join(out.Header.Values("Anthropic-Beta"), ","), beta) {
		out.Header.Add("Anthropic-Beta", beta)
	}
}
