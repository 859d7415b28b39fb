package outside

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge/internal/wait"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges/forgetest"
)

// sumInMark matches the sum in the mark of a comment.
var sumInMark = regexp.MustCompile(`,"sum":"[0-9a-f]+"`)

// TestCommentEditedByAnother: of a comment of ours that another one edited while no
// watcher ran nothing is believed. It is left alone, a new one says how the intent
// is, and commands go on there; those from before are not carried out again.
func TestCommentEditedByAnother(t *testing.T) {
	t.Parallel()
	onFakes(t, func(t *testing.T, w *forgeWorld, fake *forgetest.Fake) { //nolint:thelper // it is the test itself
		stop := w.watch(50 * time.Millisecond)
		issue := w.open()
		hash := w.hash(issue, "")
		w.say("ada", issue, "/forge approve 0123456")
		w.until(issue, `"note":`)
		stop()
		for what, edit := range map[string]func(string) string{
			"a word":            func(body string) string { return strings.Replace(body, "**proposed**", "**done**", 1) },
			"what was read":     func(body string) string { return strings.Replace(body, `"last":`, `"last":9`, 1) },
			"the whole mark":    func(body string) string { return strings.Replace(body, `{"`, `{`, 1) },
			"the hash":          func(body string) string { return strings.ReplaceAll(body, hash, strings.Repeat("0", len(hash))) },
			"a line at the end": func(body string) string { return body + "\n\nAll is well." },
			"its sum, and a word": func(body string) string {
				return strings.Replace(sumInMark.ReplaceAllString(body, ""), "**proposed**", "**done**", 1)
			},
			"its sum, for an empty one": func(body string) string { return sumInMark.ReplaceAllString(body, `,"sum":""`) },
			"its mark": func(body string) string {
				_, rest, _ := strings.Cut(body, "-->\n")
				return rest
			},
			"a line before the mark": func(body string) string { return "All is well.\n\n" + body },
		} {
			before := w.ours(issue)
			for _, c := range fake.Comments(w.repo, 1) {
				if c.Body == before[len(before)-1] {
					w.as("root1", http.MethodPatch, fmt.Sprintf("/repos/%s/issues/comments/%d", w.repo, c.ID), object{"body": edit(c.Body)}, nil)
				}
			}
			stop := w.watch(50 * time.Millisecond)
			wait.Until(t, what+" was edited, and there is a new comment", func() bool { return len(w.ours(issue)) == len(before)+1 })
			stop()
			after := w.ours(issue)
			if after[len(before)-1] != edit(before[len(before)-1]) || !strings.Contains(after[len(before)], "edited by another one") {
				t.Errorf("%s: after that there are %q", what, after)
			}
			if !strings.Contains(after[len(before)], "/forge approve "+hash) || !strings.Contains(after[len(before)], "**proposed**") {
				t.Errorf("%s: the new one is %q", what, after[len(before)])
			}
		}
		w.watch(50 * time.Millisecond)
		w.say("ada", issue, "/forge cancel")
		wait.Until(t, "it is cancelled", func() bool {
			all := w.ours(issue)
			return strings.Contains(all[len(all)-1], "**cancelled**")
		})
		if n := len(w.intents()); n != 1 {
			t.Errorf("there are %d intents", n)
		}
	})
}

// TestProjectOfAnIssueIsGone: where the rules have another project by now, the
// issues of the one before are not taken for those with an edited comment,
// which would have all of them done once more there.
func TestProjectOfAnIssueIsGone(t *testing.T) {
	t.Parallel()
	f := forgetest.NewFake()
	t.Cleanup(f.Close)
	w := newForgeWorld(t, f.URL(), map[string]string{"root1": "root1", "bot": "bot", "ada": "ada", "eve": "eve"})
	stop := w.watch(50 * time.Millisecond)
	issue := w.open()
	before := w.until(issue, "/forge approve")
	stop()
	w.rules = strings.ReplaceAll(forgeRules, "project: shop", "project: other")
	w.watch(50 * time.Millisecond)
	wait.Until(t, "a person is told, or it is submitted again", func() bool {
		return strings.Contains(w.log.String(), `no rule is for its project \"shop\"`) || len(w.ours(issue)) > 1
	})
	if said := w.ours(issue); len(said) != 1 || said[0] != before {
		t.Errorf("we said %q", said)
	}
}
