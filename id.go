package forge

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
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

// IDError says why a text is no id.
type IDError struct {
	Kind   string // "intent", "project", ...
	Value  string
	Reason string
}

func (e *IDError) Error() string {
	v := e.Value
	if len(v) > MaxIDLength {
		v = v[:MaxIDLength] + "..."
	}
	return fmt.Sprintf("%s id %q %s", e.Kind, v, e.Reason)
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

func checkID(kind, s string) error {
	bad := func(reason string) error { return &IDError{Kind: kind, Value: s, Reason: reason} }
	switch {
	case s == "":
		return bad("is empty")
	case len(s) > MaxIDLength:
		return bad(fmt.Sprintf("has %d characters; at most %d are allowed", len(s), MaxIDLength))
	case s[0] == '-':
		return bad("must start with a letter or a digit")
	}
	for i := range len(s) {
		c := s[i]
		if c == '-' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			continue
		}
		return bad(fmt.Sprintf("holds %q at position %d; only a-z, 0-9 and - are allowed", c, i+1))
	}
	return nil
}

// Slug makes an id out of free text: lower case, hyphens for what an id cannot
// hold, at most MaxIDLength bytes. It is empty if nothing of s can be kept.
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
