// Package pattern has regular expressions that are compiled when they are first used.
//
// A program has about a hundred of them as variables, and most of its runs use a few: each command
// of a person is a run, and so is each command that is started in a sandbox. Compiling all of
// them takes longer than many of these runs. TestPatterns makes sure that no variable is a
// [regexp.Regexp], and that all expressions are right.
package pattern

import (
	"regexp"
	"sync"
)

// Pattern is a regular expression. Its methods are those of [regexp.Regexp] with the same names.
// It is safe for concurrent use.
type Pattern struct {
	compiled func() *regexp.Regexp
}

// New returns the pattern of an expression, which is part of the program: the first use panics if
// it is wrong.
func New(expr string) *Pattern {
	return &Pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

// MatchString reports whether s contains a match.
func (p *Pattern) MatchString(s string) bool { return p.compiled().MatchString(s) }

// FindString returns the leftmost match in s; empty if there is none.
func (p *Pattern) FindString(s string) string { return p.compiled().FindString(s) }

// FindStringIndex returns where the leftmost match in s is; nil if there is none.
func (p *Pattern) FindStringIndex(s string) []int { return p.compiled().FindStringIndex(s) }

// FindStringSubmatch returns the leftmost match in s and its groups; nil if there is none.
func (p *Pattern) FindStringSubmatch(s string) []string { return p.compiled().FindStringSubmatch(s) }

// FindStringSubmatchIndex returns where the leftmost match in s and its groups are; nil if there
// is none.
func (p *Pattern) FindStringSubmatchIndex(s string) []int {
	return p.compiled().FindStringSubmatchIndex(s)
}

// FindAllString returns the matches in s, at most n unless n is below 0.
func (p *Pattern) FindAllString(s string, n int) []string { return p.compiled().FindAllString(s, n) }

// FindAllStringIndex returns where the matches in s are, at most n unless n is below 0.
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringIndex(s, n)
}

// FindAllStringSubmatch returns the matches in s and their groups, at most n unless n is below 0.
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compiled().FindAllStringSubmatch(s, n)
}

// FindAllStringSubmatchIndex returns where the matches in s and their groups are, at most n
// unless n is below 0.
func (p *Pattern) FindAllStringSubmatchIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringSubmatchIndex(s, n)
}

// ReplaceAllString returns s with each match replaced; in repl, $1 and the like are groups.
func (p *Pattern) ReplaceAllString(s, repl string) string {
	return p.compiled().ReplaceAllString(s, repl)
}

// ReplaceAllStringFunc returns s with each match replaced by what repl returns for it.
func (p *Pattern) ReplaceAllStringFunc(s string, repl func(string) string) string {
	return p.compiled().ReplaceAllStringFunc(s, repl)
}
