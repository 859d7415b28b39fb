package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/http"
	"strings"

	"github.com/pfl-forge/pfl-forge/agent/price"
)

// A request can cost more than is left of a call's budget, and its cost is known only when
// it has been answered. So a grant with a budget reserves for each request the most that it
// can cost, before it is forwarded: no token of its text is shorter than a byte, and the
// model writes at most what the request allows. Where that does not fit, the request is
// forwarded with a lower bound of its own, or waits for the requests that run beside it, or
// is refused.

const (
	// minOutput is the least output, in tokens, that a request is forwarded with, unless it
	// asks for less: below that a model can say nothing of use.
	minOutput = 1024
	// maxOutput bounds the output, in tokens, of a request that does not say how much it allows.
	maxOutput = 128_000
	// preamble and framing are the tokens that a provider adds to a request and to each of its
	// texts; maxMedia bounds those of a picture.
	preamble = 600
	framing  = 8
	maxMedia = 6000
)

// request is the cost of a request at the most, as it can be said before it is answered.
type request struct {
	model  string
	prices price.Model
	// input are the tokens of the request at the most, output those that it allows; replies
	// is how many answers it asks for.
	input, output, replies int64
	// stated says that the request bounds its output itself.
	stated bool
	// texts are the parts of the request, by their hash.
	texts map[uint64]part
	// fields are those of the request, as they are sent.
	fields map[string]json.RawMessage
	knob   knob
}

// part is a text of a request: how often it is there, and its tokens at the most.
type part struct {
	times, tokens int64
}

// knob says how a request of an API bounds its output.
type knob struct {
	// within is the field that holds the others; empty if they are fields of the request.
	within string
	// names are the spellings of the bound; the first is used where none is there.
	names []string
	// replies are the spellings of the number of answers.
	replies []string
	// usage says that a stream reports its usage only where the request asks for it.
	usage bool
	// thinking says that a bound on thinking has to be below that of the output.
	thinking bool
}

// knob returns how requests for an endpoint bound their output; false for one that
// costs nothing.
func (a *api) knob(endpoint string) (knob, bool) {
	switch {
	case strings.HasSuffix(endpoint, "/count_tokens"), strings.HasSuffix(endpoint, ":countTokens"):
		return knob{}, false
	case a == apis[Gemini]:
		return knob{
			within: "generationConfig", names: []string{"maxOutputTokens", "max_output_tokens"},
			replies: []string{"candidateCount", "candidate_count"},
		}, true
	case a == apis[Anthropic]:
		return knob{names: []string{"max_tokens"}, thinking: true}, true
	case strings.HasSuffix(endpoint, "/responses"):
		return knob{names: []string{"max_output_tokens"}}, true
	}
	return knob{names: []string{"max_completion_tokens", "max_tokens"}, replies: []string{"n"}, usage: true}, true
}

// seed makes the hashes of texts of this process.
var seed = maphash.MakeSeed()

// read returns the cost of a request at the most; nil if it costs nothing. A request that
// could be read in two ways is refused, because the provider may read it in the dearer one.
func (a *api) read(endpoint string, body []byte) (*request, *refusal) {
	knob, costs := a.knob(endpoint)
	if !costs {
		return nil, nil
	}
	value, err := decode(body)
	if err != nil {
		return nil, errUncountable(err.Error())
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, errUncountable("it is no object")
	}
	q := &request{knob: knob, texts: map[uint64]part{}, fields: map[string]json.RawMessage{}, output: maxOutput, replies: 1}
	if err := json.Unmarshal(body, &q.fields); err != nil {
		return nil, errUncountable(err.Error())
	}
	if fields["speed"] == "fast" {
		return nil, errUncountable("speed: its price is not the list price; leave it out, or set no budget")
	}
	q.model, _ = fields["model"].(string)
	if a == apis[Gemini] {
		_, name, _ := strings.Cut(endpoint, "/models/")
		q.model, _, _ = strings.Cut(name, ":")
	}
	q.prices, _ = price.Of(q.model)
	q.input = preamble + q.count(fields)
	options := fields
	if knob.within != "" {
		if _, two := fields["generation_config"]; two {
			return nil, errUncountable("generation_config: write generationConfig")
		}
		options, _ = fields[knob.within].(map[string]any)
	}
	for _, name := range knob.names {
		if n, ok := positive(options[name]); ok && (!q.stated || n > q.output) {
			q.output, q.stated = n, true
		}
	}
	for _, name := range knob.replies {
		if n, ok := positive(options[name]); ok {
			q.replies = max(q.replies, n)
		}
	}
	return q, nil
}

// positive returns a number of a request that is whole and positive.
func positive(value any) (int64, bool) {
	n, ok := value.(json.Number)
	if !ok {
		return 0, false
	}
	i, err := n.Int64()
	return i, err == nil && i > 0
}

// count returns the most tokens that a value of a request has, and notes its texts.
func (q *request) count(value any) int64 {
	var sum int64
	switch v := value.(type) {
	case string:
		return q.addText(v, int64(len(v))+framing)
	case []any:
		for _, e := range v {
			sum += q.count(e)
		}
	case map[string]any:
		if data, ok := picture(v); ok {
			return q.addText(data, maxMedia)
		}
		for name, e := range v {
			sum += int64(len(name)) + q.count(e)
		}
	default:
		return framing
	}
	return sum
}

// addText counts a text of so many tokens at the most, and returns that number.
func (q *request) addText(text string, tokens int64) int64 {
	key := maphash.String(seed, text)
	q.texts[key] = part{q.texts[key].times + 1, tokens}
	return tokens
}

// picture returns the data of a picture that is in the request. A model sees it as so many
// tokens as its size says, not its data.
func picture(v map[string]any) (string, bool) {
	kind, _ := v["media_type"].(string)
	for _, name := range []string{"mimeType", "mime_type"} {
		if k, ok := v[name].(string); ok {
			kind = k
		}
	}
	if data, ok := v["data"].(string); ok && strings.HasPrefix(kind, "image/") {
		return data, true
	}
	for _, name := range []string{"image_url", "url"} {
		if data, ok := v[name].(string); ok && strings.HasPrefix(data, "data:image/") {
			return data, true
		}
	}
	return "", false
}

// usd returns the cost of input, and of one token of the output. A token of the input can
// be written to the provider's cache, which is the dearest that can happen to it.
func (q *request) usd(input int64) (in, each float64) {
	return float64(input) * max(q.prices.Input, q.prices.CacheWrite) / 1e6, q.prices.Output * float64(q.replies) / 1e6
}

// errUncountable returns the refusal of a request whose cost cannot be said.
func errUncountable(why string) *refusal {
	return &refusal{http.StatusBadRequest, "invalid_request_error", "the gateway cannot say what the request costs: " + why}
}

// lower returns the request with a bound of its output.
func (q *request) lower(output int64) ([]byte, error) {
	fields := q.fields
	object := fields
	if q.knob.within != "" {
		object = map[string]json.RawMessage{}
		if at, ok := fields[q.knob.within]; ok {
			if err := json.Unmarshal(at, &object); err != nil {
				return nil, err
			}
		}
	}
	set := false
	for _, name := range q.knob.names {
		if _, ok := object[name]; ok {
			object[name], set = number(output), true
		}
	}
	if !set {
		object[q.knob.names[0]] = number(output)
	}
	if q.knob.within != "" {
		at, err := marshal(object)
		if err != nil {
			return nil, err
		}
		fields[q.knob.within] = at
	}
	if at, ok := fields["thinking"]; ok && q.knob.thinking {
		thinking := map[string]json.RawMessage{}
		var budget int64
		if json.Unmarshal(at, &thinking) == nil && json.Unmarshal(thinking["budget_tokens"], &budget) == nil && budget >= output {
			thinking["budget_tokens"] = number(max(output/2, minOutput))
			next, err := marshal(thinking)
			if err != nil {
				return nil, err
			}
			fields["thinking"] = next
		}
	}
	return marshal(fields)
}

// reporting returns the request, or one that asks for the usage of its stream, which it
// would not be told otherwise.
func (q *request) reporting(body []byte) ([]byte, error) {
	if string(q.fields["stream"]) != "true" || !q.knob.usage {
		return body, nil
	}
	options := map[string]json.RawMessage{}
	if at, ok := q.fields["stream_options"]; ok {
		if err := json.Unmarshal(at, &options); err != nil {
			return nil, err
		}
	}
	if string(options["include_usage"]) == "true" {
		return body, nil
	}
	options["include_usage"] = json.RawMessage("true")
	at, err := marshal(options)
	if err != nil {
		return nil, err
	}
	q.fields["stream_options"] = at
	return marshal(q.fields)
}

// number returns a number as JSON.
func number(n int64) json.RawMessage { return json.RawMessage(fmt.Sprint(n)) }

// marshal returns a value as JSON, with its texts as they are.
func marshal(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// precedent is a request that was answered: its texts, and the tokens that it had.
type precedent struct {
	model  string
	texts  map[uint64]part
	tokens int64
}

// beyond returns the most input tokens of a request that goes on with this one: the tokens of
// this, and those of each text that was not in it.
func (k *precedent) beyond(q *request) int64 {
	if k.model != q.model {
		return q.input
	}
	sum := k.tokens
	for key, p := range q.texts {
		sum += max(p.times-k.texts[key].times, 0) * p.tokens
	}
	return sum
}
