package demo

import (
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// parallel expects all intents to be there, and two of them implemented at the
// same time.
func (s *stage) parallel() {
	for _, id := range Intents() {
		_, known := s.views[forge.IntentID(id)]
		s.expect(known, "%s should have been submitted", id)
	}
	s.expect(len(s.views) == len(Intents()), "there should be %d intents, and there are %d", len(Intents()), len(s.views))
	s.expect(s.exists(".forge/state.yaml"), ".forge/state.yaml should be there")
	n := s.atOnce()
	s.expect(n >= 2, "intents should have been implemented at the same time")
	s.Fact = fmt.Sprintf("%d of %d were implemented at the same time", n, len(s.views))
}

// dependentTasks expects the last task of the handbook to be merged after the
// two that it depends on.
func (s *stage) dependentTasks() {
	v := s.done("handbook", 3)
	if len(v.Tasks) != 3 {
		return
	}
	last := v.Tasks[2]
	s.expect(len(last.DependsOn) == 2, "%s should depend on two tasks, and depends on %v", last.ID, last.DependsOn)
	for _, t := range v.Tasks[:2] {
		s.expect(s.before(t.Commit, last.Commit), "%s should have been merged before %s", t.ID, last.ID)
	}
	s.content("handbook/README.md", "# Handbook\n\n- [Usage](usage.md)\n- [Languages](languages.md)\n")
	s.Fact = fmt.Sprintf("%s after %s and %s", last.ID, v.Tasks[0].ID, v.Tasks[1].ID)
}

// fanOut expects a task for each file, and each file changed.
func (s *stage) fanOut() {
	const files = 4
	v := s.done("tidy-languages", files)
	var items []string
	for _, t := range v.Tasks {
		items = append(items, t.Item)
		s.expect(strings.HasPrefix(s.file(t.Item), "# texts in "), "%s should begin with a line that says what it is", t.Item)
	}
	s.Fact = strings.Join(items, ", ")
}

// rejected expects a review that rejects, and a second one that approves.
func (s *stage) rejected() {
	v := s.done("glossary", 1)
	s.content("GLOSSARY.txt", "farewell\ngreeting\nleave\nsalutation\n")
	if len(v.Reviews) != 2 {
		s.expect(false, "there should be two reviews, and there are %d", len(v.Reviews))
		return
	}
	first, second := v.Reviews[0], v.Reviews[1]
	s.expect(first.Verdict == forge.VerdictRejected, "the first review should have rejected, and is %s", first.Verdict)
	s.expect(second.Verdict == forge.VerdictApproved, "the second review should have approved, and is %s", second.Verdict)
	s.expect(s.exists(".forge/reviews/glossary-001-1.yaml"), ".forge/reviews/glossary-001-1.yaml should be there")
	s.Fact = "rejected: " + lastLine(strings.Join(first.Issues, "\n"))
}

// repaired expects verify to fail once, and the second attempt to pass.
func (s *stage) repaired() {
	v := s.done("language-spanish", 1)
	why := ruled(v, "verify-failed")
	s.expect(why != "", "verify should have failed at first")
	for i := range v.Tasks {
		s.expect(v.Tasks[i].Attempts == 2, "it should have taken 2 attempts, and took %d", v.Tasks[i].Attempts)
	}
	s.content("lang/es.txt", "hello=Hola\nbye=Adiós\n")
	s.Fact = strings.TrimSuffix(why, ": ...")
}

// conflict expects two changes of the same lines to be merged both, one of them
// made again.
func (s *stage) conflict() {
	var again []string
	for _, id := range []forge.IntentID{"changelog-names", "changelog-spanish"} {
		if v := s.done(id, 1); ruled(v, "reimplement") != "" {
			again = append(again, string(id))
		}
	}
	s.expect(len(again) > 0, "the two should have been in each other's way")
	text := s.file("CHANGELOG.md")
	for _, entry := range []string{"- Greets in Spanish.\n", "- The program gets a name.\n"} {
		n := strings.Count(text, entry)
		s.expect(n == 1, "CHANGELOG.md should have the line %q once, and has it %d times", entry, n)
	}
	s.Fact = "made again: " + strings.Join(again, ", ")
}

// question expects an intent that waits for an answer and has changed nothing.
func (s *stage) question() {
	v := s.waits("name-the-program", forge.WaitingClarification)
	s.expect(len(v.Intent.Clarifications) == 1, "there should be one question, and there are %d", len(v.Intent.Clarifications))
	for _, c := range v.Intent.Clarifications {
		s.Fact = "asks: " + c.Question
	}
	s.expect(!s.exists("NAME"), "there should be no file NAME yet")
}

// approval expects an intent that waits for an approval, with a plan, and has
// changed nothing.
func (s *stage) approval() {
	v := s.waits("remove-legacy", forge.WaitingApproval)
	s.expect(len(v.Tasks) == 1, "the plan should have one task, and has %d", len(v.Tasks))
	s.expect(s.exists("legacy/hello.sh"), "legacy/hello.sh should still be there")
	s.Fact = "needs your approval: " + v.Summary.Reason
}

// lastLine returns the last line of a text.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
