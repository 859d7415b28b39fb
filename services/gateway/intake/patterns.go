package intake

import (
	"regexp"
	"regexp/syntax"
)

// patternBounds bounds the cost of the patterns of a file of rules. RE2 takes a time that
// grows with the size of the pattern times the length of the text, so that both need a bound.
type patternBounds struct {
	// each bounds one pattern, and all those of the file together, as instructions of its program.
	each, all int
	// text bounds the text that they see, in bytes.
	text int
}

// maxPattern bounds how a pattern is written, in bytes.
const maxPattern = 500

var (
	operatorsPatterns = patternBounds{each: 1000, all: 10_000, text: 64 << 10}
	// A repository's file is that of strangers: all of its patterns together
	// cost less than a second.
	repositorysPatterns = patternBounds{each: 1000, all: 1000, text: 16 << 10}
)

// compile compiles the patterns of one file, and counts what they cost.
type compile struct {
	patternBounds

	used int
}

// pattern compiles a regular expression; nil if there is none. One that is too
// large is not compiled: the program of a short pattern can be long.
func (c *compile) pattern(wrong func(field, format string, args ...any), field, s string) *regexp.Regexp {
	if s == "" {
		return nil
	}
	if len(s) > maxPattern {
		wrong(field, "has %d bytes; at most %d are allowed", len(s), maxPattern)
		return nil
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		wrong(field, "is not a regular expression: %v", err)
		return nil
	}
	size := instructions(tree)
	c.used += size
	switch {
	case size > c.each:
		wrong(field, "is too large: it has %d instructions, repetitions written out; at most %d are allowed", size, c.each)
		return nil
	case c.used > c.all:
		wrong(field, "is too large: with it the patterns of the file have %d instructions; at most %d are allowed", c.used, c.all)
		return nil
	}
	re, err := regexp.Compile(s)
	if err != nil {
		wrong(field, "is not a regular expression: %v", err)
	}
	return re
}

// instructions returns how long the program of a regular expression is at most, about.
func instructions(re *syntax.Regexp) int {
	n := max(1, len(re.Rune))
	if re.Op == syntax.OpCharClass {
		n = 1 // its runes are the ends of ranges
	}
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min+1, re.Max)
	}
	return n
}
