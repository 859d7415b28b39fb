package chat_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/document/asked"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/notify"
	"github.com/pfl-forge/pfl-forge/services/gateway/chat"
)

// TestParsePressRefuses: a button that is none of ours, or that was made up, is
// refused by its field.
func TestParsePressRefuses(t *testing.T) {
	const good = `{"p":"shop","i":"fix","do":"approve","s":"0a","h":"0b"}`
	if p, err := chat.ParsePress([]byte(good)); err != nil || p.String() != good {
		t.Fatalf("%v, %v", p, err)
	}
	for text, want := range map[string]string{
		"":                                       "not one of our buttons",
		"{}":                                     "p:",
		good + good:                              "not one of our buttons",
		strings.Replace(good, "shop", "../x", 1): "p:",
		strings.Replace(good, "fix", "a b", 1):   "i:",
		strings.Replace(good, "approve", "destroy", 1):                         "do:",
		strings.Replace(good, "0a", "", 1):                                     "s:",
		strings.Replace(good, "0a", "0A", 1):                                   "s:",
		strings.Replace(good, "0b", strings.Repeat("0", 65), 1):                "h:",
		strings.Replace(good, `,"h":"0b"`, "", 1):                              "h:",
		strings.Replace(good, "approve", "reject", 1):                          "h:",
		strings.Replace(good, "}", `,"q":1}`, 1):                               "q:",
		strings.Replace(good, "}", `,"x":1}`, 1):                               "not one of our buttons",
		`{"p":"shop","i":"fix","do":"answer","s":"0a","q":-1}`:                 "q:",
		strings.Replace(good, "}", `,"s":"`+strings.Repeat("0", 3000)+`"}`, 1): "more than 2000 bytes",
	} {
		if _, err := chat.ParsePress([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %v, want %s", text, err, want)
		}
	}
}

// FuzzPress: a press that is read is written as it was, and is never longer
// than a button can carry.
func FuzzPress(f *testing.F) {
	f.Add(`{"p":"shop","i":"fix","do":"approve","s":"0a","h":"0b"}`)
	f.Add(`{"p":"shop","i":"fix","do":"answer","s":"0a","q":3,"c":1}`)
	f.Add(`{"p":"shop","i":"fix","do":"cancel","s":"0a"} `)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := chat.ParsePress([]byte(text))
		if err != nil {
			return
		}
		again, err := chat.ParsePress([]byte(p.String()))
		if err != nil || *again != *p {
			t.Errorf("%q is %+v, and then %+v, %v", text, p, again, err)
		}
	})
}

// detail returns an intent in a state.
func detail(status forge.Status, w forge.Waiting) *document.Detail {
	d := &document.Detail{}
	d.Project, d.Intent, d.Title, d.Status, d.Waiting, d.Plan, d.Run, d.Requester = "shop", "fix", "Fix it", status, w, "0123456789abcdef", 1, "ada"
	d.Asked = []asked.Part{{Name: "title", Texts: []string{d.Title}}}
	return d
}

// buttons returns the labels of a notice's buttons.
func buttons(n *chat.Notice) string {
	var list []string
	for _, b := range n.Buttons {
		list = append(list, b.Label)
	}
	return strings.Join(list, ", ")
}

// TestNoticeOf: each state has its words and its buttons, and is news or not.
func TestNoticeOf(t *testing.T) {
	for _, one := range []struct {
		status  forge.Status
		waiting forge.Waiting
		state   string
		kind    notify.Kind
		buttons string
	}{
		{forge.StatusProposed, forge.WaitingApproval, "waits for approval", notify.KindWaiting, "Let it be analyzed, Reject"},
		{forge.StatusExecuting, forge.WaitingApproval, "waits for approval", notify.KindWaiting, "Ask for changes, Reject"},
		{forge.StatusExecuting, forge.WaitingFailed, "failed, and waits for a person", notify.KindWaiting, "Run again, Reject"},
		{forge.StatusExecuting, forge.WaitingBudget, "is out of budget", notify.KindBudget, "Run again, Cancel"},
		{forge.StatusExecuting, forge.WaitingPull, "waits at its pull request", notify.KindWaiting, "Run again, Cancel"},
		{forge.StatusExecuting, forge.WaitingPaused, "is paused", "", "Resume, Cancel"},
		{forge.StatusExecuting, "", "is executing", "", "Cancel"},
		{forge.StatusDone, "", "is done", notify.KindDone, ""},
		{forge.StatusBlocked, "", "failed", notify.KindFailed, ""},
		{forge.StatusError, "", "failed", notify.KindFailed, ""},
		{forge.StatusCancelled, "", "is cancelled", "", ""},
	} {
		n := chat.NoticeOf(detail(one.status, one.waiting), "https://forge.example.com", chat.Words{})
		if n.State != one.state || n.Kind != one.kind || buttons(&n) != one.buttons || n.Open == one.status.Ended() {
			t.Errorf("%s %s: %+v with %s", one.status, one.waiting, n, buttons(&n))
		}
		if n.Link != "https://forge.example.com/console/projects/shop/intents/fix" {
			t.Errorf("the link is %s", n.Link)
		}
	}
}

// TestChangesAreApprovedWhereTheyAreShown: a plan has a button to approve it,
// and changes that were made have none; nor has an answer that approves.
func TestChangesAreApprovedWhereTheyAreShown(t *testing.T) {
	d := planned()
	n := chat.NoticeOf(d, "", chat.Words{})
	if got := buttons(&n); got != "Approve, Ask for changes, Reject" || n.Buttons[0].Press.Plan != d.Plan {
		t.Errorf("a plan has %s", got)
	}
	d.Status = forge.StatusExecuting
	n = chat.NoticeOf(d, "", chat.Words{})
	if got := buttons(&n); got != "Ask for changes, Reject" || !strings.Contains(strings.Join(n.Lines, "\n"), "in the console") {
		t.Errorf("changes have %s: %q", got, n.Lines)
	}
	d.Waiting, d.Questions = forge.WaitingClarification, []document.Clarification{{Question: "Which?", SuggestedAnswers: []string{"approve", "reject"}}}
	n = chat.NoticeOf(d, "", chat.Words{})
	if got := buttons(&n); got != "reject, Answer 1…, Reject" {
		t.Errorf("a dispute has %s", got)
	}
}

// planned returns an intent whose plan waits for approval.
func planned() *document.Detail {
	d := detail(forge.StatusProposed, forge.WaitingApproval)
	d.Asked, d.Body, d.Risk = nil, "Because it is broken.", forge.RiskHigh
	d.PlanTasks = []document.Task{{
		Title: "mend", Plan: "With care.", Steps: []string{"look", "act"}, Requirements: []string{"it holds"}, Files: []string{"a.go"},
		DependsOn: []forge.TaskID{"first"},
		Write:     &document.Write{Path: "b.go", Content: "package b\n"},
	}}
	d.Parts = []document.Part{{ID: "part", Title: "Its part", Body: "To be done.", Risk: forge.RiskLow, DependsOn: []forge.IntentID{"other"}}}
	return d
}

// TestOnlyWhatIsShownIsApproved: a notice has a button that approves only if it
// says all that the hash is of; else it says where that is.
func TestOnlyWhatIsShownIsApproved(t *testing.T) {
	approves := func(n *chat.Notice) bool {
		return slices.ContainsFunc(n.Buttons, func(b chat.Button) bool { return b.Press.Do == chat.Approve })
	}
	words := chat.Words{Secrets: redact.New("a-secret-of-ours")}
	n := chat.NoticeOf(planned(), "", words)
	all := strings.Join(n.Lines, "\n")
	for _, part := range []string{
		"Fix it", "Because it is broken.", "Risk: high", "Task 1: mend", "With care.", "1. look", "2. act", "Has to hold, 1: it holds", "Files: a.go",
		"After: first", "Writes b.go:", "package b", "Child intent part: Its part", "To be done.", "Risk: low", "After: other",
	} {
		if !approves(&n) || !strings.Contains(all, part) {
			t.Errorf("a plan with %q is shown as %q, with %s", part, n.Lines, buttons(&n))
		}
	}
	text := func() *document.Detail {
		d := detail(forge.StatusProposed, forge.WaitingApproval)
		d.Body = "short"
		d.Asked = append(d.Asked, asked.Part{Name: "body", Texts: []string{"short"}})
		return d
	}
	many := strings.Repeat("line\n", 2000)
	for what, d := range map[string]*document.Detail{
		"a long body":      with(planned(), func(d *document.Detail) { d.Body = many }),
		"a long line":      with(planned(), func(d *document.Detail) { d.Body = strings.Repeat("x", 1001) }),
		"spelled out":      with(planned(), func(d *document.Detail) { d.Body = strings.Repeat(strings.Repeat("&", 190)+"\n", 6) }),
		"many tasks":       with(planned(), func(d *document.Detail) { d.PlanTasks = slices.Repeat(d.PlanTasks, 100) }),
		"a long step":      with(planned(), func(d *document.Detail) { d.PlanTasks[0].Steps[1] = many }),
		"a long file":      with(planned(), func(d *document.Detail) { d.PlanTasks[0].Write.Content = many }),
		"a long part":      with(planned(), func(d *document.Detail) { d.Parts[0].Body = many }),
		"a secret":         with(planned(), func(d *document.Detail) { d.PlanTasks[0].Plan = "a-secret-of-ours" }),
		"a veiled secret":  with(planned(), func(d *document.Detail) { d.PlanTasks[0].Plan = "a-secret\u200b-of-ours" }),
		"a plan cut":       with(planned(), func(d *document.Detail) { d.Truncated = []document.Truncated{{Field: "work[0].plan"}} }),
		"a part cut":       with(planned(), func(d *document.Detail) { d.Truncated = []document.Truncated{{Field: "parts"}} }),
		"a goal":           with(planned(), func(d *document.Detail) { d.Goal = &document.GoalProgress{} }),
		"much that hides":  with(planned(), func(d *document.Detail) { d.Body = strings.Repeat("<!-- "+strings.Repeat("&", 180)+" -->\n", 5) }),
		"a long text":      with(text(), func(d *document.Detail) { d.Asked[1].Texts[0] = many }),
		"a secret setting": with(text(), func(d *document.Detail) { d.Asked[1].Texts[0] = "a-secret-of-ours" }),
		"nothing to see":   with(text(), func(d *document.Detail) { d.Asked = nil }),
	} {
		n := chat.NoticeOf(d, "", words)
		leads := strings.Contains(n.Lines[len(n.Lines)-1], "`pfl-forge show fix`")
		if approves(&n) || len(n.Lines) > 30 || !leads || strings.Contains(strings.Join(n.Lines, ""), "a-secret") {
			t.Errorf("%s: %s of %q", what, buttons(&n), n.Lines)
		}
	}
	// What is left of a former plan is not approved with a text.
	n = chat.NoticeOf(with(text(), func(d *document.Detail) { d.PlanTasks = planned().PlanTasks }), "", words)
	if got := buttons(&n); got != "Let it be analyzed, Reject" || strings.Contains(strings.Join(n.Lines, "\n"), "mend") {
		t.Errorf("a text behind a former plan has %s of %q", got, n.Lines)
	}
	// The same without what is too much.
	if n := chat.NoticeOf(text(), "", words); !approves(&n) || !slices.Contains(n.Lines, "short") {
		t.Errorf("a text has %s of %q", buttons(&n), n.Lines)
	}
	n = chat.NoticeOf(with(planned(), func(d *document.Detail) { d.Body = "\u202ese\x1ben" }), "", words)
	if !approves(&n) || !slices.Contains(n.Lines, "<U+202E>se<U+001B>en") {
		t.Errorf("an invisible character has %s of %q", buttons(&n), n.Lines)
	}
}

// with returns an intent after a change of it.
func with(d *document.Detail, change func(*document.Detail)) *document.Detail {
	change(d)
	return d
}

// TestOnlyQuestionsThatAreShownHavePicks: who sees the beginning of a question
// types an answer, and presses none.
func TestOnlyQuestionsThatAreShownHavePicks(t *testing.T) {
	d := detail(forge.StatusExecuting, forge.WaitingClarification)
	for question, want := range map[string]string{
		strings.Repeat("q", 1000): "yes, Answer 1…, Reject", strings.Repeat("q", 1001): "Answer 1…, Reject", "a-secret-of-ours?": "Answer 1…, Reject",
	} {
		d.Questions = []document.Clarification{{Question: question, SuggestedAnswers: []string{"yes"}}}
		n := chat.NoticeOf(d, "", chat.Words{Secrets: redact.New("a-secret-of-ours")})
		if got := buttons(&n); got != want {
			t.Errorf("a question of %d has %s, want %s", len(question), got, want)
		}
	}
}

// TestHiddenTextIsTold: while a request waits for approval, its notice lists
// what a page does not show of it, and all that its hash is of besides.
func TestHiddenTextIsTold(t *testing.T) {
	d := detail(forge.StatusProposed, forge.WaitingApproval)
	d.Body = "Do it.\n\n<!-- obey\nme a-secret-of-ours -->" + strings.Repeat("\n\n![x](y)", 20)
	d.Work.Asked = []asked.Part{{Name: "title", Texts: []string{d.Title}}, {Name: "body", Texts: []string{d.Body}}, {Name: "agent", Texts: []string{"other"}}}
	n := chat.NoticeOf(d, "", chat.Words{Secrets: redact.New("a-secret-of-ours")})
	hidden := strings.Join(n.Hidden, "\n")
	if len(n.Hidden) != 7 || !strings.Contains(hidden, "line 3, HTML comment: <!-- obey me ") || strings.Contains(hidden, "a-secret") ||
		!strings.Contains(hidden, "… and 7 more parts") || !slices.Contains(n.Lines, "Agent: other") {
		t.Errorf("hidden are %q, and the lines %q", n.Hidden, n.Lines)
	}
	before := n.Mark()
	d.Waiting, d.Status = "", forge.StatusExecuting
	if n := chat.NoticeOf(d, "", chat.Words{}); len(n.Hidden) > 0 || n.Mark() == before {
		t.Errorf("of what is approved %q is told", n.Hidden)
	}
}

// TestSeen: all that a person decides about is in the state that a button
// carries, and a task beside it is not.
func TestSeen(t *testing.T) {
	d := detail(forge.StatusExecuting, forge.WaitingClarification)
	d.Questions = []document.Clarification{{Question: "Which?", SuggestedAnswers: []string{"blue"}}}
	before := chat.Seen(d)
	for what, change := range map[string]func(*document.Detail){
		"the status": func(d *document.Detail) { d.Status = forge.StatusProposed }, "the wait": func(d *document.Detail) { d.Waiting = forge.WaitingFailed },
		"the plan": func(d *document.Detail) { d.Plan = "1" }, "the run": func(d *document.Detail) { d.Run++ },
		"the question": func(d *document.Detail) {
			d.Questions = []document.Clarification{{Question: "How?", SuggestedAnswers: []string{"blue"}}}
		},
		"the answers": func(d *document.Detail) {
			d.Questions = []document.Clarification{{Question: "Which?", SuggestedAnswers: []string{"red"}}}
		},
	} {
		other := *d
		if change(&other); chat.Seen(&other) == before {
			t.Errorf("%s is no part of the state", what)
		}
	}
	d.TaskList = []document.TaskState{{Title: "another"}}
	if chat.Seen(d) != before {
		t.Error("a task is a part of the state")
	}
}

// TestNoticesAreBounded: whatever an intent holds, its notice fits into a
// message, has no secret in it, and each of its buttons is read again.
func TestNoticesAreBounded(t *testing.T) {
	words := chat.Words{Secrets: redact.New("a-secret-of-ours")}
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Repeat(rapid.SampledFrom([]string{"x", "<!channel>", "\u202e", "\n", "a-secret-of-ours ", "é", "\x1b[2J", "&"}).Draw(t, "piece"),
			rapid.SampledFrom([]int{0, 1, 30, 5000}).Draw(t, "n"))
	})
	rapid.Check(t, func(t *rapid.T) {
		d := detail(forge.StatusExecuting, forge.WaitingClarification)
		d.Title, d.Reason, d.Requester = text.Draw(t, "title"), text.Draw(t, "reason"), text.Draw(t, "requester")
		for range rapid.IntRange(0, 12).Draw(t, "questions") {
			d.Questions = append(d.Questions, document.Clarification{
				Question: text.Draw(t, "question"), SuggestedAnswers: rapid.SliceOfN(text, 0, 6).Draw(t, "answers"),
			})
			d.TaskList = append(d.TaskList, document.TaskState{Title: text.Draw(t, "task")})
		}
		n := chat.NoticeOf(d, "", words)
		all := strings.Join(append([]string{n.Title, n.State}, n.Lines...), "\n")
		if len(n.Buttons) > 20 || len([]rune(n.Title)) > 200 || strings.ContainsAny(all, "\x1b\u202e") || strings.Contains(all, "a-secret-of-ours") {
			t.Errorf("the notice is %+v", n)
		}
		for _, b := range n.Buttons {
			if p, err := chat.ParsePress([]byte(b.Press.String())); err != nil || !n.Offers(p) || len([]rune(b.Label)) > 70 {
				t.Errorf("a button carries %s: %v", &b.Press, err)
			}
		}
	})
}
