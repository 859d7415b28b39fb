package intake

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"

	"github.com/pfl-forge/pfl-forge/internal/strictyaml"
	"github.com/pfl-forge/pfl-forge/internal/term"
)

// Prefix begins the line of a command in a comment.
const Prefix = "/forge"

// Verb names the thing that a command asks for.
type Verb string

// The verbs.
const (
	Run     Verb = "run"
	Approve Verb = "approve"
	Reject  Verb = "reject"
	Answer  Verb = "answer"
	Retry   Verb = "retry"
	Cancel  Verb = "cancel"
	Pause   Verb = "pause"
	Resume  Verb = "resume"
	Status  Verb = "status"
	Explain Verb = "explain"
)

// verbs shows the words that follow each verb, for a person who got them wrong.
var verbs = map[Verb]string{
	Run: "[recipe]", Approve: "<hash>", Reject: "[reason]", Answer: "<number> <text>", Retry: "[text]",
	Cancel: "", Pause: "", Resume: "", Status: "", Explain: "",
}

// Command is one line of a comment that asks for something.
type Command struct {
	// Line counts from 1 in the comment.
	Line int
	// Verb is empty if Wrong is not.
	Verb Verb
	// Hash is that of an approval, in small hexadecimal digits.
	Hash string
	// Question counts from 1, of an answer.
	Question int
	// Text is the rest of the line: a recipe, a reason, an answer.
	Text string
	// Wrong says why the line cannot be obeyed, as a sentence for its author.
	Wrong string
}

// Said is a comment, as the forge has it now.
type Said struct {
	// Author wrote it.
	Author Account
	// Body is Markdown.
	Body string
	// Edited says that it is not what was first written. Such a comment commands nothing: those who read it before the
	// edit saw another one.
	Edited bool
}

const (
	// maxCommands bounds the commands of one comment, and maxLine the text of one, in bytes.
	maxCommands = 10
	maxLine     = 4 << 10
)

// Commands returns the commands in a comment. There are none in what a bot, or the account with the id self, wrote, in a comment
// that was edited, and anywhere but at the beginning of a line of ordinary text: not in quotes, lists, code, headings, HTML, and
// in no line that holds characters which cannot be seen.
func Commands(said Said, self int64) []Command {
	if said.Author.Kind == Bot || said.Author.ID == self || said.Edited {
		return nil
	}
	source := []byte(said.Body)
	var found []Command
	for n := parse(source).FirstChild(); n != nil; n = n.NextSibling() {
		if n.Kind() != ast.KindParagraph {
			continue
		}
		for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
			atStart := line.Start == 0 || source[line.Start-1] == '\n'
			if !atStart || !isPlainText(n, line.Start) {
				continue
			}
			c, ok := command(string(line.Value(source)))
			if !ok {
				continue
			}
			if len(found) == maxCommands {
				return found
			}
			c.Line = 1 + bytes.Count(source[:line.Start], []byte("\n"))
			found = append(found, c)
		}
	}
	return found
}

// isPlainText reports whether a place in a paragraph is text of the paragraph itself, and not of code, HTML, a link or
// an emphasis that reaches over several lines.
func isPlainText(paragraph ast.Node, at int) bool {
	for n := paragraph.FirstChild(); n != nil; n = n.NextSibling() {
		if t, ok := n.(*ast.Text); ok && t.Segment.Start <= at && at < t.Segment.Stop {
			return true
		}
	}
	return false
}

var (
	hexHash = regexp.MustCompile(`^[0-9a-f]{7,64}$`)
	recipe  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
)

// command reads a line; false if it is no command at all.
func command(line string) (Command, bool) {
	line = strings.TrimRight(line, "\r\n \t")
	rest, ok := strings.CutPrefix(line, Prefix)
	if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' || len(line) > maxLine || term.Sanitize(line) != line {
		return Command{}, false
	}
	word, text, _ := strings.Cut(strings.TrimLeft(rest, " \t"), " ")
	c := Command{Verb: Verb(strings.ToLower(word)), Text: strings.TrimSpace(text)}
	takes, known := verbs[c.Verb]
	switch {
	case !known:
		c.Wrong = unknownVerb(word)
	case c.Verb == Approve:
		c.Hash, c.Text = strings.ToLower(strings.Trim(c.Text, "`")), ""
		if !hexHash.MatchString(c.Hash) {
			c.Wrong = "an approval names the hash of the plan that was read: " + usage(Approve)
		}
	case c.Verb == Answer:
		number, answer, _ := strings.Cut(c.Text, " ")
		n, err := strconv.Atoi(number)
		c.Question, c.Text = n, strings.TrimSpace(answer)
		if err != nil || n < 1 || c.Text == "" {
			c.Wrong = "an answer names the question by its number: " + usage(Answer)
		}
	case c.Verb == Run && c.Text != "" && !recipe.MatchString(c.Text):
		c.Wrong = "this is not the name of a recipe: " + usage(Run)
	case takes == "" && c.Text != "":
		c.Wrong = fmt.Sprintf("nothing follows %s: %s", c.Verb, usage(c.Verb))
	}
	if c.Wrong != "" {
		c = Command{Wrong: c.Wrong}
	}
	return c, true
}

// usage returns how a verb is written.
func usage(v Verb) string {
	return "`" + strings.TrimSpace(Prefix+" "+string(v)+" "+verbs[v]) + "`"
}

// unknownVerb returns a sentence for the author of a command that does not exist. The word itself is not repeated.
func unknownVerb(word string) string {
	var known []string
	for v := range verbs {
		known = append(known, string(v))
	}
	slices.Sort(known)
	if near := strictyaml.Closest(word, known); near != "" {
		return "there is no such command; the closest is " + usage(Verb(near))
	}
	return "there is no such command; there are " + strings.Join(known, ", ")
}
