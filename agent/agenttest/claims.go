package agenttest

import (
	"strconv"
	"strings"

	"github.com/pfl-forge/pfl-forge/internal/pattern"
)

// hunk is the header of a hunk; its group is the first line of the new side.
var hunk = pattern.New(`^@@ -[0-9,]+ \+([0-9]+)`)

// asked is the heading of a requirement or criterion in a prompt.
var asked = pattern.New(`(?m)^(?:Requirement|Criterion) [0-9]+:$`)

// word matches a line of which a quote shows something.
var word = pattern.New(`[\p{L}\p{N}]{3}|\p{Han}{2}`)

// Cite returns evidence of the first line with a word and a text that the change in a prompt adds,
// as an honest reviewer cites it; of the first line with the text if none has a word, and nil if
// there is none.
func Cite(prompt, text string) map[string]any {
	var poor map[string]any
	path, n := "", 0 // the file, and the number of the next line on the new side; 0 outside of hunks
	for line := range strings.Lines(prompt) {
		line = strings.TrimSuffix(line, "\n")
		m := hunk.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "+++ b/"):
			path, n = strings.TrimPrefix(line, "+++ b/"), 0
		case m != nil:
			n, _ = strconv.Atoi(m[1])
		case n == 0:
		case strings.HasPrefix(line, "+"):
			if added := strings.TrimSpace(line[1:]); len(added) > 0 && strings.Contains(added, text) {
				cited := map[string]any{"kind": "diff", "ref": path + ":" + strconv.Itoa(n), "quote": added}
				if word.MatchString(added) {
					return cited
				}
				if poor == nil {
					poor = cited
				}
			}
			n++
		case strings.HasPrefix(line, " "):
			n++
		}
	}
	return poor
}

// Claim returns the answer to a requirement or criterion: met, as a piece of
// evidence shows; not met if there is none.
func Claim(number int, evidence map[string]any) map[string]any {
	c := map[string]any{"number": number, "met": evidence != nil, "confidence": 0.9, "note": "as the change shows", "evidence": []map[string]any{}}
	if evidence != nil {
		c["evidence"] = []map[string]any{evidence}
	}
	return c
}

// Review returns the answer of an honest reviewer to a prompt: every requirement is met, as the
// first line that the change adds shows; with an issue it rejects.
func Review(prompt string, issues ...string) map[string]any {
	claims := []map[string]any{}
	for i := range asked.FindAllString(prompt, -1) {
		claims = append(claims, Claim(i+1, Cite(prompt, "")))
	}
	verdict := "approved"
	if len(issues) > 0 {
		verdict = "rejected"
	}
	return map[string]any{"requirements": claims, "verdict": verdict, "issues": append([]string{}, issues...), "suggestions": []string{}}
}

// Reviews returns a step that reviews honestly, as Review does. The prompt has to be the
// user's last message, as it is before and after calls of tools.
func Reviews(issues ...string) Step {
	return func(r Request) Reply { return Answer(Review(r.LastUser, issues...))(r) }
}
