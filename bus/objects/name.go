package objects

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// Kind says what an object is.
type Kind string

// The kinds of objects.
const (
	// Session has the files with which an agent goes on with a conversation.
	Session Kind = "session"
	// Transcript has the lines of an attempt: NDJSON, compressed by gzip.
	Transcript Kind = "transcript"
	// Patch has the change of an attempt, compressed by gzip; see package patch.
	Patch Kind = "patch"
	// Snapshot has the state of a project's machine. It has no intent, and its
	// ID names the rules that led to it.
	Snapshot Kind = "snapshot"
	// Open is the list of all intents of which more is to come. It is of no
	// project, and its ID names the rules of the program that made it.
	Open Kind = "open"
)

// Name names an object.
type Name struct {
	// Project and Intent are those that it is about; a snapshot has no intent.
	Project forge.ProjectID
	Intent  forge.IntentID
	// Task is empty for an object of the whole intent.
	Task forge.TaskID
	Kind Kind
	// ID tells several of a kind apart, such as a session's id. It has the form
	// of an intent's id, or is empty.
	ID string
}

// TranscriptName names the transcript of an attempt, of all its claims.
func TranscriptName(to forge.Key, a forge.Attempt) Name {
	step := strings.ReplaceAll(string(a.Step), "_", "-") // an id has no underscores, and no step has a hyphen
	return Name{
		Project: to.Project, Intent: to.Intent, Task: a.Task, Kind: Transcript, ID: fmt.Sprintf("%s-%d", step, a.Number),
	}
}

// PatchName names the change of an attempt. Its id is in the name, so that a
// claim that ended late does not take the place of the one that counts.
func PatchName(to forge.Key, a forge.Attempt, patchID string) Name {
	return Name{
		Project: to.Project, Intent: to.Intent, Task: a.Task, Kind: Patch, ID: fmt.Sprintf("%s-%d-%.16s", a.Step, a.Number, patchID),
	}
}

// Attempt returns the attempt whose transcript it is; false if it is none.
func (n Name) Attempt() (a forge.Attempt, ok bool) {
	i := max(strings.LastIndexByte(n.ID, '-'), 0)
	step, err := forge.ParseStep(strings.ReplaceAll(n.ID[:i], "-", "_"))
	if err != nil {
		return a, false
	}
	a = forge.Attempt{Task: n.Task, Step: step}
	a.Number, err = strconv.Atoi(n.ID[i+1:])
	return a, err == nil && a.Number > 0 && n == TranscriptName(forge.Key{Project: n.Project, Intent: n.Intent}, a)
}

// bucket is where objects of the kind are.
func (n Name) bucket() streams.Bucket {
	switch n.Kind {
	case Transcript, Patch:
		return streams.BucketTranscripts
	case Snapshot, Open:
		return streams.BucketSnapshots
	default:
		return streams.BucketObjects
	}
}

// Info describes an object without its content.
type Info struct {
	Name
	// Size is that of the content, in bytes.
	Size int64
	// About has the notes of its writer.
	About map[string]string
}

// path is the name in the bucket, or an error if a part is no id.
//
//	<project or ->/<intent or ->/<task or ->/<kind>/<id or ->
func (n Name) path() (string, error) {
	project, intent, err := n.owner()
	if err != nil {
		return "", err
	}
	task, id := subjects.None, subjects.None
	if n.Task != "" {
		if _, err := forge.ParseTaskID(string(n.Task)); err != nil {
			return "", err
		}
		task = string(n.Task)
	}
	switch n.Kind {
	case Session, Snapshot, Open:
	case Patch:
		if n.Task == "" || n.ID == "" {
			return "", fmt.Errorf("%q of task %q names no patch", n.ID, n.Task)
		}
	case Transcript:
		if _, ok := n.Attempt(); !ok {
			return "", fmt.Errorf("%q names no attempt's transcript", n.ID)
		}
	default:
		return "", fmt.Errorf("unknown kind of object %q", n.Kind)
	}
	if n.ID != "" {
		if _, err := forge.ParseIntentID(n.ID); err != nil {
			return "", fmt.Errorf("object: %w", err)
		}
		id = n.ID
	}
	return strings.Join([]string{project, intent, task, string(n.Kind), id}, "/"), nil
}

// owner returns the first two parts of the path: the intent that the object is
// of, or the project alone, or neither.
func (n Name) owner() (project, intent string, err error) {
	switch n.Kind {
	case Snapshot:
		if _, err := forge.ParseProjectID(string(n.Project)); err != nil || n.Intent != "" || n.Task != "" {
			return "", "", fmt.Errorf("a snapshot is of a project, and not of %q, %q, %q", n.Project, n.Intent, n.Task)
		}
		return string(n.Project), subjects.None, nil
	case Open:
		if n.Project != "" || n.Intent != "" || n.Task != "" {
			return "", "", fmt.Errorf("the list of open intents is of all, and not of %q, %q, %q", n.Project, n.Intent, n.Task)
		}
		return subjects.None, subjects.None, nil
	default:
		return string(n.Project), string(n.Intent), subjects.CheckIntent(forge.Key{Project: n.Project, Intent: n.Intent})
	}
}

// parseName is the reverse of path.
func parseName(path string) (Name, error) {
	t := strings.Split(path, "/")
	if len(t) != 5 {
		return Name{}, fmt.Errorf("%q names no object", path)
	}
	n := Name{Kind: Kind(t[3])}
	if t[0] != subjects.None {
		n.Project = forge.ProjectID(t[0])
	}
	if t[1] != subjects.None {
		n.Intent = forge.IntentID(t[1])
	}
	if t[2] != subjects.None {
		n.Task = forge.TaskID(t[2])
	}
	if t[4] != subjects.None {
		n.ID = t[4]
	}
	again, err := n.path()
	if err == nil && again != path {
		err = fmt.Errorf("%q names no object", path)
	}
	return n, err
}

func (n Name) fields() []string {
	return []string{string(n.Project), string(n.Intent), string(n.Task), string(n.Kind), n.ID}
}

// matches reports whether every field that is set is that of the other name.
func (n Name) matches(other Name) bool {
	theirs := other.fields()
	for i, field := range n.fields() {
		if field != "" && field != theirs[i] {
			return false
		}
	}
	return true
}

// Named is the reverse of streams.Bucket.Meta; false if the subject names no object of this bucket.
func Named(b streams.Bucket, subject string) (Name, bool) {
	path, err := base64.URLEncoding.DecodeString(strings.TrimPrefix(subject, "$O."+string(b)+".M."))
	if err != nil {
		return Name{}, false
	}
	name, err := parseName(string(path))
	return name, err == nil && name.bucket() == b
}
