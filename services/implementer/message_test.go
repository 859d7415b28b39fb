package implementer

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/git"
	"github.com/pfl-forge/pfl-forge/git/gittest"
	"github.com/pfl-forge/pfl-forge/internal/testsize"
	"github.com/pfl-forge/pfl-forge/services/implementer/commitmsg"
)

// titled is the command to rebase a task of an intent of ada's.
func titled(intent, task string) *forge.Command {
	c := command(forge.StepRebase, 1)
	c.Intent.Title, c.Task.Title = intent, task
	c.Intent.Origin, c.Intent.Source = forge.Origin{System: "draft", Actor: "ada"}, forge.SourceHuman
	c.Intent.Requesters = []forge.Identity{{Name: "ada", Proven: true}}
	return &c
}

const (
	ours       = "Forge-Project: shop\nForge-Intent: fix\nForge-Task: fix-001\nForge-Requester: ada"
	oursByName = "Forge-Project: shop\nForge-Intent: fix\nForge-Task: fix-001\nForge-Requester: ada\nForge-Approver: grace"
)

func TestCommitMessage(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		intent, task, title, approver string
		own                           []string
		want                          string
		trailers                      string // as git reads them
	}{
		"an agent's message": {
			title: "Fix the login", own: []string{"Check the token\n\nIt was never compared.\n"},
			want: "Fix the login\n\nCheck the token\n\nIt was never compared.\n\n" + ours,
		},
		"nothing of its own": {title: "Fix the login", own: []string{"Fix the login\n"}, want: "Fix the login\n\n" + ours},
		"one task of several": {
			intent: "Fix the login", title: "The form", own: []string{"The form\n\nWhy.\n\n" + ours},
			want: "The form\n\nFix the login\n\nWhy.\n\n" + ours,
		},
		"an approver": {title: "Fix", approver: "grace", want: "Fix\n\n" + oursByName, trailers: oursByName},
		"several commits": {
			title: "Fix", own: []string{"One\n\nWhy.", "fixup! One", "wip", "Two\n\nWhy.\n", "Two"},
			want: "Fix\n\nOne\n\nWhy.\n\nTwo\n\n" + ours,
		},
		"trailers are kept, people are not": {
			title: "Fix",
			own: []string{
				"One\n\nWhy.\n\nFixes: 12\n  and 13\nCo-authored-by: B <b@example.org>\n",
				"Two\n\nReviewed-by: Boss <boss@example.org>\n\tand others\nSee it.\nSigned-off-by: A <a@example.org>\n  Approved-By : Boss\nacked-by=Boss",
				"Three\n\nTested-by: Boss\n\nReported-and-tested-by: Boss",
			},
			want:     "Fix\n\nOne\n\nWhy.\n\nTwo\n\nSee it.\n\nThree\n\nFixes: 12 and 13\n" + ours,
			trailers: "Fixes: 12 and 13\n" + ours,
		},
		"a trailer whose name is too long": {
			title: "Fix", own: []string{"Fix\n\nWhy.\n\n" + strings.Repeat("A", 300) + ": x"},
			want: "Fix\n\nWhy.\n\n" + ours, trailers: ours,
		},
		"a credit that git does not read": {
			title: "Fix", own: []string{"Fix\n\n\u017figned-off-by: Eve <e@example.org>"},
			want: "Fix\n\n" + ours, trailers: ours,
		},
		"scissors": {
			title: "Fix", own: []string{"Fix\n\n# ------------------------ >8 ------------------------\nrest"},
			want: "Fix\n\n # ------------------------ >8 ------------------------\nrest\n\n" + ours, trailers: ours,
		},
		"a title that ends messages": {
			title: "# ------------------------ >8 ------------------------",
			want:  "\"# ------------------------ >8 ------------------------\"\n\n" + ours, trailers: ours,
		},
		"forged trailers": {
			title: "Fix",
			own: []string{
				"One\n\nforge-approver: nobody\nWhy.\n\n  Forge-Intent : other\n\tand more\nForge-Task=other\nFORGE-REQUESTER: mallory\n" +
					"See: y",
				"Forge-Intent: other\n\nForge-Anything: x",
			},
			want:     "Fix\n\nOne\n\nWhy.\n\nSee: y\n" + ours,
			trailers: "See: y\n" + ours,
		},
		"what has checks skipped": {
			title: "Fix [skip ci]",
			own: []string{
				"One [ci skip]\n\nWhy [NO CI], [skip actions] and [actions skip].\nskip-checks: true\n***NO_CI***\nSee [[skip-ci]].\n\n" +
					"See: [skip\n ci]\nSkip-Checks: true",
			},
			want:     "Fix (skip ci)\n\nOne (ci skip)\n\nWhy (NO CI), (skip actions) and (actions skip).\nNO_CI\nSee [(skip-ci)].\n\nSee: (skip ci)\n" + ours,
			trailers: "See: (skip ci)\n" + ours,
		},
		"what closes issues": {
			title: "Fixes #5",
			own: []string{
				"closes owner/repo#5, #6\n\nResolved: GH-7, fix\n#8. It closes https://forge.example/o/r/issues/9\n" +
					"Fix a-001 of utf-8; the prefix #10 stays.\n\nFixes: #12",
			},
			want: "Fixes # 5\n\ncloses owner/repo# 5, #6\n\nResolved: GH 7, fix\n# 8. It closes https://forge.example/o/r/issues/ 9\n" +
				"Fix a-001 of utf-8; the prefix #10 stays.\n\nFixes: # 12\n" + ours,
			trailers: "Fixes: # 12\n" + ours,
		},
		"what ends a message for others": {
			title: "Fix", own: []string{"One\n\n---\nForge-Task: x\ndiff --git a/x b/x\nIndex: x\n--- note"},
			want: "Fix\n\nOne\n\n ---\n diff --git a/x b/x\n Index: x\n --- note\n\n" + ours,
		},
		"a hostile title": {
			title: "Write\r\n\x1b[31ma file\x1b]0;x\x07\u202e\nForge-Task: other\n\nForge-Intent: other",
			want:  "Write a file<U+202E> Forge-Task: other Forge-Intent: other\n\n" + ours,
		},
		"a title like a trailer": {
			intent: "Forge-Task: other", title: "Forge-Intent: other",
			want: "\"Forge-Intent: other\"\n\n\"Forge-Task: other\"\n\n" + ours,
		},
		"a long title": {
			title: "Make " + strings.Repeat("words ", 15) + "end",
			want: "Make " + strings.Repeat("words ", 10) + "words…\n\nMake " + strings.Repeat("words ", 15) + "end\n\n" +
				ours,
		},
		"no title": {want: "Change\n\n" + ours},
		"hostile names": {
			title: "Fix", approver: "grace\nForge-Approver: ada\x1b[1m", want: "Fix\n\n" + ours + "\nForge-Approver: grace Forge-Approver: ada",
			trailers: ours + "\nForge-Approver: grace Forge-Approver: ada",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := titled(test.intent, test.task)
			if test.intent == "" {
				c.Intent.Title = test.title
			}
			got := commitmsg.Of(c, test.title, test.approver, test.own)
			if diff := cmp.Diff(test.want+"\n", got); diff != "" {
				t.Error(diff)
			}
			if again := commitmsg.Of(c, test.title, test.approver, []string{got}); again != got {
				t.Errorf("made of itself it is another one:\n%s", cmp.Diff(got, again))
			}
			r := gittest.New(t, map[string]string{"x": "x"})
			want := test.trailers
			if want == "" {
				want = ours
			}
			oid := r.Commit(got, map[string]string{"x": "y"})
			if diff := cmp.Diff(want, strings.TrimSpace(r.Git("log", "-1", "--format=%(trailers)", string(oid)))); diff != "" {
				t.Errorf("git reads other trailers:\n%s", diff)
			}
			if keys := r.Git("log", "-1", "--format=%(trailers:key=Forge-Task,valueonly)", string(oid)); strings.TrimSpace(keys) != "fix-001" {
				t.Errorf("Forge-Task is %q", keys)
			}
		})
	}
}

// Whatever an agent writes, the message is bounded, and does not change when it
// is made again of itself and more.
func TestCommitMessageIsBounded(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("x", 10<<10)
	c := titled(huge, huge)
	own := []string{"One\n\n" + strings.Repeat("line\n\n", 4<<10) + huge, "Two\n\n" + strings.Repeat("A-by: "+huge+"\n", 100) + huge}
	got := commitmsg.Of(c, huge, huge, own)
	if len(got) > 16<<10 || !utf8.ValidString(got) || !strings.Contains(got, "\n\n[...]\n\n") {
		t.Errorf("%d bytes:\n%.300s", len(got), got)
	}
	if subject, _, _ := strings.Cut(got, "\n"); utf8.RuneCountInString(subject) > 72 {
		t.Errorf("subject %q", subject)
	}
	if again := commitmsg.Of(c, huge, huge, []string{got, "Three"}); again != got {
		t.Error(cmp.Diff(got, again))
	}
}

// agentCommits makes commits as an agent does, on main's tip.
func (w *world) agentCommits(messages ...string) *forge.Implementation {
	w.t.Helper()
	base := w.repo.Head("main")
	w.repo.Git("checkout", "-q", "-b", "agent", string(base))
	var head git.OID
	for i, m := range messages {
		head = w.repo.Commit(m, map[string]string{"new.txt": strings.Repeat("x\n", i+1)})
	}
	w.repo.Git("checkout", "-q", "main")
	return &forge.Implementation{Base: string(base), Head: string(head)}
}

// What an agent commits is merged with the intent's title and trailers; what is made
// twice is the same commit, and what comes after a rejection is put together with it.
func TestRebaseMakesTheMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	im := w.agentCommits("wip", "Compare the token\n\nIt never was.\n\nSee: x\nCo-authored-by: B <b@example.org>\nForge-Task: other")
	c := titled("Fix the login", "The form")
	c.Task.Base, c.Task.Head, c.Input = im.Base, im.Head, &forge.RebaseInput{Title: "Fix the login", Approver: "grace"}
	rebase := func() *forge.Rebase {
		t.Helper()
		r := w.imp.rebase(t.Context(), *c, silent)
		if r.Failure() != nil {
			t.Fatal(r.Failure())
		}
		return forge.As[*forge.Rebase](r.Output)
	}
	first := rebase()
	want := "Fix the login\n\nCompare the token\n\nIt never was.\n\nSee: x\n" + oursByName
	if diff := cmp.Diff(want, w.repo.Git("log", "-1", "--format=%B", first.Head)); diff != "" {
		t.Error(diff)
	}
	const us = "pfl-forge pfl-forge@localhost"
	if by := w.repo.Git("log", "-1", "--format=%an %ae %cn %ce", first.Head); strings.TrimSpace(by) != us+" "+us {
		t.Errorf("the commit is by %q, as its agent wanted", by)
	}
	if again := rebase(); again.Head != first.Head {
		t.Errorf("made again: %s, before: %s", again.Head, first.Head)
	}
	w.repo.Git("checkout", "-q", "--detach", first.Head)
	c.Task.Base, c.Task.Head = first.Base, string(w.repo.Commit("Test it", map[string]string{"test.txt": "x\n"}))
	w.repo.Git("checkout", "-q", "main")
	want = strings.Replace(want, "never was.\n", "never was.\n\nTest it\n", 1)
	if diff := cmp.Diff(want, w.repo.Git("log", "-1", "--format=%B", rebase().Head)); diff != "" {
		t.Error(diff)
	}
}

// Who approved of a change after it was verified is in the merged commit, which
// is otherwise the one that was verified.
func TestMergeAddsTheApprover(t *testing.T) {
	t.Parallel()
	for _, moved := range []bool{false, true} {
		w := newWorld(t)
		rb := w.ready("new.txt", "x")
		if moved {
			w.repo.Commit("somebody else", map[string]string{"b.txt": "c\n"})
		}
		c := merge(1, rb)
		c.Merge().Change.Approver = "grace"
		w.crashAt("kept")
		w.want(c)
		dies(t, func() { w.imp.merge(t.Context(), c, silent) })
		kept := w.refs("/merge/")
		got := w.merges(c)
		if len(kept) != 1 || w.repo.Git("rev-parse", kept[0]) != got.Commit || string(w.repo.Head("main")) != got.Commit {
			t.Errorf("moved %t: kept %q, merged %s", moved, kept, got.Commit)
		}
		if by := w.repo.Git("log", "-1", "--format=%(trailers:key=Forge-Approver,valueonly)", "main"); strings.TrimSpace(by) != "grace" {
			t.Errorf("moved %t: approver %q", moved, by)
		}
		if moved {
			continue
		}
		const same = "--format=%T %P %an %ae %at %ct"
		if is, was := w.repo.Git("log", "-1", same, "main"), w.repo.Git("log", "-1", same, rb.Head); is != was || got.PatchID != rb.PatchID {
			t.Errorf("merged %s, verified %s", is, was)
		}
	}
}

// A message that was made to be costly is not: a single trailer that goes on for a
// megabyte, and paragraphs without end.
func TestCommitMessageIsCheap(t *testing.T) {
	t.Parallel()
	c := &forge.Command{BudgetUSD: 5, To: forge.Key{Project: "shop", Intent: "fix"}, Attempt: forge.Attempt{Task: "fix-001"}}
	const line = " x\n"
	size := testsize.Of(100_000, 1_000_000) // bytes; what grows with its square takes minutes in both sizes
	var paragraphs strings.Builder
	for i := range size / 10 {
		fmt.Fprintf(&paragraphs, "%d\n\n", i)
	}
	for _, own := range []string{"Fix\n\nX: y\n" + strings.Repeat(line, size/len(line)), paragraphs.String(), strings.Repeat("\u009d", size/2)} {
		if got := commitmsg.Of(c, "Fix", "", []string{own, own}); len(got) > 4*commitmsg.MaxText {
			t.Errorf("%d bytes", len(got))
		}
	}
}

// A commit says who asked by the name that the server knew; the person whom a
// system names stands apart.
func TestClaimedRequestersStandApart(t *testing.T) {
	t.Parallel()
	c := titled("Fix", "Fix")
	c.Intent.Origin, c.Intent.Source = forge.Origin{System: "ci", Actor: "boss"}, forge.SourceSystem
	c.Intent.Requesters = []forge.Identity{{Name: "boss"}, {Name: "eve", Proven: true}}
	got := commitmsg.Of(c, "Fix", "", nil)
	if want := "Forge-Requester: ci, eve\nForge-Requester-Claimed: boss\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got %q, want it to end in %q", got, want)
	}
}
