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

// Bounds of what one reflection is told.
const (
	maxRuns       = 20
	maxCourse     = 60 // lines of one run
	maxNoticed    = 200
	noticedRoom   = 96 << 10 // bytes of all that was noticed
	maxNoticeSize = 4 << 10  // bytes of one
	maxPlaces     = 20       // of one
	maxProposed   = 500
)

// lookBack is what a reflection is made from. What there is no room for is left for the
// next one.
type reflectionData struct {
	Most     int // proposals
	Runs     []pastRun
	MoreRuns int // that are not shown
	Noticed  []noticed
	Proposed []forge.Proposal
}

// run is one that ended. Course has a line for everything that did not go as it should.
type pastRun struct {
	forge.History
	Course string
}

// noticed is what an agent noticed, and where.
type noticed struct {
	forge.Observation
	Places []string
}

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

// read returns the ids of what the reflection was shown.
func (l *reflectionData) read() []string {
	var out []string
	for i := range l.Noticed {
		out = append(out, l.Noticed[i].ID)
	}
	return out
}

// course says what did not go as it should in a run: attempts, and what the rules made
// of them.
func course(h *forge.History) string {
	var lines []string
	for _, s := range h.StepResults {
		if s.Outcome != "ok" {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %d: %s", s.TaskID, s.Step, s.Attempt, s.Outcome)))
		}
	}
	for _, a := range h.Adjustments {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s rule %s: %s", a.TaskID, a.Rule, a.Detail)))
	}
	return strings.Join(lines[:min(len(lines), maxCourse)], "\n")
}

// places lists evidence, a line for each.
func places(list []forge.Evidence) []string {
	var out []string
	for _, e := range list[:min(len(list), maxPlaces)] {
		out = append(out, string(e.Type)+" "+e.Ref)
	}
	return out
}

// render returns who the agent is, and what it has to do.
func render(t *prompt.Template, data any) (system, text string, err error) {
	if system, err = t.Render("system", data); err != nil {
		return "", "", err
	}
	text, err = t.Render("prompt", data)
	return system, text, err
}
