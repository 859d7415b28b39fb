package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/price"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
)

// provider is a model that costs as much as a request allows: its input has a token for every
// byte of text that is not in the cache, and its output is as long as it may be.
type provider struct {
	*model
	mu     sync.Mutex
	served map[string]forge.Usage
	most   int64
	broken atomic.Bool // the answer breaks off before it says what it has cost
}

// newProvider starts a provider that speaks the API of Anthropic.
func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{served: map[string]forge.Usage{}}
	p.model = newModel(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var in struct {
			Model     string
			MaxTokens int64 `json:"max_tokens"`
			Messages  []struct{ Content string }
		}
		if err := json.Unmarshal(body, &in); err != nil {
			t.Error(err)
		}
		var input int64
		for _, m := range in.Messages {
			input += int64(len(m.Content))
		}
		u := forge.Usage{CacheWriteTokens: input, OutputTokens: in.MaxTokens}
		<-p.got // nobody looks at the requests themselves
		p.mu.Lock()
		p.served[in.Model] = p.served[in.Model].Add(u)
		p.most = max(p.most, in.MaxTokens)
		p.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"type\":\"message_start\",\"message\":{\"model\":%q,\"usage\":{\"input_tokens\":0,\"output_tokens\":1,"+
			"\"cache_creation_input_tokens\":%d}}}\n\n", in.Model, u.CacheWriteTokens)
		_, _ = io.WriteString(w, strings.Repeat("x", int(u.OutputTokens))+"\n\n")
		w.(http.Flusher).Flush()
		if p.broken.Load() {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprintf(w, "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":%d}}\n\n", u.OutputTokens)
	})
	return p
}

// usd returns what all answers have cost.
func (p *provider) usd() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cost(p.served)
}

// ask sends a request of the Messages API, and returns its status.
func (p *provider) ask(t *testing.T, grant *Grant, model, text string, maxTokens int) int {
	t.Helper()
	body := fmt.Sprintf(`{"model":%q,"max_tokens":%d,"stream":true,"messages":[{"role":"user","content":%q}]}`, model, maxTokens, text)
	resp, err := send(t.Context(), t, grant, http.MethodPost, "/v1/messages", body)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestCeilingHolds has calls ask as much as they can, at once, of a model that always takes as
// much as it may: whatever they ask, no call costs more than its budget.
func TestCeilingHolds(t *testing.T) {
	for seed := range uint64(testsize.Of(15, 300)) {
		rng := rand.New(rand.NewPCG(seed, 1))
		limit := []float64{0.01, 0.05, 0.3, 1}[rng.IntN(4)]
		p := newProvider(t)
		p.broken.Store(rng.IntN(4) == 0)
		g := start(t, Config{}, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+p.URL)
		grant := open(t, g, Anthropic, Limit{USD: limit})
		var asking sync.WaitGroup
		for range 1 + rng.IntN(4) {
			text, most := strings.Repeat("word ", rng.IntN(3000)), 1+rng.IntN(40_000)
			model := []string{"claude-sonnet-5", "claude-opus-4-8", "claude-haiku-4-5"}[rng.IntN(3)]
			asking.Go(func() {
				for range 6 {
					p.ask(t, grant, model, text, most)
					text += " and more"
				}
			})
		}
		asking.Wait()
		if spent := p.usd(); spent > limit {
			t.Errorf("seed %d: $%.6f were spent of $%.2f", seed, spent, limit)
		}
		if counted := grant.Usage().CostUSD; !p.broken.Load() && (counted-p.usd() > 1e-9 || p.usd()-counted > 1e-9) {
			t.Errorf("seed %d: $%.6f were counted of $%.6f", seed, counted, p.usd())
		}
	}
}

// TestRequestIsLowered has a request that allows more than is left, and one for which nothing is.
func TestRequestIsLowered(t *testing.T) {
	p := newProvider(t)
	g := start(t, Config{}, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+p.URL)
	grant := open(t, g, Anthropic, Limit{USD: 0.1})
	if got := p.ask(t, grant, "claude-sonnet-5", "hello", 64_000); got != http.StatusOK || p.most < 5000 || p.most > 6700 {
		t.Errorf("status %d, %d tokens of output were allowed", got, p.most)
	}
	if grant.Spent() {
		t.Error("nothing was refused yet")
	}
	if got := p.ask(t, grant, "claude-sonnet-5", "hello", 64_000); got != http.StatusBadRequest || !grant.Spent() {
		t.Errorf("status %d, spent %t", got, grant.Spent())
	}
	if grant.Requests() != 1 {
		t.Errorf("%d requests were forwarded", grant.Requests())
	}
}

// TestConversationIsKnown sends a long conversation that grows: after the first answer the gateway
// knows what it had, and does not count a token for every byte any more.
func TestConversationIsKnown(t *testing.T) {
	q, refused := apis[Anthropic].read("/v1/messages", []byte(`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"`+
		strings.Repeat("long ", 1000)+`"},{"role":"user","content":"more"}]}`))
	if refused != nil {
		t.Fatal(refused)
	}
	first, _ := apis[Anthropic].read("/v1/messages", []byte(`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"`+
		strings.Repeat("long ", 1000)+`"}]}`))
	k := precedent{"m", first.texts, 1300}
	if got := k.beyond(q); got < 1304 || got > 1400 || q.input < 5000 {
		t.Errorf("%d tokens after 1300, %d without", got, q.input)
	}
	if other := (&precedent{"n", first.texts, 1300}); other.beyond(q) != q.input {
		t.Error("another model has other tokens")
	}
}

// TestLower lowers requests of each API.
func TestLower(t *testing.T) {
	for _, tt := range []struct {
		p              Provider
		endpoint, body string
		want           string
		output         int64
	}{
		{
			Anthropic, "/v1/messages", `{"model":"a","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":8000}}`,
			`{"max_tokens":3000,"model":"a","thinking":{"budget_tokens":1500,"type":"enabled"}}`, 9000,
		},
		{OpenAI, "/responses", `{"model":"a","input":"<b>"}`, `{"input":"<b>","max_output_tokens":3000,"model":"a"}`, maxOutput},
		{
			OpenAI, "/chat/completions", `{"model":"a","max_tokens":7000,"n":2,"stream":true}`,
			`{"max_tokens":3000,"model":"a","n":2,"stream":true,"stream_options":{"include_usage":true}}`, 7000,
		},
		{
			Gemini, "/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[],"generationConfig":{"temperature":1}}`,
			`{"contents":[],"generationConfig":{"maxOutputTokens":3000,"temperature":1}}`, maxOutput,
		},
	} {
		q, refused := apis[tt.p].read(tt.endpoint, []byte(tt.body))
		if refused != nil {
			t.Fatal(refused)
		}
		body, err := q.lower(3000)
		if err == nil {
			body, err = q.reporting(body)
		}
		if err != nil || string(body) != tt.want || q.output != tt.output {
			t.Errorf("%s: %s, %d, %v; want %s", tt.endpoint, body, q.output, err, tt.want)
		}
	}
	if q, refused := apis[Gemini].read("/v1beta/models/m:countTokens", []byte(`{}`)); q != nil || refused != nil {
		t.Error("counting costs nothing")
	}
	for _, body := range []string{`{"max_tokens":1,"max_tokens":2}`, `[]`, `{`, `{"speed":"fast"}`} {
		if _, refused := apis[Anthropic].read("/v1/messages", []byte(body)); refused == nil {
			t.Errorf("%s is read", body)
		}
	}
	if price.Cost("gemini-2.5-pro", forge.Usage{CacheReadTokens: 1e6}) != 0.25 {
		t.Error("cached tokens have a price")
	}
}
