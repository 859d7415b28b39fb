package scheduler

import (
	"slices"

	"github.com/pfl-forge/pfl-forge"
)

// State is a project's view of its intents. The zero value knows none.
type State struct {
	// Intents has every intent that ever entered or ended.
	Intents map[forge.IntentID]*Intent
	// Active are the intents that have not ended, by id.
	Active []forge.IntentID
	// Blocked are the intents that ended blocked, by id. One of them goes on by itself when
	// what it depends on gets done after all.
	Blocked []forge.IntentID
	// Pauses counts the pauses of the whole project.
	Pauses int
	// Paused says that the newest of them is not over.
	Paused bool
}

// Intent is a project's view of one intent. When a run ends, its title, plan and
// children are forgotten, and its dependencies too, unless it ended blocked. There
// is an entry of each that there ever was, so a snapshot leaves out what is zero.
type Intent struct {
	// Run is the newest run.
	Run int `json:"run,omitzero"`
	// Ends is the number of the newest end.
	Ends int `json:"ends,omitzero"`
	// Active says that the run has not ended.
	Active bool `json:"active,omitzero"`
	// Status is proposed until the plan is known, then approved; of a run that
	// ended, how it ended.
	Status forge.Status `json:"status,omitzero"`
	Title  string       `json:"title,omitzero"`
	// About has further text of the intent, by which related runs and knowledge are found.
	About string `json:"about,omitzero"`
	// DependsOn are the intents that this one waits for by its plan.
	DependsOn []forge.IntentID `json:"depends_on,omitzero"`
	Type      string           `json:"type,omitzero"`
	Parent    forge.IntentID   `json:"parent,omitzero"`
	Children  []forge.IntentID `json:"children,omitzero"`
	Source    forge.Source     `json:"source,omitzero"`
	// Generation counts the reflections between the intent and what a person wanted.
	Generation int  `json:"generation,omitzero"`
	Goal       bool `json:"goal,omitzero"`
	// Requesters are the people whose words are in the intent.
	Requesters []forge.Identity `json:"requesters,omitzero"`
	// CancelReason says why the intent is to be cancelled; empty if it is not.
	CancelReason string `json:"cancel_reason,omitzero"`
}

// IsActive reports whether a run of an intent has begun and not ended.
func (s *State) IsActive(id forge.IntentID, run int) bool {
	in := s.active(id)
	return in != nil && in.Run == run
}

// active returns an intent that has not ended, or nil.
func (s *State) active(id forge.IntentID) *Intent {
	if in := s.Intents[id]; in != nil && in.Active {
		return in
	}
	return nil
}

// IsOpen reports whether an intent has been admitted, and has not ended.
func (s *State) IsOpen(id forge.IntentID) bool { return s.active(id) != nil }

// IsKnown reports whether an intent has ever been admitted.
func (s *State) IsKnown(id forge.IntentID) bool { return s.Intents[id] != nil }

// keep replaces the entry of an intent.
func (s *State) keep(id forge.IntentID, in *Intent) {
	if s.Intents == nil {
		s.Intents = map[forge.IntentID]*Intent{}
	}
	s.Intents[id] = in
	s.Active = listed(s.Active, id, in.Active)
	s.Blocked = listed(s.Blocked, id, !in.Active && in.Status == forge.StatusBlocked && len(in.DependsOn) > 0)
}

// listed returns a list of ids with one of them, or without it.
func listed(list []forge.IntentID, id forge.IntentID, in bool) []forge.IntentID {
	i, known := slices.BinarySearch(list, id)
	switch {
	case in && !known:
		return slices.Insert(list, i, id)
	case !in && known:
		return slices.Delete(list, i, i+1)
	}
	return list
}
