package flow_test

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/pfl-forge/pfl-forge"
)

// pullPolicyOf reads pull=(forge), pull=(queue) or pull=(people,check,...): who
// merges, and the checks that have to pass; nil where changes are pushed.
func pullPolicyOf(list []string) *forge.PullPolicy {
	if len(list) == 0 {
		return nil
	}
	if list[0] == "queue" {
		return &forge.PullPolicy{Method: "queue", By: "forge", Branch: "forge/{task}", Checks: list[1:]}
	}
	return &forge.PullPolicy{Method: "squash", By: list[0], Branch: "forge/{task}", Checks: list[1:]}
}

// proposedOf fills in the result of a merge whose change is on its branch, put
// on the tip that the script names.
func proposedOf(out *forge.MergeResult, c *forge.Command, tip string) {
	tip = cmp.Or(tip, "main")
	task := string(c.Attempt.Task)
	out.Commit = fmt.Sprintf("%s@%s", c.Merge().Change.Head, tip)
	out.Parent, out.Tree, out.PatchID = tip, "tree-"+out.Commit, c.Merge().Change.PatchID
	out.Branch, out.BaseBranch = "forge/"+task, "main"
}

// look plays the gateway: it reports what is seen of a pull request, as the
// answer of a step or as a further result of the attempt that opened it. What a
// look does not name is not there: each shows everything.
func (s *script) look(t *testing.T, d *datadriven.TestData, task forge.TaskID, arg func(string) string, list func(string) []string) *forge.PullRequest {
	t.Helper()
	c := s.pulls[task]
	if c == nil {
		t.Fatalf("%s: %s has no pull request", d.Pos, task)
	}
	in := c.Pull()
	number, known := s.numbers[in.Branch]
	if !known {
		number = len(s.numbers) + 1
		s.numbers[in.Branch] = number
	}
	p := &forge.PullRequest{
		Number: number, URL: fmt.Sprintf("https://git.example.com/shop/web/pulls/%d", number),
		Branch: in.Branch, Base: cmp.Or(arg("base"), in.Base), Head: cmp.Or(arg("head"), in.Head),
		State: forge.PullState(cmp.Or(arg("state"), string(forge.PullOpen))), By: arg("by"), Blocked: spaced(arg("blocked")), Behind: d.HasArg("behind"),
		Seen: s.now,
	}
	if n := arg("number"); n != "" {
		p.Number, _ = strconv.Atoi(n)
	}
	if p.State == forge.PullMerged {
		p.MergeCommit = cmp.Or(arg("as"), "landed-"+string(task))
	}
	if v := arg("earlier"); v != "" {
		n, _ := strconv.Atoi(v)
		p.Seen = p.Seen.Add(-time.Duration(n) * time.Second)
	}
	p.Queue = queueOf(arg("queue"), in.Policy.Method == "queue")
	for _, name := range list("checks") { // build+ passed, build- failed, build? has not ended
		state := map[byte]forge.PullCheckState{'+': forge.PullCheckPassed, '-': forge.PullCheckFailed, '?': forge.PullCheckPending}[name[len(name)-1]]
		check := forge.PullCheck{Name: name[:len(name)-1], State: state}
		if state == forge.PullCheckFailed {
			check.Output = "FAIL"
		}
		p.Checks = append(p.Checks, check)
	}
	defer func() { // 7:words of the review that comes first
		for _, m := range list("remarks") {
			thread, words, _ := strings.Cut(m, ":")
			n, _ := strconv.ParseInt(thread, 10, 64)
			p.Reviews[0].Remarks = append(p.Reviews[0].Remarks, forge.PullRemark{Thread: n, Digest: words})
		}
	}()
	p.Reviews = append(reviewsOf(list("wishes"), forge.PullChangesRequested, p.Head), reviewsOf(list("approved"), forge.PullApproved, p.Head)...)
	return p
}

// queueOf reads in, in:2 (its place), or checks:x1, conflict:x2 or other:x3:
// why it was taken out, and what the forge calls that.
func queueOf(text string, known bool) *forge.PullQueue {
	if text == "" && !known {
		return nil
	}
	word, rest, _ := strings.Cut(text, ":")
	switch word {
	case "":
		return &forge.PullQueue{}
	case "in":
		n, _ := strconv.Atoi(rest)
		return &forge.PullQueue{In: true, Position: n}
	}
	return &forge.PullQueue{Out: rest, Cause: word, Reason: "it says so, by ada", Output: map[bool]string{true: "FAIL in the queue"}[word == "checks"]}
}

// reviewsOf reads person, or person:words, or person:words:commit.
func reviewsOf(list []string, v forge.PullVerdict, head string) (out []forge.PullReview) {
	for _, who := range list {
		parts := append(strings.Split(who, ":"), "", "")
		out = append(out, forge.PullReview{
			Person: parts[0], Account: parts[0] + "-1", May: true, Verdict: v, Text: spaced(parts[1]), Commit: cmp.Or(parts[2], head),
		})
	}
	return out
}

// looked sends a further look at a pull request.
func (s *script) looked(t *testing.T, d *datadriven.TestData, task forge.TaskID, arg func(string) string, list func(string) []string) {
	t.Helper()
	p := s.look(t, d, task, arg, list)
	r := forge.Result{To: s.pulls[task].To, Attempt: s.pulls[task].Attempt, Replica: "g1", Output: p}
	s.send(forge.Event{To: r.Machine(), Message: &r})
}

// describePull says what a command is to do with a pull request; empty of other commands.
func describePull(c *forge.Command) string {
	in := c.Pull()
	if in.Head == "" {
		if l := c.Merge().Landed; l != nil {
			return fmt.Sprintf(" proving %s, which is to be %s on %s", l.Commit, l.Head, l.Parent)
		}
		return ""
	}
	text := fmt.Sprintf(" %s at %s into %s, verified on %s", in.Branch, in.Head, in.Base, in.Parent)
	if in.Number > 0 {
		text += fmt.Sprintf(", number %d", in.Number)
	}
	for _, a := range in.Answers {
		text += fmt.Sprintf(", answering %d (%s, %s)", a.Thread, a.Digest, map[bool]string{true: "changed", false: "the same"}[a.Changed])
	}
	return text
}
