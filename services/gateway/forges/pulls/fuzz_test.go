package pulls

import (
	"testing"

	forge "github.com/pfl-forge/pfl-forge"
)

// FuzzMark: a text that anybody may have written names an attempt by ids that
// are ids, and the mark that it names reads as the same.
func FuzzMark(f *testing.F) {
	a := forge.Attempt{Task: "fix-001", Step: forge.StepOpenPull, Number: 2, Claim: 1}
	f.Add(markOf(forge.Key{Project: "shop", Intent: "fix"}, a).String() + "text")
	f.Add("> " + markBegin + `{"project":"shop"}` + markEnd)
	f.Add(markBegin + `{"project":"..","intent":"a","task":"b-001","number":1,"claim":1}` + markEnd)
	f.Fuzz(func(t *testing.T, body string) {
		to, a, ok := readMark(body, func(forge.Key) bool { return true })
		if !ok {
			return
		}
		if _, err := forge.ParseProjectID(string(to.Project)); err != nil || a.Task.Intent() != to.Intent || a.Number < 1 || a.Claim < 1 {
			t.Errorf("%q is %v of %v, %v", body, a, to, err)
		}
		again, same, ok := readMark(markOf(to, a).String(), func(forge.Key) bool { return true })
		if !ok || again != to || same != a {
			t.Errorf("%q is %v of %v, and then %v of %v", body, a, to, same, again)
		}
	})
}
