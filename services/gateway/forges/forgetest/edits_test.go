package forgetest_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// TestEdits: each edit of a title is told with who made it and when, and each
// of a body where the forge tells these; a label is told with when it was put
// on last, by whom. So it is told which of them was later.
func TestEdits(t *testing.T) {
	t.Parallel()
	worlds(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		n := w.issue("eve", "It crashes", "When it starts.")
		path := fmt.Sprintf("/repos/%s/issues/%d", w.repo, n)
		edits := func() []intake.Edit {
			list, err := c.Edits(ctx, w.repo, n)
			if err != nil {
				t.Fatal(err)
			}
			slices.SortStableFunc(list, func(a, b intake.Edit) int { return a.At.Compare(b.At) })
			return list
		}
		if got := edits(); len(got) != 0 {
			t.Errorf("before any edit they are %+v", got)
		}
		w.as("ada", "POST", path+"/labels", object{"labels": []string{"forge"}})
		w.say("eve", n, "changed the description")
		w.as("eve", "PATCH", path, object{"title": "It crashes often"})
		i, err := c.Issue(ctx, w.repo, n)
		got := edits()
		if err != nil || len(got) != 1 || got[0].By.Login != "eve" || len(i.Labels) != 1 || i.Labels[0].At.IsZero() || got[0].At.Before(i.Labels[0].At) {
			t.Errorf("after one of the title they are %+v, and it is %+v, %v", got, i, err)
		}
		w.as("ada", "PATCH", path, object{"body": "When it ends."})
		w.as("root1", "PATCH", path, object{"body": "When it starts."})
		w.as("root1", "PATCH", path, object{"state": "closed"})
		if !w.bodies {
			if got := edits(); len(got) != 1 {
				t.Errorf("of edits of the body there are %+v", got)
			}
			return
		}
		got = edits()
		if len(got) != 3 || got[1].By.Login != "ada" || got[2].By.Login != "root1" || got[2].By.ID <= 0 || got[2].At.Before(got[1].At) {
			t.Errorf("after two of the body they are %+v", got)
		}
		if _, err := c.Edits(ctx, w.repo, 4711); !isNotFound(err) {
			t.Errorf("the edits of an issue that is not there: %v", err)
		}
	})
}

// TestLabelPutOnAgain: the last one counts who put a label on, and it is told when.
func TestLabelPutOnAgain(t *testing.T) {
	t.Parallel()
	onFakesOnly(t, func(t *testing.T, w *world) { //nolint:thelper // it is the test itself
		c, ctx := w.bot(), wait.Context(t)
		n := w.issue("ada", "It crashes", "When it starts.")
		path := fmt.Sprintf("/repos/%s/issues/%d/labels", w.repo, n)
		last := time.Time{}
		for _, who := range []string{"ada", "root1"} {
			w.as(who, "POST", path, object{"labels": []string{"forge"}})
			i, err := c.Issue(ctx, w.repo, n)
			if err != nil || len(i.Labels) != 1 || i.Labels[0].By.Login != who || !i.Labels[0].At.After(last) {
				t.Fatalf("put on by %s it is %+v, %v", who, i, err)
			}
			last = i.Labels[0].At
			w.as("ada", "DELETE", path+"/1", nil)
			if i, err := c.Issue(ctx, w.repo, n); err != nil || len(i.Labels) != 0 {
				t.Fatalf("taken off it is %+v, %v", i, err)
			}
		}
	})
}
