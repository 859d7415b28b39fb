package pulls

import (
	"encoding/json"
	"fmt"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/redact"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/internal/trailers"
	"github.com/pfl-forge/pfl-forge/services/gateway/forges"
	"github.com/pfl-forge/pfl-forge/services/gateway/intake"
)

// Bounds of the parts of a text, in bytes. Together they stay below
// intake.MaxOut, which TestText holds.
const (
	maxRequest = 14 << 10
	maxList    = 12 << 10
	maxItem    = 1 << 10
	maxTitle   = 200
	maxName    = 200
	// maxStatus is how long the line of a status may be on every forge: GitHub has the shortest.
	maxStatus = 140
	maxPeople = 500
	maxValue  = 400 // of a trailer
	maxFiles  = 100
	// short is how many digits of a commit are shown.
	short = 12
	// byForge is PullPolicy.By where the rules have the forge merge.
	byForge = "forge"
)

// mark says which attempt a pull request belongs to. It stands at the beginning of the
// text, where a page does not show it. Whoever may write in the repository can edit
// it: the rules believe a snapshot only of the pull request that they have asked for.
type mark struct {
	// Project, Intent and Task are ids, Number and Claim those of the attempt.
	// All of them are checked when they are read.
	Project string `json:"project"`
	Intent  string `json:"intent"`
	Task    string `json:"task"`
	Number  int    `json:"number"`
	Claim   int    `json:"claim"`
	// Queue says that it is merged by the forge's own queue, which is looked at then.
	Queue bool `json:"queue,omitempty"`
}

const (
	markBegin = "<!-- pfl-forge pull "
	markEnd   = " -->\n"
)

// lineEnds are as the page of a forge writes them.
var lineEnds = strings.NewReplacer("\r\n", "\n")

// markOf returns the mark of an attempt.
func markOf(to forge.Key, a forge.Attempt) mark {
	return mark{Project: string(to.Project), Intent: string(to.Intent), Task: string(a.Task), Number: a.Number, Claim: a.Claim}
}

// String returns the mark as it stands in a text. JSON spells < and > so that
// nothing in it ends the mark.
func (m mark) String() string {
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // it has only texts and numbers
	}
	return markBegin + string(data) + markEnd
}

// readMark returns the attempt that a text belongs to: the first mark that fits and begins a line.
// Bots and people write above our text, and what they quote of it begins with something else.
func readMark(body string, fits func(forge.Key) bool) (to forge.Key, a forge.Attempt, ok bool) {
	for line := range strings.Lines(lineEnds.Replace(body)) {
		rest, begins := strings.CutPrefix(strings.TrimRight(line, " \t\n"), markBegin)
		text, ends := strings.CutSuffix(rest, strings.TrimRight(markEnd, "\n"))
		if !begins || !ends {
			continue
		}
		if to, a, ok = parseMark(text); ok && fits(to) {
			return to, a, true
		}
	}
	return forge.Key{}, forge.Attempt{}, false
}

// parseMark returns the attempt that a mark names, each part by its own constructor.
func parseMark(text string) (to forge.Key, a forge.Attempt, ok bool) {
	var m mark
	if json.Unmarshal([]byte(text), &m) != nil {
		return to, a, false
	}
	project, err := forge.ParseProjectID(m.Project)
	intent, err2 := forge.ParseIntentID(m.Intent)
	task, err3 := forge.ParseTaskID(m.Task)
	if err != nil || err2 != nil || err3 != nil || task.Intent() != intent || m.Number < 1 || m.Claim < 1 {
		return to, a, false
	}
	return forge.Key{Project: project, Intent: intent}, forge.Attempt{Task: task, Step: forge.StepOpenPull, Number: m.Number, Claim: m.Claim}, true
}

// plain returns words of others as text that nothing obeys.
func (k *Keeper) plain(s string, limit int) string {
	return intake.Plain(strings.TrimSpace(s), k.cfg.Secrets, limit)
}

// line returns words of the forge as one line for people, in the journal.
func (k *Keeper) line(s string) string {
	return term.Line(k.cfg.Secrets.Text(strings.ToValidUTF8(s[:min(len(s), maxName)], "")))
}

// words returns words of others for the journal and for agents, who get them as
// data: the end of them, since that is where a log says why.
func (k *Keeper) words(s string, limit int) string {
	if s = k.clean(s); len(s) > limit {
		s = strings.ToValidUTF8(s[len(s)-limit:], "")
	}
	return s
}

// clean returns words of others without secrets of ours and what a terminal obeys.
func (k *Keeper) clean(s string) string { return k.cfg.Secrets.Text(term.Sanitize(s)) }

// text returns our words about a change, whose commit has a message. They
// follow from the request alone, so that the same request leads to the same
// text, and an attempt that is carried out again writes nothing.
//
// The trailers of the commit are the last paragraph: where a person merges by the
// forge's own button, a forge may make the message of its commit of this text.
func (k *Keeper) text(to forge.Key, a forge.Attempt, in *forge.PullInput, message string) forges.PullText {
	var b strings.Builder
	m := markOf(to, a)
	m.Queue = isByQueue(in)
	b.WriteString(m.String())
	b.WriteString(k.verdict(in) + "\n\n" + whoMerges(k, &in.Policy) + "\n")
	f := &in.Facts
	fmt.Fprintf(&b, "\n### Request\n\n%s", intake.Quote(f.Request, k.cfg.Secrets, maxRequest))
	if len(f.Requesters) > 0 {
		fmt.Fprintf(&b, "\nAsked for by %s.\n", k.people(f.Requesters))
	}
	if len(f.Requirements) > 0 {
		b.WriteString("\n### Requirements and evidence\n\n")
		list(&b, f.Requirements, func(r forge.PullRequirement) string {
			word := "**not met**"
			if r.Met {
				word = "**met**"
			}
			var item strings.Builder
			fmt.Fprintf(&item, "- %s: %s\n", word, k.item(r.Text))
			for _, e := range r.Evidence {
				fmt.Fprintf(&item, "  - %s\n", k.item(e))
			}
			return item.String()
		})
	}
	if len(f.Rejected) > 0 {
		b.WriteString("\n### Not accepted before\n\n")
		list(&b, f.Rejected, func(s string) string { return "- " + k.item(s) + "\n" })
	}
	if len(f.Files) > 0 {
		b.WriteString("\n### Files\n\n")
		list(&b, f.Files[:min(len(f.Files), maxFiles)], func(s string) string { return "- " + k.item(s) + "\n" })
		if more := len(f.Files) - maxFiles; more > 0 {
			fmt.Fprintf(&b, "- and %d more\n", more)
		}
	}
	b.WriteString(trailersOf(message, k.cfg.Secrets))
	title := intake.Title(in.Title, k.cfg.Secrets, maxTitle)
	if title == "" {
		title = "Task " + string(a.Task)
	}
	return forges.PullText{Title: title, Body: b.String(), Draft: in.Policy.Draft, Labels: in.Policy.Labels}
}

// trailersOf returns those of a commit's message as a paragraph; empty if it
// names no change. What a person or a system is called is text that no forge
// obeys here: one of the name @all is not mentioned.
func trailersOf(message string, secrets *redact.Redactor) string {
	list := trailers.Read(message)
	if len(list) == 0 {
		return ""
	}
	c := list[len(list)-1]
	lines := c.Lines()
	for i, line := range lines {
		if name, value, _ := strings.Cut(line, ": "); name == trailers.Requester || name == trailers.Claimed || name == trailers.Approver {
			lines[i] = name + ": " + intake.Title(value, secrets, maxValue)
		}
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

// item returns words of others as one line of a list.
func (k *Keeper) item(s string) string { return k.plain(strings.Join(strings.Fields(s), " "), maxItem) }

// people returns names as one line.
func (k *Keeper) people(names []string) string {
	return k.plain(strings.Join(strings.Fields(strings.Join(names, ", ")), " "), maxPeople)
}

// list writes the items that there is room for, and how many there is none for.
func list[T any](b *strings.Builder, items []T, write func(T) string) {
	room := maxList
	for i, it := range items {
		text := write(it)
		if room -= len(text); room < 0 {
			fmt.Fprintf(b, "- and %d more\n", len(items)-i)
			return
		}
		b.WriteString(text)
	}
}

// verdict returns the first line: all that was found about the change, in the
// order in which a reader asks.
func (k *Keeper) verdict(in *forge.PullInput) string {
	f := &in.Facts
	parts := []string{fmt.Sprintf("**Verified** on `%s`", commit(in.Parent))}
	if len(f.Commands) > 0 {
		parts[0] += " by " + k.item(strings.Join(f.Commands, ", "))
	} else {
		parts[0] = fmt.Sprintf("**No verify command**, on `%s`", commit(in.Parent))
	}
	if met := met(f.Requirements); len(f.Requirements) > 0 {
		parts = append(parts, fmt.Sprintf("review: %d of %d requirements met", met, len(f.Requirements)))
	}
	if len(f.Approvers) > 0 {
		parts = append(parts, "approved by "+k.people(f.Approvers))
	}
	attempts := "1 attempt"
	if f.Attempts != 1 {
		attempts = fmt.Sprintf("%d attempts", f.Attempts)
	}
	return strings.Join(append(parts, fmt.Sprintf("$%.2f", f.CostUSD), attempts, fmt.Sprintf("patch `%s`", commit(in.PatchID))), " · ")
}

// whoMerges says who merges a pull request, and what that waits for.
func whoMerges(k *Keeper, p *forge.PullPolicy) string {
	switch {
	case p.By != byForge:
		return "A person merges it."
	case len(p.Checks) > 0:
		return "It is merged by itself when these checks have passed: " + k.plain(strings.Join(strings.Fields(strings.Join(p.Checks, ", ")), " "), maxItem) + "."
	}
	return "It is merged by itself when the checks that are reported here have passed, one at least. " +
		"Where none is, as in a repository without CI, it waits: merge it, or set up checks of pull requests."
}

// commit returns the first digits of a commit or patch. What is none is not repeated.
func commit(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !(r >= '0' && r <= '9' || r >= 'a' && r <= 'f') }) || s == "" {
		return "unknown"
	}
	return s[:min(len(s), short)]
}

// met counts the requirements that are met.
func met(list []forge.PullRequirement) (n int) {
	for _, r := range list {
		if r.Met {
			n++
		}
	}
	return n
}

// statuses returns those that we write, by the same facts as the text. The protection of
// the base can demand them by their names, so that a person's button merges nothing for
// which they are not there: all that has to hold before a change is proposed at all.
func (k *Keeper) statuses(in *forge.PullInput) []forges.Status {
	f := &in.Facts
	review := "reviewed"
	if len(f.Requirements) > 0 {
		review = fmt.Sprintf("%d of %d requirements met", met(f.Requirements), len(f.Requirements))
	}
	policy := "needs no approval of its plan"
	if len(f.Approvers) > 0 {
		policy = k.line("approved by " + strings.Join(f.Approvers, ", "))
		if runes := []rune(policy); len(runes) > maxStatus { // what the forge cuts off would look like another text each time
			policy = string(runes[:maxStatus-1]) + "…"
		}
	}
	reviewed := forges.Passed
	if met(f.Requirements) < len(f.Requirements) {
		reviewed = forges.Failed
	}
	out := []forges.Status{
		{Name: ownStatuses + "review", Text: review, Outcome: reviewed}, {Name: ownStatuses + "policy", Text: policy, Outcome: forges.Passed},
	}
	if len(f.Commands) > 0 { // a protection that demands it holds up what nothing has verified
		out = append(out, forges.Status{Name: ownStatuses + "verify", Text: "verified on " + commit(in.Parent), Outcome: forges.Passed})
	}
	return out
}
