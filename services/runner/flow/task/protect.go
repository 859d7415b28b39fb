package task

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/internal/pathpattern"
	"github.com/pfl-forge/pfl-forge/services/runner/flow/approval"
)

// protectedFiles returns why a person has to approve a candidate: the files that one of the
// patterns is about, then what the worker found that counts like these.
func protectedFiles(patterns []string, c *forge.Rebase) []string {
	var list []string
	for _, f := range c.Files {
		if pathpattern.Any(patterns, f) {
			list = append(list, f)
		}
	}
	return slices.Concat(list, c.Guarded)
}

// Protects reports whether the candidate changes protected paths.
func (t Pair) Protects(p *forge.Policy) bool {
	return len(protectedFiles(p.ProtectedPaths, t.Candidate)) > 0
}

// guarded says why a person has to approve the candidate; why is empty if none has to.
func (t Pair) guarded(x *Turn) (detail, why string) {
	if list := protectedFiles(x.Policy.ProtectedPaths, t.Candidate); len(list) > 0 {
		detail = strings.Join(list, ", ")
		why = "it changes what only a person may approve (policy.protected_paths): " + detail
	}
	if t.Adopted != nil && x.Intent.Recipe != "" { // its check is all that looks at it, and knows only what the recipe makes
		detail = strings.TrimSuffix("a commit of another one; "+detail, "; ")
		why = strings.TrimSuffix("it has a commit of another one, which no reviewer reads in a change of a recipe; "+why, "; ")
	}
	if t.Disputes >= maxDisputes {
		detail = strings.TrimSuffix("its reviewers disagree; "+detail, "; ")
		why = strings.TrimSuffix("its reviewers disagree; "+why, "; ")
	}
	return detail, why
}

// clearance names all that a person approves in a candidate: its patch, and why it was asked for.
// Empty: it cannot be approved before it is made.
func clearance(c *forge.Rebase) string {
	return strings.Join(append([]string{c.PatchID}, c.Guarded...), "\n")
}

// Clearance is an approval of a candidate.
type Clearance struct {
	// Name is the clearance of the candidate; empty: none was approved.
	Name string
	// By are those who did.
	By *approval.Granted
}

// Of returns by whom a candidate was approved in spite of protected paths; nil if it was
// not, or if that was not needed.
func (c *Clearance) Of(candidate *forge.Rebase) *approval.Granted {
	if candidate == nil || c.Name == "" || c.Name != clearance(candidate) {
		return nil
	}
	return c.By
}

// HashChanges names the candidates of tasks, so that an approval is of exactly
// those.
func HashChanges(tasks []*Task) string {
	h := sha256.New()
	for _, t := range tasks {
		fmt.Fprintf(h, "%q %q\n", t.ID, clearance(t.Candidate))
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}
