package look

import "testing"

// FuzzMark: what is remembered in a comment is written as it was read, whatever
// stands in it, and nothing in a note ends it.
func FuzzMark(f *testing.F) {
	f.Add((&mark{Project: "shop", Intent: "fix", Count: 1, Last: 7, Note: "a --> b\n"}).String() + "text")
	f.Add(markBegin + `{"count":-1,"note":"\u003c!--"}` + markEnd)
	f.Add(markBegin + "null" + markEnd)
	f.Fuzz(func(t *testing.T, body string) {
		m, ok := readMark(body)
		if !ok || len(m.Note) > maxNote {
			return
		}
		if again, ok := readMark(m.String() + body); !ok || again.String() != m.String() {
			t.Errorf("%q is %+v, and then %+v", body, m, again)
		}
	})
}
