package plainjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// word is a string with a type of its own.
type word string

// inner is within outer, and beside it.
type inner struct {
	CostUSD float64
	Words   []word
}

// outer has a field of each kind.
type outer struct {
	inner

	Name    string
	Took    time.Duration
	At      time.Time
	Pointer *inner
	Deep    [][]inner
	With    map[word]inner
	Tagged  struct {
		Other int `json:"another"`
	}
	Yes bool
	N   uint64
}

// Inner is embedded with a name that is exported.
type Inner inner

// TestRoundTrip reads what was written, exactly: a list that is empty stays apart from none.
func TestRoundTrip(t *testing.T) {
	full := outer{
		Name: "a\x1b\"ü", Took: 1500 * time.Millisecond, At: time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC), Pointer: &inner{CostUSD: 0.1, Words: []word{}},
		Deep: [][]inner{{}, nil, {{CostUSD: 2}}}, With: map[word]inner{"SOME_Name": {CostUSD: 3}}, Yes: true, N: 1 << 63,
	}
	full.Tagged.Other = 7
	for _, want := range []outer{full, {}} {
		data, err := Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got outer
		if err := Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %+v, %v, want %+v", data, got, err, want)
		}
	}
}

// TestNames compares the JSON itself, in which nothing is that is zero.
func TestNames(t *testing.T) {
	data, err := Marshal(struct {
		Inner

		PatchID       string
		RelevantFiles []string
		BudgetUSD     float64
		Empty         string
	}{Inner: Inner{CostUSD: 1.5}, PatchID: "p", RelevantFiles: []string{}, BudgetUSD: 2})
	if want := `{"cost_usd":1.5,"patch_id":"p","relevant_files":[],"budget_usd":2}`; err != nil || string(data) != want {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
}

// TestNewer passes over what a newer version has written besides, and says
// where something is of another type.
func TestNewer(t *testing.T) {
	var v struct {
		Name string
		List []inner
	}
	if err := Unmarshal([]byte(`{"name":"n","newer":{"x":[1]},"list":[{"cost_usd":1,"newer":2}]}`), &v); err != nil || v.Name != "n" || v.List[0].CostUSD != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	for text, place := range map[string]string{`{"list":[{"cost_usd":"x"}]}`: "list: 0: cost_usd: ", `{"list":{}}`: "list: ", `[]`: "", `{"list":[`: ""} {
		if err := Unmarshal([]byte(text), &v); err == nil || !strings.HasPrefix(err.Error(), place) {
			t.Errorf("%s: %v, want %s", text, err, place)
		}
	}
	if _, err := Marshal(struct{ Any any }{1}); err == nil {
		t.Error("an interface is written, and could not be read")
	}
}

// counted counts how often one of it was written.
type counted struct {
	times *int
	text  string
}

func (c counted) MarshalJSON() ([]byte, error) {
	*c.times++
	return json.Marshal(c.text)
}

// TestMostIsWritten: nothing is written behind the bound, and nothing of a
// value whose texts alone are more than there is room for.
func TestMostIsWritten(t *testing.T) {
	const most = 10 << 10
	text, tooLong := strings.Repeat("x", 1<<10), strings.Repeat("x", most+1)
	var times int
	long := struct{ List []counted }{slices.Repeat([]counted{{&times, text}}, 1000)}
	if data, err := MarshalMost(long, most); !errors.Is(err, ErrLong) || data != nil || times > 10 {
		t.Errorf("%d bytes in %d texts, %v", len(data), times, err)
	}
	type part struct {
		One  counted `json:"one"`
		Text *string `json:"text"`
	}
	times = 0
	for _, tagged := range []any{
		struct {
			Parts []part `json:"parts"`
		}{slices.Repeat([]part{{counted{&times, ""}, &text}}, 1000)},
		struct {
			Parts map[string]part `json:"parts"`
		}{map[string]part{"a": {counted{&times, ""}, &tooLong}}},
	} {
		if _, err := MarshalMost(tagged, most); !errors.Is(err, ErrLong) || times > 0 {
			t.Errorf("%T: %d were written, %v", tagged, times, err)
		}
	}
	// What fits to the byte is written.
	fits := struct{ Name, Title string }{text, "\"<\x01"}
	data, err := Marshal(fits)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := MarshalMost(fits, len(data)); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%s, %v", got, err)
	}
	if _, err := MarshalMost(fits, len(data)-1); !errors.Is(err, ErrLong) {
		t.Errorf("one byte less: %v", err)
	}
}

// FuzzUnmarshal reads anything as an intent, and what was read once more.
func FuzzUnmarshal(f *testing.F) {
	f.Add([]byte(`{"summary":{"title":"t","key":{"project":"p"}},"tasks":[{"id":"a-001","checks":[{"timeout":5}]}],"seq":3}`))
	f.Add([]byte(`{"intent":{"with":{"A":"b"}},"history":[{"step_results":[{"at":"2026-03-01T12:00:00Z"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var v, again forge.View
		if Unmarshal(data, &v) != nil {
			return
		}
		text, err := Marshal(v)
		if err != nil {
			return // a year of five digits, which is no time in JSON
		}
		if err := Unmarshal(text, &again); err != nil || !reflect.DeepEqual(v, again) {
			t.Errorf("%s is written as %s: %v", data, text, err)
		}
	})
}
