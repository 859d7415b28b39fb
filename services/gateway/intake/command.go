package intake

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
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
	Changes Verb = "changes"
	Reject  Verb = "reject"
	Answer  Verb = "answer"
	Retry   Verb = "retry"
	Adopt   Verb = "adopt"
	Cancel  Verb = "cancel"
	Pause   Verb = "pause"
	Resume  Verb = "resume"
	Status  Verb = "status"
	Explain Verb = "explain"
)

// verbs shows the words that follow each verb, for a person who got them wrong.
var verbs = map[Verb]string{
	Run: "[recipe]", Approve: "<hash>", Changes: "<hash> <text>", Reject: "[reason]", Answer: "<number> <text>", Retry: "[text]",
	Adopt:  "<commit>",
	Cancel: "", Pause: "", Resume: "", Status: "", Explain: "",
}

// Command is one line of a comment that asks for something.
type Command struct {
	// Line counts from 1 in the comment.
	Line int
	// Verb is empty if Wrong is not.
	Verb Verb
	// Hash is that of an approval, or of what is to be changed, or the commit
	// to adopt, in small hexadecimal digits.
	Hash string
	// Question counts from 1, of an answer.
	Question int
	// Text is the rest of the line: a recipe, a reason, an answer, what has to be different.
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
	// Edited says that it is not what was first written. Such a comment
	// commands nothing: those who read it before the edit saw another one.
	Edited bool
}

const (
	// maxCommands bounds the commands of one comment, and maxLine the text of one, in bytes.
	maxCommands = 10
	maxLine     = 4 << 10
)

// Commands returns the commands in a comment of a person. There are none if the forge does not say
// that its author is one, if that is the account with the id self, and if the comment was edited.
//
// Commands stand in paragraphs of ordinary text at the top level that have nothing else: each line
// is one. Nothing after the first HTML of a comment, or the first mark of a quotation or formula
// of several blocks, is a command, whether it ends or not: forges differ in where it does.
func Commands(said Said, self int64) []Command {
	if !said.Author.isPerson() || self <= 0 || said.Author.ID == self || said.Edited {
		return nil
	}
	source := []byte(said.Body)
	var found []Command
	end := opaque(said.Body)
	for n := comments.Parse(text.NewReader(source)).FirstChild(); n != nil && !hasHTML(n); n = n.NextSibling() {
		lines := n.Lines().Len()
		if n.Kind() != ast.KindParagraph || lines == 0 || n.Lines().At(lines-1).Stop > end {
			continue
		}
		found = append(found, commandsOf(n, source)...)
		if len(found) >= maxCommands {
			return found[:maxCommands]
		}
	}
	return found
}

// comments reads Markdown with all that the comments of forges have: tables,
// strikethrough, links, footnotes.
var comments = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote)).Parser()

// opaqueStart matches the beginning of text that some forge shows as a quotation, a formula
// or front matter, and goldmark does not: from there on it is not known what is text.
var opaqueStart = pattern.New(`(?m)\A\s*(?:---|\+\+\+|;;;)|^[ \t]*(?:>>>|\\\[)|\$\$`)

// opaque returns where ordinary text ends for sure.
func opaque(body string) int {
	if at := opaqueStart.FindStringIndex(body); at != nil {
		return at[0]
	}
	return len(body)
}

// hasHTML reports whether there is any HTML in a block: it could hide or quote all that follows.
func hasHTML(block ast.Node) bool {
	found := false
	_ = ast.Walk(block, func(n ast.Node, _ bool) (ast.WalkStatus, error) {
		if n.Kind() == ast.KindHTMLBlock || n.Kind() == ast.KindRawHTML {
			found = true
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return found
}

// commandsOf returns the commands in a paragraph; none unless every line is one.
func commandsOf(paragraph ast.Node, source []byte) []Command {
	var found []Command
	lines := paragraph.Lines().Sliced(0, paragraph.Lines().Len())
	for _, line := range lines {
		atStart := line.Start == 0 || source[line.Start-1] == '\n'
		c, ok := command(string(line.Value(source)))
		inFormula := len(lines) > 1 && bytes.ContainsRune(line.Value(source), '$') // which can reach over several lines
		if !ok || !atStart || inFormula || !isPlainText(paragraph, line.Start) {
			return nil
		}
		c.Line = 1 + bytes.Count(source[:line.Start], []byte("\n"))
		found = append(found, c)
	}
	return found
}

// isPlainText reports whether a place in a paragraph is text of the paragraph itself,
// and not of code, HTML, a link or an emphasis that reaches over several lines.
func isPlainText(paragraph ast.Node, at int) bool {
	for n := paragraph.FirstChild(); n != nil; n = n.NextSibling() {
		if t, ok := n.(*ast.Text); ok && t.Segment.Start <= at && at < t.Segment.Stop {
			return true
		}
	}
	return false
}

var (
	hexHash = pattern.New(`^[0-9a-f]{7,64}$`)
	recipe  = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
)

// command reads a line; false if it is no command at all.
func command(line string) (Command, bool) {
	line = strings.TrimRight(line, "\r\n \t")
	rest, ok := strings.CutPrefix(line, Prefix)
	if !ok || rest != "" && rest[0] != ' ' && rest[0] != '\t' || len(line) > maxLine || term.Sanitize(line) != line {
		return Command{}, false
	}
	word, words := cutWord(rest)
	c := Command{Verb: Verb(strings.ToLower(word)), Text: words}
	if takes, known := verbs[c.Verb]; known {
		c.read(takes)
	} else {
		c.Wrong = unknownVerb(word)
	}
	if c.Wrong != "" {
		c = Command{Wrong: c.Wrong}
	}
	return c, true
}

// read takes the words of a known verb apart, or notes why they are none. takes
// shows what may follow the verb.
func (c *Command) read(takes string) {
	switch {
	case c.Verb == Approve:
		c.Hash, c.Text = strings.ToLower(strings.Trim(c.Text, "`")), ""
		if !hexHash.MatchString(c.Hash) {
			c.Wrong = "an approval names the hash of the plan that was read: " + usage(Approve)
		}
	case c.Verb == Adopt:
		c.Hash, c.Text = strings.ToLower(strings.Trim(c.Text, "`")), ""
		if !hexHash.MatchString(c.Hash) {
			c.Wrong = "what is adopted is named by its commit: " + usage(Adopt)
		}
	case c.Verb == Changes:
		c.Hash, c.Text = cutWord(c.Text)
		c.Hash = strings.ToLower(strings.Trim(c.Hash, "`"))
		if !hexHash.MatchString(c.Hash) || c.Text == "" {
			c.Wrong = "changes are asked for by the hash of what was read, and in words: " + usage(Changes)
		}
	case c.Verb == Answer:
		number, answer := cutWord(c.Text)
		n, err := strconv.Atoi(number)
		c.Question, c.Text = n, answer
		if err != nil || n < 1 || c.Text == "" {
			c.Wrong = "an answer names the question by its number: " + usage(Answer)
		}
	case c.Verb == Run && c.Text != "" && !recipe.MatchString(c.Text):
		c.Wrong = "this is not the name of a recipe: " + usage(Run)
	case takes == "" && c.Text != "":
		c.Wrong = fmt.Sprintf("nothing follows %s: %s", c.Verb, usage(c.Verb))
	}
}

// cutWord returns the first word of a line and all that follows it, without the
// white space around both.
func cutWord(line string) (word, rest string) {
	line = strings.Trim(line, " \t")
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		return line[:i], strings.Trim(line[i:], " \t")
	}
	return line, ""
}

// usage returns how a verb is written.
func usage(v Verb) string {
	return "`" + strings.TrimSpace(Prefix+" "+string(v)+" "+verbs[v]) + "`"
}

// unknownVerb returns a sentence for the author of a command that does not
// exist. The word itself is not repeated.
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
