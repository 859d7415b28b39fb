package chat

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/document"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/messages"
	"github.com/pfl-forge/pfl-forge/notify"
)

// Notice has all that a message says about an intent: texts without any markup,
// which a chat has to show as text.
type Notice struct {
	Key forge.Key
	// Kind names the news in it; empty for a state that begins no message.
	Kind notify.Kind
	// Title and State are a line each: words of others, and how the intent is.
	Title, State string
	// Hidden are lines about parts of a request that a page of a forge does not
	// show, while it waits for approval; each is bounded.
	Hidden []string
	// Lines are further ones, each bounded. While a button approves something,
	// a chat shows all of Hidden and Lines: they fit by their size.
	Lines []string
	// Link is the address of the page with all of it; empty for none.
	Link string
	// Buttons are the decisions that people can take now.
	Buttons []Button
	// Seen stands for the state that is shown, and Open says that more is expected.
	Seen string
	Open bool
}

// Button is a decision that a person can take.
type Button struct {
	// Label is a word or two, or an answer that was suggested.
	Label string
	// Press is carried by the button.
	Press Press
	// Confirm is asked before it counts; empty for nothing.
	Confirm string
	// Good and Bad mark what lets something through and what ends something.
	Good, Bad bool
}

// Bounds of a notice, in characters.
const (
	maxTitle    = 200
	maxReason   = 500
	maxQuestion = 1000
	maxLabel    = 70
	maxTasks    = 10
	// maxHidden is how many hidden parts are shown, and maxPart how much of each.
	maxHidden = 5
	maxPart   = 200
	// maxAsked is how many questions have buttons, and maxPicks how many suggested answers of each.
	maxAsked = 3
	maxPicks = 4
)

// Words makes the words of others safe to leave: without secrets, on one line, of
// a bounded length, with each character that a reader would not see spelled out.
type Words struct {
	// Secrets are taken out; nil for none.
	Secrets *redact.Redactor
}

// line returns words as one line, cut to a number of characters. Secrets are
// taken out first: a cut could hide the shape of one.
func (w Words) line(s string, most int) string {
	if w.Secrets != nil {
		s = w.Secrets.Text(s)
	}
	return term.Short(term.Visible(term.Line(s)), most)
}

// fits reports whether line would show all of the words.
func (w Words) fits(s string, most int) bool {
	return w.line(s, most) == w.line(s, math.MaxInt) && (w.Secrets == nil || w.Secrets.Text(s) == s)
}

// Text returns the line that stands for the whole notice, where a chat shows one.
func (n *Notice) Text() string {
	return fmt.Sprintf("%s/%s %s: %s", n.Key.Project, n.Key.Intent, n.State, n.Title)
}

// Mark returns the mark for the message of the notice. Its Text differs
// whenever anything of the notice does.
func (n *Notice) Mark() Mark {
	data, err := json.Marshal(n)
	if err != nil {
		panic(err) // it has only texts and numbers
	}
	return Mark{Key: n.Key, Seen: n.Seen, Text: digest(string(data)), Open: n.Open}
}

// Seen returns a digest of the state of an intent as a person decides about it:
// whatever of it changes makes another decision of the same button. Tasks that go
// on beside it are no part of it, since a message would be stale most of the time.
func Seen(d *document.Detail) string {
	parts := []string{string(d.Status), string(d.Waiting), d.Plan, strconv.Itoa(d.Run)}
	for i, q := range d.Questions {
		if q.Answer == nil {
			parts = append(parts, strconv.Itoa(i), q.Question)
			parts = append(parts, q.SuggestedAnswers...)
		}
	}
	return digest(parts...)
}

// digest returns a short name for texts.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// NoticeOf returns the notice of an intent as it is now. link begins the addresses of the console.
func NoticeOf(d *document.Detail, link string, words Words) Notice {
	n := Notice{
		Key: forge.Key{Project: d.Project, Intent: d.Intent}, Kind: kindOf(d), Title: words.line(d.Title, maxTitle), State: state(d), Seen: Seen(d),
		Open: !d.Status.Ended() || d.Waiting != "",
	}
	if link != "" {
		n.Link = link + "/console/projects/" + string(d.Project) + "/intents/" + string(d.Intent)
	}
	if later := d.Text != nil && d.Text.Later != ""; d.Reason != "" && (later || d.Waiting != "" || d.Status.Ended()) {
		n.Lines = append(n.Lines, words.line(d.Reason, maxReason))
	}
	n.ask(d, words)
	n.describe(d, words)
	n.offer(d, words)
	return n
}

// kindOf returns the kind of news that the state of an intent is; empty for none.
func kindOf(d *document.Detail) notify.Kind {
	switch {
	case d.Status == forge.StatusBlocked, d.Status == forge.StatusError:
		return notify.KindFailed
	case d.Status == forge.StatusDone:
		return notify.KindDone
	case d.Status.Ended():
		return ""
	}
	return notify.KindOfWait(d.Waiting, d.Reason)
}

// waits has the words for each wait.
var waits = map[forge.Waiting]string{
	forge.WaitingApproval: "waits for approval", forge.WaitingClarification: "waits for an answer", forge.WaitingFailed: "failed, and waits for a person",
	forge.WaitingDirty: "waits: the checkout has changes of its own", forge.WaitingBase: "waits for its base branch",
	forge.WaitingBudget: "is out of budget", forge.WaitingPull: "waits at its pull request", forge.WaitingPaused: "is paused",
}

// state returns how an intent is, in a few words.
func state(d *document.Detail) string {
	if text := waits[d.Waiting]; text != "" {
		return text
	}
	switch d.Status {
	case forge.StatusDone:
		return "is done"
	case forge.StatusBlocked, forge.StatusError:
		return "failed"
	default:
		return "is " + string(d.Status)
	}
}

// describe adds who asked, and the tasks. What waits for approval is shown
// instead of them, by propose.
func (n *Notice) describe(d *document.Detail, words Words) {
	if by := d.AskedBy(); by != "" {
		n.Lines = append(n.Lines, "Asked for by "+words.line(by, maxTitle))
	}
	if d.Waiting == forge.WaitingApproval && !made(d) {
		return
	}
	n.approvals(d, words)
	for i, t := range d.TaskList {
		if i == maxTasks {
			n.Lines = append(n.Lines, fmt.Sprintf("… and %d more tasks", len(d.TaskList)-i))
			break
		}
		n.Lines = append(n.Lines, fmt.Sprintf("%s: %s", t.Status, words.line(t.Title, maxTitle)))
	}
}

// ask adds the first questions, which have buttons, and how many more there are.
func (n *Notice) ask(d *document.Detail, words Words) {
	if d.Waiting != forge.WaitingClarification {
		return
	}
	asked := 0
	for i, q := range d.Questions {
		if q.Answer != nil {
			continue
		}
		if asked++; asked <= maxAsked {
			n.Lines = append(n.Lines, fmt.Sprintf("Question %d: %s", i+1, words.line(q.Question, maxQuestion)))
		}
	}
	if asked > maxAsked {
		n.Lines = append(n.Lines, fmt.Sprintf("… and %d more questions", asked-maxAsked))
	}
}

// made reports whether changes that were made already wait for approval, and not a plan or a text.
func made(d *document.Detail) bool {
	return d.Waiting == forge.WaitingApproval && d.Status != forge.StatusProposed
}

// offer adds the buttons. What is offered is not more than the rules take: they decide.
func (n *Notice) offer(d *document.Detail, words Words) {
	add := func(do Do, label string, b Button) {
		b.Label, b.Press = label, Press{Key: n.Key, Do: do, Seen: n.Seen, Index: b.Press.Index, Pick: b.Press.Pick}
		if do == Approve || do == Changes {
			b.Press.Plan = d.Plan
		}
		n.Buttons = append(n.Buttons, b)
	}
	reject, cancel := Button{Bad: true}, Button{Bad: true}
	switch d.Waiting {
	case forge.WaitingApproval:
		n.offerApproval(d, words, add)
		add(Reject, "Reject", reject)
	case forge.WaitingClarification:
		n.offerAnswers(d, words, add)
		add(Reject, "Reject", reject)
	case forge.WaitingFailed:
		add(Retry, "Run again", Button{})
		add(Reject, "Reject", reject)
	case forge.WaitingDirty, forge.WaitingBase, forge.WaitingPull, forge.WaitingBudget:
		add(Retry, "Run again", Button{})
		add(Cancel, "Cancel", cancel)
	case forge.WaitingPaused:
		add(Resume, "Resume", Button{})
		add(Cancel, "Cancel", cancel)
	default:
		if !d.Status.Ended() {
			add(Cancel, "Cancel", cancel)
		}
	}
}

// offerAnswers adds the buttons for the first questions.
func (n *Notice) offerAnswers(d *document.Detail, words Words, add func(Do, string, Button)) {
	asked := 0
	for i, q := range d.Questions {
		if q.Answer != nil || asked == maxAsked {
			continue
		}
		asked++
		picks := q.SuggestedAnswers[:min(len(q.SuggestedAnswers), maxPicks)]
		if !words.fits(q.Question, maxQuestion) { // a word is no answer to what was not read
			picks = nil
		}
		for pick, text := range picks {
			label := cmp.Or(words.line(text, maxLabel), strconv.Itoa(pick+1))
			// The whole of an answer counts and not its beginning, so one that cannot be shown as
			// a whole, or has characters that a reader would not see, has no button: it is typed.
			if label == text && !messages.Approves(text) {
				add(Answer, label, Button{Press: Press{Index: i, Pick: pick + 1}})
			}
		}
		add(Answer, fmt.Sprintf("Answer %d…", i+1), Button{Press: Press{Index: i}})
	}
}

// Offers reports whether the notice has a button that carries the same press.
func (n *Notice) Offers(p *Press) bool {
	return slices.ContainsFunc(n.Buttons, func(b Button) bool { return b.Press == *p })
}
