package forge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of an intent: of its title in characters, of other texts in bytes, of
// lists in entries. What is larger is refused.
const (
	MaxTitle      = 500
	MaxBody       = 64 << 10
	MaxListLength = 100
	MaxCriteria   = 50
	MaxCriterion  = 1000
)

// FieldError names the field of an input that is wrong, and why. It reads as "field: reason".
type FieldError struct {
	// Field is the path of the field as people and systems know it, such as
	// "title", "criteria[2]" or "goal.max_iterations".
	Field string
	// Reason is a phrase that follows the field's name: "is empty", "holds a control character".
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// Validate returns the first thing that is wrong with an intent that is submitted, or nil.
func (i *Intent) Validate() *FieldError {
	if _, err := ParseProjectID(string(i.Project)); err != nil {
		return &FieldError{"project", err.Error()}
	}
	if _, err := ParseIntentID(string(i.ID)); err != nil {
		return &FieldError{"id", err.Error()}
	}
	if e := cmp.Or(validTitle(i.Title), validText("body", i.Body, MaxBody)); e != nil {
		return e
	}
	if i.Risk != "" && i.Risk.Rank() == 0 {
		return &FieldError{"risk", fmt.Sprintf("is %q; it can be low, med or high", i.Risk)}
	}
	if i.Source != SourceHuman && i.Source != SourceReflection && !i.Source.Foreign() {
		return &FieldError{"source", fmt.Sprintf("is %q; it can be human, reflection, system or system_reflection", i.Source)}
	}
	if i.BudgetUSD < 0 || i.BudgetUSD != i.BudgetUSD {
		return &FieldError{"budget_usd", "must be a positive amount"}
	}
	for _, list := range []struct {
		field        string
		length, most int
	}{
		{"depends_on", len(i.DependsOn), MaxListLength},
		{"criteria", len(i.Criteria), MaxCriteria},
		{"labels", len(i.Labels), MaxListLength},
		{"with", len(i.With), MaxListLength},
	} {
		if list.length > list.most {
			return &FieldError{list.field, fmt.Sprintf("has %d entries; at most %d are allowed", list.length, list.most)}
		}
	}
	if e := cmp.Or(i.Attributes.validate(), validGoal(i)); e != nil {
		return e
	}
	for _, d := range i.DependsOn {
		if _, err := ParseIntentID(string(d)); err != nil {
			return &FieldError{"depends_on", err.Error()}
		}
	}
	if slices.Contains(i.DependsOn, i.ID) {
		return &FieldError{"depends_on", "names the intent itself"}
	}
	return nil
}

// validTitle refuses a title that is not one line of at most MaxTitle characters.
func validTitle(title string) *FieldError {
	if n := utf8.RuneCountInString(title); n > MaxTitle {
		return &FieldError{"title", fmt.Sprintf("has %d characters; at most %d are allowed", n, MaxTitle)}
	}
	return validLine("title", title, utf8.UTFMax*MaxTitle)
}

// validLine refuses a text that validText refuses, or that is more than one line.
func validLine(field, s string, most int) *FieldError {
	if e := validText(field, s, most); e != nil {
		return e
	}
	if strings.ContainsFunc(s, unicode.IsControl) {
		return &FieldError{field, "holds a control character; it must be one line of text"}
	}
	return nil
}

// validText refuses a text that is empty, too long in bytes, or not UTF-8.
func validText(field, s string, most int) *FieldError {
	switch {
	case s == "":
		return &FieldError{field, "is empty"}
	case len(s) > most:
		return &FieldError{field, fmt.Sprintf("has %d bytes; at most %d are allowed", len(s), most)}
	case !utf8.ValidString(s):
		return &FieldError{field, "is not valid UTF-8"}
	case strings.ContainsRune(s, 0):
		return &FieldError{field, "holds a NUL character"}
	}
	return nil
}
