package streams

import (
	"encoding/base64"

	"github.com/nats-io/nats.go/jetstream"
)

// Bucket is an object store. Its stream has the form that NATS clients know, so that
// the nats command line reads it.
//
//	$O.<bucket>.C.<content>      a chunk
//	$O.<bucket>.M.<base64 name>  the last message says which content the object has
type Bucket string

const (
	// BucketObjects holds files that workers hand on to one another.
	BucketObjects Bucket = "FORGE"
	// BucketTranscripts holds whole transcripts.
	BucketTranscripts Bucket = "FORGE_TRANSCRIPTS"
	// BucketSnapshots holds the states of machines, which spare runners a fold.
	// Only runners write there: who could write a state could write decisions.
	BucketSnapshots Bucket = "FORGE_SNAPSHOTS"
)

const (
	// maxObjects bounds the files that workers hand on, in bytes, where an operator has not
	// chosen another bound, and keepObjects how long an object stays that is not deleted.
	maxObjects  = 4 << 30
	keepObjects = 30 * day

	// maxStoredTranscripts and keepStoredTranscripts are the same of whole transcripts.
	maxStoredTranscripts  = 1 << 30
	keepStoredTranscripts = 90 * day

	// keepSnapshots is how long a snapshot stays of which there is no newer
	// one. One that is gone is made again.
	keepSnapshots = 30 * day
)

// Stream returns the name of the bucket's stream.
func (b Bucket) Stream() string { return "OBJ_" + string(b) }

// Chunk returns the subject of the chunks of a content, or of all with a wildcard.
func (b Bucket) Chunk(content string) string { return "$O." + string(b) + ".C." + content }

// Metas returns the filter that matches the names of all objects.
func (b Bucket) Metas() string { return "$O." + string(b) + ".M.>" }

// Meta returns the subject of the message that names an object.
func (b Bucket) Meta(path string) string {
	return "$O." + string(b) + ".M." + base64.URLEncoding.EncodeToString([]byte(path))
}

// ForgetsOldest says that objects may lose their content to newer ones.
func (b Bucket) ForgetsOldest() bool { return b == BucketTranscripts }

// declare returns the stream of a bucket, as clients of NATS object stores
// expect it.
func (b Bucket) declare(description string) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: b.Stream(), Description: description, Subjects: []string{b.Chunk(">"), b.Metas()}, AllowRollup: true, AllowDirect: true,
	}
}

// objects declares the stream of what workers hand on. When it is full nothing more is
// stored: half an object is of no use.
func objects() jetstream.StreamConfig {
	cfg := BucketObjects.declare("files that workers hand on to one another")
	cfg.MaxAge, cfg.MaxBytes, cfg.Discard = keepObjects, maxObjects, jetstream.DiscardNew
	return cfg
}

// snapshots declares the stream of the states of machines. It is not part of a backup.
// It needs no bound, and no room set aside for it: there is one snapshot of each
// project and version of the rules, a small part of the journal that it was made of.
func snapshots() jetstream.StreamConfig {
	cfg := BucketSnapshots.declare("states of machines, which spare a runner the reading of whole journals at its start")
	cfg.MaxAge = keepSnapshots
	return cfg
}

// storedTranscripts declares the stream of whole transcripts. The server itself makes
// room in it, whoever writes: the oldest message goes first, and an object whose first
// part is gone counts as gone.
func storedTranscripts() jetstream.StreamConfig {
	cfg := BucketTranscripts.declare("whole transcripts of attempts that have ended")
	cfg.MaxAge, cfg.MaxBytes, cfg.AllowMsgTTL = keepStoredTranscripts, maxStoredTranscripts, true
	return cfg
}
