package goals

import "testing"

// FuzzLine: a line that anybody may have edited has a key or none, and the
// place of its count is digits of the line.
func FuzzLine(f *testing.F) {
	f.Add([]byte(`{"type":"summary","goal":"g","iteration":1,"timestamp":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"id":"k","created_at":"2026-01-02T03:04:05Z","applied_count": 12}`))
	f.Add([]byte("\ufeff{\"id\":\"k\",\"content\":\"\\\"applied_count\\\": 3\"}"))
	f.Add([]byte("\ufeff{\"id\":\"k\",\"applied_count\":3}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l := parseLine(text)
		for _, c := range text[min(l.count[0], len(text)):min(l.count[1], len(text))] {
			if c < '0' || c > '9' || l.count[1] > len(text) {
				t.Errorf("%q has its count at %v", text, l.count)
			}
		}
	})
}
