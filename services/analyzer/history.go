package analyzer

import (
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Bounds of what is told of the project's history.
const (
	maxRuns      = 40
	maxRunFiles  = 20
	maxNoticed   = 200
	noticedRoom  = 96 << 10 // bytes of all that was noticed
	maxNoticeLen = 4 << 10  // bytes of one
	maxPlaces    = 20       // of one
)

// history is what happened before.
type history struct {
	Runs        []pastRun
	MoreRuns    int // that are not shown
	Noticed     []noticed
	MoreNoticed int // that are not shown
}

// pastRun is a run that ended. Changed names what changed its course.
type pastRun struct {
	forge.PastRun
	Changed string
}

// noticed is what an agent noticed, and where.
type noticed struct {
	forge.Observation
	Places []string
}

func newHistory(cmd *forge.Command) history {
	var h history
	past, observations := cmd.Analyze().Past, []forge.Observation(nil)
	if in := forge.As[*forge.ObserveInput](cmd.Input); in != nil {
		past, observations = in.Past, in.Observations
	}
	for _, p := range past {
		if len(h.Runs) == maxRuns {
			h.MoreRuns++
			continue
		}
		p.Files = p.Files[:min(len(p.Files), maxRunFiles)]
		h.Runs = append(h.Runs, pastRun{p, strings.Join(p.Rules, ", ")})
	}
	room := noticedRoom
	for _, o := range observations {
		if len(o.Content) > maxNoticeLen {
			o.Content = strings.ToValidUTF8(o.Content[:maxNoticeLen], "") + "… (it is longer)"
		}
		places := shown(o.Evidence)
		if room -= len(o.Content) + len(strings.Join(places, "\n")); room < 0 || len(h.Noticed) == maxNoticed {
			h.MoreNoticed++
			continue
		}
		h.Noticed = append(h.Noticed, noticed{o, places})
	}
	return h
}

// shown lists evidence, a line for each.
func shown(list []forge.Evidence) []string {
	var out []string
	for _, e := range list[:min(len(list), maxPlaces)] {
		out = append(out, string(e.Type)+" "+e.Ref)
	}
	return out
}
