package gateway

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"github.com/pfl-forge/pfl-forge"
)

// FuzzScreen: a request that passes is read in the same way by another reader, has
// no field that is not listed, and passes again as that reader would write it.
func FuzzScreen(f *testing.F) {
	for _, w := range ways {
		for _, b := range w.bodies {
			f.Add(string(w.provider), w.path, []byte(b))
		}
	}
	f.Add("anthropic", "/v1/messages", []byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"t"}]}],"tools":[{"name":"a"}]}`))
	header := http.Header{"Content-Type": {"application/json"}}
	f.Fuzz(func(t *testing.T, provider, endpoint string, body []byte) {
		a := apis[Provider(provider)]
		if r, err := http.NewRequest(http.MethodPost, "http://h/", nil); err != nil || a == nil {
			return
		} else if r.URL.Path = a.prefix + endpoint; !known(a, r) {
			return
		}
		if refused := a.screen(endpoint, header, body); refused != nil {
			if refused.message == "" || refused.status < 400 {
				t.Errorf("refused: %+v", refused)
			}
			return
		}
		var other map[string]any
		d := json.NewDecoder(bytes.NewReader(body))
		d.UseNumber()
		if err := d.Decode(&other); err != nil {
			t.Fatalf("another reader refuses %q: %v", body, err)
		}
		if value, err := decode(body); err != nil || !reflect.DeepEqual(value, any(other)) {
			t.Fatalf("two readers: %v, %v\n%v", err, value, other)
		}
		for name := range other {
			if a != apis[Gemini] && !slices.Contains(a.shape(endpoint).fields, name) {
				t.Errorf("field %q passes", name)
			}
		}
		again, err := json.Marshal(other)
		if err != nil {
			t.Fatal(err)
		}
		if refused := a.screen(endpoint, header, again); refused != nil {
			t.Errorf("%q passes, but %q does not: %s", body, again, refused.message)
		}
	})
}

// known reports whether the gateway forwards a request at all.
func known(a *api, r *http.Request) bool {
	_, ok := a.endpoint(r)
	return ok
}

// FuzzMeter: whatever a provider answers, in whatever parts, no total that was
// reported is negative, and how the answer is cut does not change what is counted.
func FuzzMeter(f *testing.F) {
	f.Add("anthropic", true, []byte(anthropicStream), 7)
	f.Add("openai", false, []byte(`{"model":"m","usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":400},"output_tokens":7}}`), 3)
	f.Add("gemini", true, []byte(`data: {"usageMetadata":{"promptTokenCount":1,"cachedContentTokenCount":9,"candidatesTokenCount":2}}`+"\n\n"), 1)
	f.Add("anthropic", false, []byte(`{"model":"m","usage":{"input_tokens":-5,"output_tokens":9223372036854775807}}`), 1)
	f.Fuzz(func(t *testing.T, provider string, stream bool, data []byte, cut int) {
		a := apis[Provider(provider)]
		if a == nil {
			return
		}
		count := func(size int) (forge.Usage, int) {
			var sum forge.Usage
			reports := 0
			m := &meter{api: a, stream: stream, length: -1, report: func(_ string, more forge.Usage) { sum, reports = sum.Add(more), reports+1 }}
			for part := range slices.Chunk(data, max(size, 1)) {
				m.read(part, false)
			}
			m.read(nil, true)
			return sum, reports
		}
		whole, reports := count(len(data))
		if parts, _ := count(cut % 100); parts != whole {
			t.Errorf("in parts %+v, whole %+v", parts, whole)
		}
		if min(whole.InputTokens, whole.OutputTokens, whole.CacheReadTokens, whole.CacheWriteTokens) < 0 || reports > 2 {
			t.Errorf("%d reports, %+v", reports, whole)
		}
	})
}
