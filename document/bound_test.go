package document

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
)

// long returns the work of an intent that went on for long.
func long(steps int) Work {
	var w Work
	for i := range steps {
		w.Steps = append(w.Steps, StepRecord{Run: 1, Attempt: i, Outcome: "ok"})
		w.Reviews = append(w.Reviews, Review{Attempt: i, Issues: []string{strings.Repeat("ü", 20_000)}})
		w.Verified = append(w.Verified, Verified{Head: fmt.Sprint(i), Output: strings.Repeat("a", 20_000) + "the end"})
	}
	w.PlanTasks = []Task{{ID: "a-001", Plan: strings.Repeat("p", 100_000), Product: Product{Changed: make([]string, 1000)}}}
	return w
}

// TestBound makes an answer about an intent that went on for long: it is bounded,
// has the newest, and says of every text and list that is cut how long it is.
func TestBound(t *testing.T) {
	const steps = 3000
	w := long(steps)
	w.Bound(Page{})
	data, err := json.Marshal(w)
	if err != nil || len(data) > len(Parts)*partBytes {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	if last := w.Steps[len(w.Steps)-1]; last.Attempt != steps-1 {
		t.Errorf("the newest step is %d", last.Attempt)
	}
	cut := map[string]Truncated{}
	for _, c := range w.Truncated {
		cut[c.Field] = c
	}
	if c := cut["steps"]; c.Total != steps || c.Shown != len(w.Steps) || c.From+c.Shown != steps {
		t.Errorf("steps: %+v, %d there", c, len(w.Steps))
	}
	last := len(w.Reviews) - 1
	issue := w.Reviews[last].Issues[0]
	if c := cut[fmt.Sprintf("reviews[%d].issues[0]", last)]; c.Total != 40_000 || c.Shown != len(issue) || !utf8.ValidString(issue) {
		t.Errorf("the newest issue: %+v, %d there", c, len(issue))
	}
	output := w.Verified[len(w.Verified)-1].Output
	if c := cut[fmt.Sprintf("verify[%d].output", len(w.Verified)-1)]; !strings.HasSuffix(output, "the end") || c.From+c.Shown != c.Total || c.Total != 20_007 {
		t.Errorf("the newest output: %+v, ends with %q", c, output[len(output)-10:])
	}
	if c := cut["work[0].changed"]; c.Total != 1000 || c.Shown != len(w.PlanTasks[0].Changed) {
		t.Errorf("the paths: %+v", c)
	}
}

// TestPages reads every item of a part, page by page, once each and in order;
// what was given is left as it was.
func TestPages(t *testing.T) {
	const steps = 3000
	whole := long(steps)
	seen := 0
	for pages := 0; seen < steps; pages++ {
		w := whole
		w.Bound(Page{Part: "steps", After: seen})
		if len(w.Steps) == 0 || pages > steps || len(w.Reviews)+len(w.PlanTasks) > 0 {
			t.Fatalf("page %d after %d has %d steps", pages, seen, len(w.Steps))
		}
		for _, s := range w.Steps {
			if s.Attempt != seen {
				t.Fatalf("step %d comes where %d is to come", s.Attempt, seen)
			}
			seen++
		}
	}
	if len(whole.Reviews[0].Issues[0]) != 40_000 || len(whole.Steps) != steps {
		t.Error("what was given has changed")
	}
	w := whole
	w.Bound(Page{Part: "steps", After: steps + 5})
	if len(w.Steps) != 0 {
		t.Errorf("after the end there are %d", len(w.Steps))
	}
}

// TestItemsAreBounded cuts an item that is large in every place, and one whose
// characters take six bytes each in JSON.
func TestItemsAreBounded(t *testing.T) {
	var r Review
	for range 500 {
		c := Claim{Text: strings.Repeat("<", 9000), Note: strings.Repeat("\x01", 9000)}
		for range 50 {
			c.Evidence = append(c.Evidence, Citation{Quote: strings.Repeat("q", 2000)})
		}
		r.Claims = append(r.Claims, c)
	}
	list := []Review{r}
	cuts, size := fit(&list[0], itemBytes)
	data, err := json.Marshal(list[0])
	if err != nil || size > itemBytes || len(data) > size || len(cuts) == 0 || len(list[0].Claims) == 0 {
		t.Errorf("%d bytes, %d as it says, %d cuts, %d claims, %v", len(data), size, len(cuts), len(list[0].Claims), err)
	}
}

// TestPageIsChecked refuses parts and places that there are not.
func TestPageIsChecked(t *testing.T) {
	for _, p := range []Page{{Part: "diff"}, {Part: "steps", After: -1}, {After: 3}} {
		if len(p.Check()) == 0 {
			t.Errorf("%+v is a page", p)
		}
	}
	for _, name := range Parts {
		if errs := (&Page{Part: name, After: 1}).Check(); len(errs) > 0 {
			t.Error(name, errs)
		}
	}
}

// TestCosts adds up attempts by step, agent and model.
func TestCosts(t *testing.T) {
	step := func(s forge.Step, model string, usd float64) StepRecord {
		return StepRecord{Step: s, Agent: "claude", Model: model, Seconds: 1, Used: Used{CostUSD: usd, InputTokens: 10}}
	}
	got := CostsOf([]StepRecord{
		step(forge.StepImplement, "small", 1), step(forge.StepReview, "small", 2), step(forge.StepImplement, "large", 4), step(forge.StepImplement, "small", 8),
	})
	if len(got) != 3 || got[0].CostUSD != 9 || got[0].Attempts != 2 || got[0].InputTokens != 20 || got[1].CostUSD != 2 || got[2].Model != "large" {
		t.Errorf("%+v", got)
	}
}
