package knowledge

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/rule"
)

const (
	// maxForgotten bounds the pieces that are remembered as forgotten.
	maxForgotten = 500
	// MaxContent bounds the text of a piece that a person writes, in bytes.
	MaxContent = 1000
	// maxWord bounds its category and its file, in bytes.
	maxWord = 300
)

// Types lists the types of knowledge.
func Types() []forge.KnowledgeType {
	return []forge.KnowledgeType{
		forge.KnowledgeDiscovery, forge.KnowledgeLesson, forge.KnowledgePattern, forge.KnowledgeConstraint, forge.KnowledgeCodebase,
	}
}

// Confidences lists the confidences, the surest first.
func Confidences() []forge.Confidence {
	return []forge.Confidence{forge.ConfidenceHigh, forge.ConfidenceMedium, forge.ConfidenceLow}
}

// Validate returns the first thing that is wrong with a piece that a person writes, or nil.
func Validate(k *forge.Knowledge) *forge.FieldError {
	field := ""
	switch printable := func(text string) bool {
		return utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
	}; {
	case strings.TrimSpace(k.Content) == "":
		return &forge.FieldError{Field: "content", Reason: "is empty; say what is to be known"}
	case len(k.Content) > MaxContent:
		return &forge.FieldError{Field: "content", Reason: fmt.Sprintf("has %d bytes; at most %d are allowed", len(k.Content), MaxContent)}
	case !printable(strings.ReplaceAll(k.Content, "\n", " ")):
		field = "content"
	case !slices.Contains(Types(), k.Type):
		return &forge.FieldError{Field: "type", Reason: fmt.Sprintf("is %.40q; it can be discovery, lesson, pattern, constraint or codebase", k.Type)}
	case !slices.Contains(Confidences(), k.Confidence):
		return &forge.FieldError{Field: "confidence", Reason: fmt.Sprintf("is %.40q; it can be high, medium or low", k.Confidence)}
	case len(k.Category) > maxWord || !printable(k.Category):
		field = "category"
	case len(k.ExampleFile) > maxWord || !printable(k.ExampleFile):
		field = "example_file"
	}
	switch field {
	case "":
		return nil
	case "content":
		return &forge.FieldError{Field: field, Reason: "holds a control character, or is not UTF-8"}
	}
	return &forge.FieldError{Field: field, Reason: fmt.Sprintf("has to be text without control characters, of at most %d bytes", maxWord)}
}

// Teach takes a person's word: it adds a piece, or corrects or forgets the one with the id.
// What was forgotten does not come back from what agents find; a person may add it again.
func (s *State) Teach(by string, m *forge.Teach, now time.Time) (forge.Decision, error) {
	at := slices.IndexFunc(s.Known, func(k forge.Knowledge) bool { return k.ID == m.ID })
	switch {
	case m.ID == "" && m.Knowledge == nil:
		return rule.Refuse("knowledge: is missing; say what is to be known, or the id of what is to be forgotten")
	case m.ID != "" && at < 0:
		return rule.Refuse("the project knows nothing of the id %q; pfl-forge knowledge list has the ids", rule.Shorten(m.ID, 60))
	case m.Knowledge == nil:
		s.forget(at)
		return forge.Applied, nil
	}
	k := *m.Knowledge
	if e := Validate(&k); e != nil {
		return rule.Refuse("knowledge.%s: %s", e.Field, e.Reason)
	}
	if i := slices.IndexFunc(s.Known, same(k)); i >= 0 && i != at {
		return rule.Refuse("that is known already, as %s: pfl-forge knowledge show %[1]s", s.Known[i].ID)
	}
	k.Author = by
	s.Known, s.Forgotten = slices.Clone(s.Known), slices.DeleteFunc(slices.Clone(s.Forgotten), same(k))
	if at >= 0 {
		was := s.Known[at]
		k.ID, k.SourceTask, k.AppliedCount, k.CreatedAt = was.ID, was.SourceTask, was.AppliedCount, was.CreatedAt
		if !rule.SameKnowledge(was, k) {
			s.Forgotten = rule.Last(append(s.Forgotten, was), maxForgotten) // what was wrong does not come back beside it
		}
		s.Known[at] = k
		return forge.Applied, nil
	}
	s.Taught++
	k.ID, k.SourceTask, k.AppliedCount, k.CreatedAt = fmt.Sprintf("k%d", s.Taught), "", 0, now
	s.Known = append(s.Known, k)
	s.bound()
	return forge.Applied, nil
}

// forget removes a piece, and remembers that it was.
func (s *State) forget(at int) {
	s.Forgotten = rule.Last(append(slices.Clip(s.Forgotten), s.Known[at]), maxForgotten)
	s.Known = slices.Delete(slices.Clone(s.Known), at, at+1)
}
