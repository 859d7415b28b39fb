package demo

import (
	"fmt"
	"time"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/cli/kit"
	"github.com/pfl-forge/pfl-forge/cmd/pfl-forge/internal/render"
	"github.com/pfl-forge/pfl-forge/git"
)

// demoDoc is the outcome of the demo, as programs read it.
type demoDoc struct {
	Dir     string      `json:"dir"     yaml:"dir"`
	OK      bool        `json:"ok"      yaml:"ok"`
	Seconds float64     `json:"seconds" yaml:"seconds"`
	Scenes  []demoScene `json:"scenes"  yaml:"scenes"`

	// Commits are those of main, the newest first.
	Commits []demoCommit  `json:"commits" yaml:"commits"`
	Waiting []demoWaiting `json:"waiting" yaml:"waiting"`

	// Next are commands for when those of Waiting are done.
	Next []string `json:"next" yaml:"next"`
}

// demoScene is one thing that the demo shows, and how what happened differs from the plan.
type demoScene struct {
	Name    string   `json:"name"              yaml:"name"`
	Shows   string   `json:"shows"             yaml:"shows"`
	Fact    string   `json:"fact"              yaml:"fact"`
	Differs []string `json:"differs,omitempty" yaml:"differs,omitempty"`
}

// demoCommit is a commit that the demo made on the base branch.
type demoCommit struct {
	Commit  git.OID `json:"commit"  yaml:"commit"`
	Subject string  `json:"subject" yaml:"subject"`
}

// demoWaiting is an intent that waits for a person when the demo has ended.
type demoWaiting struct {
	ID      forge.IntentID `json:"id"      yaml:"id"`
	Why     string         `json:"why"     yaml:"why"`
	Command string         `json:"command" yaml:"command"` // one thing that a person can do
}

// demoDocOf returns the outcome of the demo. Its commands are called as by says.
func demoDocOf(dir string, took time.Duration, r *Report, by kit.Invocation) *demoDoc {
	doc := &demoDoc{Dir: dir, OK: r.OK(), Seconds: float64(took.Milliseconds()) / 1000, Waiting: []demoWaiting{}}
	for _, s := range r.Scenes {
		doc.Scenes = append(doc.Scenes, demoScene(s))
	}
	for _, l := range r.Log {
		doc.Commits = append(doc.Commits, demoCommit{l.Commit, l.Subject})
	}
	for i := range r.Views {
		if v := &r.Views[i]; v.Summary.Waiting != "" {
			doc.Waiting = append(doc.Waiting, demoWaiting{v.Intent.ID, demoWhy(v), by.Command(dir, demoDecision(v)...)})
		}
	}
	doc.Next = []string{by.Command(dir, "run"), by.Command(dir, "status")}
	return doc
}

// demoDecision returns the arguments of the command by which an intent of the demo goes on.
func demoDecision(v *forge.View) []string {
	id := string(v.Intent.ID)
	switch v.Summary.Waiting {
	case forge.WaitingApproval:
		return []string{"approve", id, "--plan", v.Summary.Plan}
	case forge.WaitingClarification:
		for n, c := range v.Intent.Clarifications {
			if c.Answer == nil && len(c.SuggestedAnswers) > 0 {
				return []string{"answer", id, fmt.Sprint(n + 1), c.SuggestedAnswers[0]}
			}
		}
	case forge.WaitingDirty, forge.WaitingFailed, forge.WaitingBudget, forge.WaitingPaused, forge.WaitingBase, forge.WaitingPull:
	}
	return []string{"show", id}
}

// demoWhy returns the reason for which an intent of the demo waits.
func demoWhy(v *forge.View) string {
	for _, c := range v.Intent.Clarifications {
		if c.Answer == nil {
			return kit.Safe(c.Question)
		}
	}
	return kit.Safe(render.Doing(&v.Summary))
}
