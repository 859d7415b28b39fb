package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxIDLength bounds an intent's, a project's and a replica's id, in bytes: an
// id becomes a file name, a branch and a NATS subject token.
const MaxIDLength = 64

// ProjectID names a repository under pfl-forge's care.
type ProjectID string

// IntentID names an intent within its project; it is the stem of its file.
type IntentID string

// TaskID names a task: its intent's id, a hyphen, and three digits or more.
type TaskID string

// ReplicaID names one running copy of a worker service.
type ReplicaID string

// IDError is returned for a text that is not an id.
type IDError struct {
	// Kind is the kind of id: intent, project, task or replica.
	Kind string
	// Value is the text that is no id.
	Value string
	// Reason says why, to go after the value.
	Reason string
}

// Short returns the refused text, cut after so many characters.
func (e *IDError) Short(most int) string {
	n := 0
	for i := range e.Value {
		if n == most {
			return e.Value[:i] + "..."
		}
		n++
	}
	return e.Value
}

func (e *IDError) Error() string {
	return fmt.Sprintf("%s id %q %s", e.Kind, e.Short(MaxIDLength), e.Reason)
}

// ParseProjectID returns s as a project's id, or an *IDError.
func ParseProjectID(s string) (ProjectID, error) {
	return ProjectID(s), checkID("project", s)
}

// ParseIntentID returns s as an intent's id, or an *IDError.
func ParseIntentID(s string) (IntentID, error) {
	return IntentID(s), checkID("intent", s)
}

// ParseReplicaID returns s as a replica's id, or an *IDError.
func ParseReplicaID(s string) (ReplicaID, error) {
	return ReplicaID(s), checkID("replica", s)
}

// ParseTaskID returns s as a task's id, or an *IDError.
func ParseTaskID(s string) (TaskID, error) {
	i := strings.LastIndexByte(s, '-')
	if i < 0 || len(s)-i-1 < 3 {
		return "", &IDError{Kind: "task", Value: s, Reason: "must be an intent's id, a hyphen and three digits"}
	}
	if n, err := strconv.Atoi(s[i+1:]); err != nil || n <= 0 || string(NewTaskID(IntentID(s[:i]), n)) != s {
		return "", &IDError{Kind: "task", Value: s, Reason: "must end in a hyphen and a number such as 001"}
	}
	return TaskID(s), checkID("task", s[:i])
}

// NewTaskID returns the id of an intent's n-th task, n counted from 1.
func NewTaskID(intent IntentID, n int) TaskID {
	return TaskID(fmt.Sprintf("%s-%03d", intent, n))
}

// Intent returns the intent that the task belongs to; empty if it is no task's id.
func (id TaskID) Intent() IntentID {
	i := strings.LastIndexByte(string(id), '-')
	if i < 0 {
		return ""
	}
	return IntentID(id[:i])
}

// NewDerivedID returns the id of an intent that follows from others: readable
// words, and a hash of what it follows from, so that two never meet.
func NewDerivedID(words string, from ...string) IntentID {
	h := sha256.New()
	for _, f := range from {
		h.Write(append([]byte(f), 0))
	}
	tail := hex.EncodeToString(h.Sum(nil))[:10]
	head := Slug(words)
	if most := MaxIDLength - len(tail) - 1; len(head) > most {
		head = head[:most]
	}
	if head = strings.TrimRight(head, "-"); head == "" {
		return IntentID(tail)
	}
	return IntentID(head + "-" + tail)
}

// checkID returns an *IDError unless s is an id. It counts characters, not bytes.
func checkID(kind, s string) error {
	bad := func(format string, args ...any) error {
		return &IDError{Kind: kind, Value: s, Reason: fmt.Sprintf(format, args...)}
	}
	switch {
	case s == "":
		return bad("is empty")
	case s[0] == '-':
		return bad("must start with a letter or a digit")
	case utf8.RuneCountInString(s) > MaxIDLength:
		return bad("has %d characters; at most %d are allowed", utf8.RuneCountInString(s), MaxIDLength)
	}
	for i, c := range []rune(s) {
		if c == '-' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			continue
		}
		return bad("holds %q at position %d; only a-z, 0-9 and - are allowed", c, i+1)
	}
	return nil
}

// Slug returns an id made of the ASCII letters and digits of s: in lower case, with a
// hyphen for whatever stands between them, at most MaxIDLength bytes. It is empty if s has
// none. What people write is spelled in ASCII first, by package internal/slug.
func Slug(s string) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToLower(s) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			if gap && b.Len() > 0 {
				b.WriteByte('-')
			}
			gap = false
			b.WriteRune(r)
		} else {
			gap = true
		}
		if b.Len() >= MaxIDLength-1 {
			break
		}
	}
	return b.String()
}
