package audits

import (
	"net/url"
	"strings"
	"testing"
)

// TestParse: a filter is asked for as the API has it, the last day as a whole;
// what is not known, is given twice or is no day is an error.
func TestParse(t *testing.T) {
	for query, want := range map[string]string{
		"": "", "project=shop&actor=+ada+&action=approve&after=x&intent=": "action=approve&actor=ada",
		"since=2026-03-01&until=2026-03-02":    "since=2026-03-01T00%3A00%3A00Z&until=2026-03-03T00%3A00%3A00Z",
		"until=2026-03-02T10:00:00Z&project=a": "until=2026-03-02T10%3A00%3A00Z",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		values, ask, err := Parse(q)
		if err != nil || ask.Encode() != want || values.Has("after") || values.Has("intent") {
			t.Errorf("%s: %s and %s, %v", query, values.Encode(), ask.Encode(), err)
		}
	}
	for query, says := range map[string]string{"by=x": "no filter", "actor=a&actor=b": "twice", "since=soon": "Since", "after=a&after=b": "twice"} {
		q, err := url.ParseQuery(query)
		if _, _, wrong := Parse(q); err != nil || wrong == nil || !strings.Contains(wrong.Error(), says) {
			t.Errorf("%s: %v, %v", query, wrong, err)
		}
	}
}
