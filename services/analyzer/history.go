package analyzer

import (
	"strings"

	"github.com/pfl-forge/pfl-forge"
)

// Bounds of a prompt.
const (
	// maxRuns bounds the earlier runs in a prompt.
	maxRuns = 40
	// maxRunFiles bounds the files of each.
	maxRunFiles = 20
	// maxNoticed bounds the observations in a prompt.
	maxNoticed = 200
	// noticedRoom bounds all observations together, in bytes.
	noticedRoom = 96 << 10
	// maxNoticeLen bounds one observation, in bytes.
	maxNoticeLen = 4 << 10
	// maxPlaces bounds the places of one observation.
	maxPlaces = 20
)

// history is the part of a prompt about earlier runs.
type history struct {
	Runs []pastRun
	// MoreRuns counts the runs that are not shown.
	MoreRuns int
	Noticed  []noticed
	// MoreNoticed counts the observations that are not shown.
	MoreNoticed int
}

// pastRun is a run that ended. Changed names the rules that changed its course.
type pastRun struct {
	forge.PastRun
	Changed string
}

// noticed is an observation with its places as text.
type noticed struct {
	forge.Observation
	Places []string
}

// newHistory returns the runs and observations of a command, within the bounds.
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

// shown returns a line for each piece of evidence.
func shown(list []forge.Evidence) []string {
	var out []string
	for _, e := range list[:min(len(list), maxPlaces)] {
		out = append(out, string(e.Type)+" "+e.Ref)
	}
	return out
}
