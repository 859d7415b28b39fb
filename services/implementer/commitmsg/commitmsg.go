// Package commitmsg makes the messages of the commits that reach the base branch.
// Of the agent's own text it keeps what cannot be taken for a word of pfl-forge:
// no trailer of ours, and no credit for people whom the agent only names. It is
// used where a task's commits become one, and where a merge adds who approved.
package commitmsg

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pattern"
	"github.com/pfl-forge/pfl-forge/internal/term"
	"github.com/pfl-forge/pfl-forge/internal/trailers"
	"github.com/pfl-forge/pfl-forge/services/implementer/proposal"
)

// Bounds of a commit's message.
const (
	maxSubject   = 72      // characters
	maxTitle     = 1000    // characters of a title in the body
	MaxText      = 8_000   // bytes of the agent's own text
	maxTrailers  = 20      // of the agent's own
	maxTrailer   = 200     // characters of a trailer's value
	textLeftOut  = "[...]" // ends text that was cut
	emptySubject = "Change"
)

var (
	// reserved matches a line that could be read as a trailer of ours, or has a forge run
	// no checks, with any separator that git can be configured to take.
	reserved = pattern.New(`(?i)^\s*(forge-[a-z0-9-]*|(skip|request)-checks)\s*[:=#]`)
	// trailer matches a line that git reads as a trailer.
	trailer = pattern.New(`^[A-Za-z0-9][A-Za-z0-9-]*[ \t]*:`)
	// credit matches a line that names a person as author, reviewer, tester or approver. In an
	// agent's message it is invented.
	credit = pattern.New(`(?i)^\s*[a-z-]+-by\s*[:=#]`)
	// divider matches lines at which tools that read patches from mail, or an edited
	// message, end the message.
	divider = pattern.New(`^(---(\s|$)|diff -|Index: |\S* ?-{8,} >8 -{8,})`)
	// helper matches the subject of a commit that was made to be squashed.
	helper = pattern.New(`(?i)^((fixup|squash|amend)! .*|wip\.?)$`)
)

// Of returns the message of a task's commit: the title as one line, the
// intent's title if it is another one, the text and trailers of own, which are the
// messages of the agent's commits, oldest first, and the trailers of ours in the same
// last paragraph. A message that it has made, alone or with others after it, can be one
// of own.
func Of(c *forge.Command, title, approver string, own []string) string {
	line := proposal.Defused(term.Line(title))
	subject := subjectLine(line)
	var body []string
	say := func(text string) {
		if text != "" && text != subject && !slices.Contains(body, text) {
			body = append(body, text)
		}
	}
	if line != strings.Trim(subject, `"`) {
		say(quoted(term.Short(line, maxTitle)))
	}
	say(quoted(proposal.Defused(term.Short(c.Intent.Title, maxTitle))))
	text, last := ownText(own, append([]string{subject, line}, body...))
	body = append(body, text...)
	last = append(last, forgeTrailers(c, approver)...)
	return strings.Join(append(append([]string{subject}, body...), strings.Join(last, "\n")), "\n\n") + "\n"
}

// First returns the message of a commit that no agent has written one for.
func First(c *forge.Command) string { return Of(c, c.Task.Title, "", nil) }

// Squash returns the function that makes the message of the task's one commit on
// the base branch. A merge has that commit, and adds who approved since.
func Squash(c *forge.Command) func(own []string) string {
	if c.Attempt.Step != forge.StepMerge {
		in := c.Rebase()
		return func(own []string) string {
			return Of(c, cmp.Or(in.Title, c.Intent.Title, c.Task.Title), in.Approver, own)
		}
	}
	if change := c.Merge().Change; change != nil && change.Approver != "" {
		return func(own []string) string { return approved(strings.Join(own, "\n\n"), change.Approver) }
	}
	return nil
}

// subjectLine returns a title in one line of a commit's subject.
func subjectLine(title string) string {
	if title == "" {
		return emptySubject
	}
	title = quoted(title)
	if utf8.RuneCountInString(title) <= maxSubject {
		return title
	}
	cut := string([]rune(title)[:maxSubject-1])
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)/2 {
		cut = cut[:i]
	}
	return cut + "…"
}

// quoted returns a line in quotes if it could be read as a trailer of ours, or as the end of
// the message.
func quoted(line string) string {
	if reserved.MatchString(line) || divider.MatchString(line) {
		return `"` + line + `"`
	}
	return line
}

// forgeTrailers returns the trailers that say where a commit comes from.
func forgeTrailers(c *forge.Command, approver string) []string {
	of := trailers.Change{Project: c.To.Project, Intent: c.To.Intent, Task: c.Attempt.Task, Approver: approver}
	of.Requester, of.Claimed = requesters(&c.Intent)
	return of.Lines()
}

// requesters returns who asked for an intent: the system that published it, if no
// person did, with the people whom the server knew, and those whom senders only named.
func requesters(in *forge.Intent) (proven, claimed string) {
	var lists [2][]string
	if in.Source != forge.SourceHuman || len(in.Requesters) == 0 {
		lists[0] = append(lists[0], in.Origin.System)
	}
	for _, r := range in.Requesters {
		list := &lists[0]
		if !r.Proven {
			list = &lists[1]
		}
		*list = append(*list, r.Name)
	}
	return strings.Join(lists[0], ", "), strings.Join(lists[1], ", ")
}

// approved returns a message of Of with the approver in its trailers.
func approved(message, approver string) string {
	value := term.Short(approver, maxTrailer)
	if value == "" {
		return message
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(message), "\n"), func(line string) bool {
		return strings.HasPrefix(line, trailers.Approver+":")
	})
	if !strings.Contains(message, "\n"+trailers.Task+": ") { // it was made otherwise
		return strings.TrimSpace(strings.Join(lines, "\n")) + "\n\n" + trailers.Approver + ": " + value + "\n"
	}
	return strings.Join(append(lines, trailers.Approver+": "+value), "\n") + "\n"
}

// ownText returns the paragraphs and the trailers of messages, without the paragraphs
// that are known already, and without anything that could be read as a trailer of ours.
func ownText(own, known []string) (text, ends []string) {
	room := MaxText - len(textLeftOut)
	seen := map[string]bool{} // of the text and of what is known
	for _, p := range known {
		seen[p] = true
	}
	for _, message := range own {
		paragraphs, own := splitMessage(message)
		for _, t := range own {
			if len(ends) < maxTrailers && !slices.ContainsFunc(ends, func(s string) bool { return strings.EqualFold(s, t) }) {
				ends = append(ends, t)
			}
		}
		var added []string // a message may say the same twice
		for _, p := range paragraphs {
			switch {
			case room < 0 || seen[p] || slices.Contains(known, term.Line(p)):
			case p == textLeftOut:
				room = -1
				added = append(added, p)
			default:
				if room -= len(p) + 2; room < 0 {
					p = textLeftOut
				}
				added = append(added, p)
			}
		}
		for _, p := range added {
			seen[p] = true
		}
		text = append(text, added...)
	}
	return text, ends
}

// splitMessage returns the paragraphs of a message of an agent, and its trailers, each
// as one line: without ours, without those that name people, and defused.
func splitMessage(message string) (paragraphs, ends []string) {
	var current []string
	end := func() {
		if len(current) > 0 {
			paragraphs = append(paragraphs, proposal.Defused(strings.Join(current, "\n")))
		}
		current = nil
	}
	dropping := false // the lines that continue one that was dropped
	for line := range strings.SplitSeq(term.Sanitize(message), "\n") {
		line = strings.TrimRight(line, " \t")
		dropping = reserved.MatchString(line) || credit.MatchString(line) || dropping && line != "" && (line[0] == ' ' || line[0] == '\t')
		switch {
		case dropping:
		case line == "":
			end()
		case divider.MatchString(line):
			current = append(current, " "+line)
		default:
			current = append(current, line)
		}
	}
	end()
	if n := len(paragraphs) - 1; n >= 0 {
		var rest []string
		if rest, ends = cutTrailers(strings.Split(paragraphs[n], "\n"), n > 0); len(rest) == 0 {
			paragraphs = paragraphs[:n]
		} else {
			paragraphs[n] = strings.Join(rest, "\n")
		}
	}
	if len(paragraphs) > 0 && helper.MatchString(paragraphs[0]) {
		paragraphs = paragraphs[1:]
	}
	return paragraphs, ends
}

// cutTrailers splits the lines of a last paragraph. The paragraph counts as trailers if
// each line is a trailer or continues one, and it is not the subject; otherwise it has none.
func cutTrailers(lines []string, body bool) (rest, ends []string) {
	all := body && trailer.MatchString(lines[0]) && !slices.ContainsFunc(lines, func(line string) bool {
		return !trailer.MatchString(line) && line[0] != ' ' && line[0] != '\t'
	})
	if !all {
		return lines, nil
	}
	for _, line := range lines {
		if line[0] != ' ' && line[0] != '\t' {
			ends = append(ends, line)
		} else if last := &ends[len(ends)-1]; len(*last) < 4*maxTrailer { // more is cut below
			*last += line
		}
	}
	for i, t := range ends {
		ends[i] = term.Short(t, maxTrailer)
	}
	// One line that git does not read as a trailer would hide the others.
	return nil, slices.DeleteFunc(ends, func(t string) bool { return !trailer.MatchString(t) })
}
