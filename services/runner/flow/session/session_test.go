package session

import (
	"testing"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// A session is resumed by the attempts after the first that was in it, and by no report
// about a session before it.
func TestSession(t *testing.T) {
	names := Names{Key: forge.Key{Project: "shop", Intent: "fix"}, Created: time.Unix(1, 0)}
	attempt := func(s *Session) (string, bool) {
		var c forge.Command
		s.Assign(&c)
		return c.Session, c.Resume
	}
	var s Session
	if id, resume := attempt(&s); id != "" || resume {
		t.Errorf("before the start: %q, %t", id, resume)
	}
	s.Start(names, "fix-001", forge.StepImplement)
	first, resume := attempt(&s)
	if first == "" || resume {
		t.Errorf("the first attempt is in %q, resumed %t", first, resume)
	}
	if id, resume := attempt(&s); id != first || resume {
		t.Errorf("an attempt after one that reported nothing is in %q, resumed %t", id, resume)
	}
	s.Reported("another")
	if _, resume := attempt(&s); resume {
		t.Error("a report about another session began this one")
	}
	s.Reported(first)
	if id, resume := attempt(&s); id != first || !resume {
		t.Errorf("the second attempt is in %q, resumed %t", id, resume)
	}
	s.Start(names, "fix-001", forge.StepImplement)
	if id, resume := attempt(&s); id == first || resume {
		t.Errorf("a new session is %q, resumed %t", id, resume)
	}
	s.Reported(first)
	if _, resume := attempt(&s); resume {
		t.Error("a late report about the session before began the new one")
	}
}

// No two sessions have one name: not of other steps, tasks, intents, or of an intent that
// was made again under the same id.
func TestNamesDiffer(t *testing.T) {
	key := forge.Key{Project: "shop", Intent: "fix"}
	names := Names{Key: key, Created: time.Unix(1, 0)}
	seen := map[string]bool{}
	for _, start := range []func(*Session){
		func(s *Session) { s.Start(names, "fix-001", forge.StepImplement) },
		func(s *Session) { s.Start(names, "fix-001", forge.StepReview) },
		func(s *Session) { s.Start(names, "fix-002", forge.StepImplement) },
		func(s *Session) { s.Start(names, "", forge.StepAnalyze) },
		func(s *Session) {
			s.Start(Names{Key: key, Created: time.Unix(2, 0)}, "fix-001", forge.StepImplement)
		},
		func(s *Session) {
			s.Start(Names{Key: forge.Key{Project: "shop", Intent: "add"}, Created: names.Created}, "fix-001", forge.StepImplement)
		},
	} {
		var s Session
		start(&s)
		if s.ID == "" || seen[s.ID] {
			t.Errorf("%q is empty or was there before", s.ID)
		}
		seen[s.ID] = true
	}
}

// A recipe's steps are in no session, whatever a worker reports.
func TestNone(t *testing.T) {
	var s Session
	s.Start(Names{Key: forge.Key{Project: "shop", Intent: "fix"}, None: true}, "fix-001", forge.StepImplement)
	s.Reported("")
	if s.ID != "" || s.Begun || s.Number != 1 {
		t.Errorf("%+v", s)
	}
}
