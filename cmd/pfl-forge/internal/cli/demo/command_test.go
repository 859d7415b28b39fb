package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
)

func TestDemoSaysWhatDiffers(t *testing.T) {
	answer := "x"
	failed := forge.View{Intent: forge.Intent{ID: "failed"}, Summary: forge.Summary{Waiting: forge.WaitingFailed, Reason: "it broke"}}
	asks := forge.View{
		Intent: forge.Intent{ID: "asks", Clarifications: []forge.Clarification{
			{Question: "first?", Answer: &answer}, {Question: "second?", SuggestedAnswers: []string{"two words"}},
		}},
		Summary: forge.Summary{Waiting: forge.WaitingClarification},
	}
	report := &Report{
		Scenes: []Scene{{Name: "good", Shows: "this"}, {Name: "bad", Shows: "that", Differs: []string{"it should be 1, and is 2"}}},
		Views:  []forge.View{asks, failed},
	}
	doc := demoDocOf("/d", 1234567*time.Microsecond, report, kit.Invocation{Program: "pfl-forge", Inside: true})
	if doc.OK || doc.Seconds != 1.234 {
		t.Errorf("ok %t after %v seconds", doc.OK, doc.Seconds)
	}
	var out bytes.Buffer
	a := &kit.App{Out: &out, Err: &out, Getenv: func(string) string { return "" }}
	printDemo(a, doc)
	for _, want := range []string{
		"ok    good", "FAIL  bad", "it should be 1, and is 2",
		"second?", "cd /d && pfl-forge answer asks 2 'two words'",
		"it broke", "cd /d && pfl-forge show failed",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, &out)
		}
	}
}
