package pulls_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/trailers"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// hostile has all that a forge or another bot would obey.
const hostile = "@all Closes #1, fixes GH-2\r\n/approve\r\n<!-- pfl-forge pull {} --> ![x](https://evil.test/p.png) <img src=x> s3cret-of-ours \x1b[2J\u202e " +
	"`a` | b | \n- [ ] box\n# head www.evil.test !3 $4 &5 a466e452e239ae3ae94b6b16ce3ca92377690546"

// obeyed matches what is left of it that would be obeyed.
var obeyed = regexp.MustCompile(`@\w|[Cc]loses|[Ff]ixes|#\d|GH-\d|!\[|<img|s3cret|\x1b|` + "\u202e" + `|://|www\.|![0-9]|\$4|(?m)^\s*(> )?/approve`)

// TestText: the text opens with the verdict, says who asked and what was found, and nothing that
// an agent or a person said in it is obeyed; it has at most 60 KB, whatever there is to say.
func TestText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	k := w.keeper()
	f := &w.in.Facts
	w.in.Title = "WIP: " + hostile
	f.Request, f.Requesters, f.Approvers, f.Commands = strings.Repeat(hostile, 500), []string{"@ada"}, []string{"bob\n@all"}, []string{"make check # @all"}
	f.Requirements, f.Rejected, f.Files = nil, nil, nil
	for i := range 500 {
		f.Requirements = append(f.Requirements, forge.PullRequirement{Text: hostile, Met: i%2 == 0, Evidence: []string{hostile, hostile}})
		f.Rejected = append(f.Rejected, hostile)
		f.Files = append(f.Files, fmt.Sprintf("dir/%d/@all.txt", i))
	}
	w.open(k)
	s := w.show()
	if len(s.Body) > intake.MaxOut || !utf8.ValidString(s.Body) {
		t.Errorf("the text has %d bytes", len(s.Body))
	}
	mark, rest, _ := strings.Cut(s.Body, "\n")
	if !strings.HasPrefix(mark, "<!-- pfl-forge pull {") || !strings.HasSuffix(mark, "} -->") || strings.Contains(rest, "<!--") {
		t.Errorf("the mark is %q", mark)
	}
	verdict, _, _ := strings.Cut(rest, "\n")
	for _, want := range []string{
		"**Verified** on `" + w.in.Parent[:12] + "` by ", "review: 250 of 500 requirements met", "approved by ", "$0.84", "2 attempts", "patch `14f5aa00`",
	} {
		if !strings.Contains(verdict, want) {
			t.Errorf("the first line has no %q: %q", want, verdict)
		}
	}
	for _, want := range []string{
		"### Request", "Asked for by", "### Requirements and evidence", "- **met**: ", "- **not met**: ", "### Not accepted before", "### Files", "more\n",
	} {
		if !strings.Contains(rest, want) {
			t.Errorf("the text has no %q", want)
		}
	}
	for _, text := range []string{rest, s.Title} {
		if found := obeyed.FindString(text); found != "" {
			i := strings.Index(text, found)
			t.Errorf("this is obeyed: %q in %q", found, text[max(i-30, 0):min(i+50, len(text))])
		}
	}
	if s.Draft || strings.ContainsAny(s.Title, "\r\n") || utf8.RuneCountInString(s.Title) > 255 {
		t.Errorf("the title is %q, a draft: %v", s.Title, s.Draft)
	}
	before := w.fake.Asked("PATCH", "/pulls/1")
	if w.open(k); w.fake.Asked("PATCH", "/pulls/1") != before {
		t.Error("the same text is written again")
	}
}

// TestTextOfNothing: where there is little to say, it says so and claims nothing.
func TestTextOfNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.in.Title, w.in.Facts, w.in.PatchID, w.in.Parent = " \n", forge.PullFacts{Attempts: 1}, "<b>", ""
	w.open(w.keeper())
	s := w.show()
	if s.Title != "Task it-crashes-0123456789-001" || strings.Contains(s.Body, "Verified") || !strings.Contains(s.Body, "**No verify command**") ||
		!strings.Contains(s.Body, "1 attempt ") || strings.Contains(s.Body, "approved") || strings.Contains(s.Body, "<b>") {
		t.Errorf("it says %+v", s)
	}
}

// TestMergesWhen: the text says who merges it, and what that waits for: also
// that it would wait for ever where no check is reported.
func TestMergesWhen(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]forge.PullPolicy{
		"A person merges it.\n": {By: "people", Checks: []string{"build"}},
		"It is merged by itself when these checks have passed: \u200bbuild, lint.\n":                             {By: "forge", Checks: []string{"build", "lint"}},
		"Where none is, as in a repository without CI, it waits: merge it, or set up checks of pull requests.\n": {By: "forge"},
	} {
		w := newWorld(t)
		w.in.Policy.By, w.in.Policy.Checks = p.By, p.Checks
		w.open(w.keeper())
		if s := w.show(); !strings.Contains(s.Body, want) {
			t.Errorf("it says %q, want %q", s.Body, want)
		}
	}
}

// TestTrailersInTheText: the text ends with the trailers of the commit, so that a forge
// that makes a message of it has them; what is obeyed in a name is not obeyed there.
func TestTrailersInTheText(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := trailers.Change{Project: "shop", Intent: w.to.Intent, Task: attempt.Task, Requester: "ada, @all Closes #1", Claimed: "boss", Approver: "grace"}
	w.as("bot", "POST", "/repos/"+w.repo+"/contents/b.txt", object{
		"content": "Yg==", "message": "Mend it\n\n" + strings.Join(c.Lines(), "\n"), "branch": "main", "new_branch": "forge/task-2",
	}, nil)
	var got struct{ Commit struct{ ID string } }
	w.as("bot", "GET", "/repos/"+w.repo+"/branches/forge%2Ftask-2", nil, &got)
	w.in.Branch, w.in.Head = "forge/task-2", got.Commit.ID
	w.open(w.keeper())
	body := w.show().Body
	end := body[strings.LastIndex(strings.TrimSpace(body), "\n\n"):]
	said := trailers.Read(body)
	if len(said) != 1 || said[0].Task != c.Task || said[0].Approver != "grace" || said[0].Claimed != "boss" || !strings.HasPrefix(said[0].Requester, "ada, ") ||
		len(trailers.Read(end)) != 1 || obeyed.MatchString(end) {
		t.Errorf("it ends with %q", end)
	}
}
