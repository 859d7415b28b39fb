package schedules

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/pfl-forge/pfl-forge"
)

// Max bounds the schedules of a project.
const Max = 50

// System is the system that the origin of their intents names.
const System = "schedule"

// The words of forge.Schedule.Missed.
const (
	Once = "once" // one intent stands for all times that were missed
	Skip = "skip" // there is none
)

// Validate returns the first mistake in a schedule; nil if there is none.
// Fields are named as in a file.
//
// It is asked by whoever reads a file, so that a mistake has its line, and by the
// rules, which check whatever is sent: the same measure for both, so that what one
// takes is not refused by the other. Commands are refused since a file may have been
// copied from anywhere, and dependencies since an intent of each night can name none.
func Validate(s *forge.Schedule) *forge.FieldError {
	if _, err := forge.ParseReplicaID(s.Name); err != nil {
		return &forge.FieldError{Field: "name", Reason: fmt.Sprintf("is %q; use a-z, 0-9 and hyphens, at most %d", short(s.Name), forge.MaxIDLength)}
	}
	if s.Missed != "" && s.Missed != Once && s.Missed != Skip {
		return &forge.FieldError{Field: "missed", Reason: fmt.Sprintf("is %q; it can be once or skip", short(s.Missed))}
	}
	if _, err := Parse(s.Cron, s.Zone); err != nil {
		if zone := ZoneError(""); errors.As(err, &zone) {
			return &forge.FieldError{Field: "zone", Reason: err.Error()}
		}
		return &forge.FieldError{Field: "cron", Reason: err.Error()}
	}
	if said := (forge.Intent{Settings: s.Intent.Settings}); !reflect.DeepEqual(said, s.Intent) {
		return &forge.FieldError{Field: "intent", Reason: "has more than the fields that a person sets"}
	}
	if len(s.Intent.DependsOn) > 0 {
		return &forge.FieldError{Field: "intent.depends_on", Reason: "is not for schedules; leave it out"}
	}
	if slices.ContainsFunc(s.Intent.Checks, func(c forge.Check) bool { return c.Command != "" }) {
		return &forge.FieldError{Field: "intent.criteria", Reason: "has a command; name a check of pfl-forge.yaml: {check: tests}"}
	}
	if e := Intent(s, "any", time.Unix(0, 0)).Validate(); e != nil {
		return &forge.FieldError{Field: "intent." + e.Field, Reason: e.Reason}
	}
	return nil
}

// Intent returns the intent of a schedule for one of its times. Whoever set the schedule asks for
// it: they could have asked for the same at that time by themselves, and it goes the same way. Its
// id, and the id of its event, follow from the project, the schedule's name and the time alone.
func Intent(s *forge.Schedule, project forge.ProjectID, at time.Time, by ...forge.Identity) *forge.Intent {
	instant := at.UTC().Format(time.RFC3339)
	return &forge.Intent{
		ID: forge.NewDerivedID(s.Name+"-"+at.UTC().Format(time.DateOnly), string(project), System, s.Name, instant), Project: project,
		Settings: s.Intent.Settings, Source: forge.SourceHuman, Requesters: by, CreatedAt: at.UTC(),
		Origin: forge.Origin{System: System, EventID: System + "/" + s.Name + "/" + instant, Actor: actor(by)},
	}
}

// actor returns the name of who set it last; empty in the check of a file,
// which was not applied yet.
func actor(by []forge.Identity) string {
	if len(by) == 0 {
		return ""
	}
	return by[0].Name
}

// Digest returns a text that is the same for schedules that are the same in every field, and no
// others. By it a person's file is compared with a list that has no texts. It is not kept anywhere,
// so programs of two versions may have different ones; then a schedule counts as changed once.
func Digest(s *forge.Schedule) string {
	text, err := json.Marshal(s)
	if err != nil {
		return "" // a number that is none, which Validate refuses
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// short returns the beginning of a text, for an error.
func short(text string) string {
	const most = 60
	return text[:min(most, len(text))]
}
