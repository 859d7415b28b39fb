package reflector

import (
	_ "embed" // the prompt
	"fmt"
	"strings"

	"github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/agent/prompt"
)

//go:embed prompts/reflect.md
var reflectText string

var reflectPrompt = prompt.New("reflect.md", reflectText)

// Bounds of a prompt.
const (
	// maxRuns bounds the runs in a prompt.
	maxRuns = 20
	// maxCourse bounds the lines of one run.
	maxCourse = 60
	// maxNoticed bounds the observations in a prompt.
	maxNoticed = 200
	// noticedRoom bounds all observations together, in bytes.
	noticedRoom = 96 << 10
	// maxNoticeSize bounds one observation, in bytes.
	maxNoticeSize = 4 << 10
	// maxPlaces bounds the places of one observation.
	maxPlaces = 20
	// maxProposed bounds the earlier proposals in a prompt; the newest are shown.
	maxProposed = 500
)

// reflectionData is the data of the prompt for reflections. Observations that do not
// fit are left for the next one.
type reflectionData struct {
	// Most bounds the proposals.
	Most int
	Runs []pastRun
	// MoreRuns counts the runs that are not shown.
	MoreRuns int
	Noticed  []noticed
	Proposed []forge.Proposal
}

// pastRun is a run that ended. Course has a line for everything that did not go as
// planned.
type pastRun struct {
	forge.History
	Course string
}

// noticed is an observation with its places as text.
type noticed struct {
	forge.Observation
	Places []string
}

// newReflectionData returns the data for a command, within the bounds.
func newReflectionData(cmd *forge.Command, most int) *reflectionData {
	in := cmd.Reflect()
	l := &reflectionData{Most: most, Proposed: in.Proposed[max(0, len(in.Proposed)-maxProposed):]}
	for _, h := range histories(cmd) {
		if len(l.Runs) == maxRuns {
			l.MoreRuns++
			continue
		}
		l.Runs = append(l.Runs, pastRun{h, course(&h)})
	}
	room := noticedRoom
	for _, o := range in.Observations {
		if len(o.Content) > maxNoticeSize {
			o.Content = strings.ToValidUTF8(o.Content[:maxNoticeSize], "") + "… (it is longer)"
		}
		seen := places(o.Evidence)
		if room -= len(o.Content) + len(strings.Join(seen, "\n")); room < 0 || len(l.Noticed) == maxNoticed {
			break
		}
		l.Noticed = append(l.Noticed, noticed{o, seen})
	}
	return l
}

// read returns the ids of the observations that were shown, which the result reports
// as read.
func (l *reflectionData) read() []string {
	var out []string
	for i := range l.Noticed {
		out = append(out, l.Noticed[i].ID)
	}
	return out
}

// commented is the rule by which a run remembers a comment on it. It changed nothing of the
// course, its detail has names that others chose, and no agent is told of comments.
const commented = "commented"

// course returns the failed attempts of a run, and the rules that changed its course.
func course(h *forge.History) string {
	var lines []string
	for _, s := range h.StepResults {
		if s.Outcome != "ok" {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %d: %s", s.TaskID, s.Step, s.Attempt, s.Outcome)))
		}
	}
	for _, a := range h.Adjustments {
		if a.Rule == commented {
			continue
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s rule %s: %s", a.TaskID, a.Rule, a.Detail)))
	}
	return strings.Join(lines[:min(len(lines), maxCourse)], "\n")
}

// places returns a line for each piece of evidence.
func places(list []forge.Evidence) []string {
	var out []string
	for _, e := range list[:min(len(list), maxPlaces)] {
		out = append(out, string(e.Type)+" "+e.Ref)
	}
	return out
}

// render returns the system prompt and the prompt.
func render(t *prompt.Template, data any) (system, text string, err error) {
	if system, err = t.Render("system", data); err != nil {
		return "", "", err
	}
	text, err = t.Render("prompt", data)
	return system, text, err
}
