package subjects

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
)

// TranscriptFilter says which transcripts; empty fields match everything.
type TranscriptFilter struct {
	Project forge.ProjectID
	Intent  forge.IntentID
	Task    forge.TaskID
	Step    forge.Step
	// Number is that of the attempt.
	Number int
}

// Transcript names the transcript of an attempt.
func Transcript(to forge.Key, a forge.Attempt) (string, error) {
	if err := CheckIntent(to); err != nil {
		return "", err
	}
	like := TranscriptFilter{Project: to.Project, Intent: to.Intent, Task: a.Task, Step: a.Step, Number: a.Number}
	if a.Step == "" || a.Number < 1 || a.Claim < 1 {
		return "", fmt.Errorf("%s is no attempt", a)
	}
	subject, err := Transcripts(like)
	t := strings.Split(subject, ".")
	if a.Task == "" {
		t[4] = None
	}
	t[7] = strconv.Itoa(a.Claim)
	return strings.Join(t, "."), err
}

// EveryTranscript matches the transcripts of all attempts.
const EveryTranscript = "forge.transcript.*.*.*.*.*.*"

// Transcripts matches transcripts.
func Transcripts(f TranscriptFilter) (string, error) {
	t := []string{"forge", "transcript", "*", "*", "*", "*", "*", "*"}
	var errs []error
	set := func(i int, value string, err error) {
		t[i] = value
		errs = append(errs, err)
	}
	if f.Project != "" {
		id, err := forge.ParseProjectID(string(f.Project))
		set(2, string(id), err)
	}
	if f.Intent != "" {
		id, err := forge.ParseIntentID(string(f.Intent))
		set(3, string(id), err)
	}
	if f.Task != "" {
		id, err := forge.ParseTaskID(string(f.Task))
		set(4, string(id), err)
	}
	if f.Step != "" {
		step, err := forge.ParseStep(string(f.Step))
		set(5, string(step), err)
	}
	if f.Number > 0 {
		set(6, strconv.Itoa(f.Number), nil)
	}
	return strings.Join(t, "."), errors.Join(errs...)
}

// ParseTranscript is the reverse of Transcript.
func ParseTranscript(s string) (to forge.Key, a forge.Attempt, err error) {
	t, err := Tokens(s, "forge.transcript.", 6)
	if err != nil {
		return to, a, err
	}
	to = forge.Key{Project: forge.ProjectID(t[0]), Intent: forge.IntentID(t[1])}
	a = forge.Attempt{Step: forge.Step(t[3])}
	if t[2] != None {
		a.Task = forge.TaskID(t[2])
	}
	if a.Number, err = strconv.Atoi(t[4]); err != nil {
		return to, a, err
	}
	if a.Claim, err = strconv.Atoi(t[5]); err != nil {
		return to, a, err
	}
	if again, err := Transcript(to, a); err != nil || again != s {
		return to, a, fmt.Errorf("%q is no transcript's subject", s)
	}
	return to, a, nil
}
