package objects

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
)

const (
	// MaxSize bounds an object, in bytes.
	MaxSize = 64 << 20

	objectChunk   = 128 << 10
	objectTimeout = time.Minute
	// storeFull is the server's code for a stream that takes no more.
	storeFull = 10077
	// emptied is how long the server keeps the message that took the place of
	// others; the least that it knows.
	emptied = "1s"
)

// ErrTooLarge says that an object has more than MaxSize bytes.
var ErrTooLarge = fmt.Errorf("the object is larger than %d MiB", MaxSize>>20)

// ErrFull says that an object store has reached its bound.
var ErrFull = errors.New("the object store is full")

// Store reads and writes the object stores: each kind of object has its place in one of
// them. Several goroutines may use it.
//
// The layout is that of NATS object stores, so that other clients read them. The client is
// not that of nats.go, which publishes the name of an object without waiting for its content:
// into a store that is full, its Put loses the old content and the new one (measured with
// v1.55). It cannot replace an object on a condition either, and reads and lists by consumers,
// which people have no right to create.
type Store struct {
	conn *conn.Conn
	// most bounds an object, in bytes.
	most uint64
}

// New returns the Store of a connection.
func New(c *conn.Conn) *Store {
	return &Store{conn: c, most: MaxSize}
}

// place names an object: its bucket, and its path there.
type place struct {
	streams.Bucket
	path string
}

// meta returns the subject of the message that describes the object.
func (p place) meta() string { return p.Bucket.Meta(p.path) }

// Put stores the content of r under a name, in place of an object that was
// there; if it fails, that one stays. Errors: ErrTooLarge, ErrFull, and those
// of r.
func (o *Store) Put(ctx context.Context, name Name, r io.Reader) error {
	return o.do(ctx, "put", name, func(ctx context.Context, at place) error {
		before, _, err := o.info(ctx, at)
		if err != nil && !errors.Is(err, conn.ErrNotFound) {
			return err
		}
		return o.put(ctx, at, writing{before: before.NUID, content: r})
	})
}

// Get writes an object to w. After an error, what was written is not to be used.
// Error: ErrNotFound.
func (o *Store) Get(ctx context.Context, name Name, w io.Writer) error {
	return o.do(ctx, "get", name, func(ctx context.Context, at place) error {
		_, _, content, err := o.get(ctx, at)
		if err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
}

// Delete removes an object. A missing one is no error.
func (o *Store) Delete(ctx context.Context, name Name) error {
	return o.do(ctx, "delete", name, func(ctx context.Context, at place) error {
		info, _, err := o.info(ctx, at)
		if errors.Is(err, conn.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(o.purge(ctx, at.Bucket, at.meta()), o.purge(ctx, at.Bucket, at.Chunk(info.NUID)))
	})
}

// do bounds a call in time, and names it in its errors.
func (o *Store) do(ctx context.Context, what string, name Name, do func(context.Context, place) error) error {
	path, err := name.path()
	if err != nil {
		return fmt.Errorf("%s object: %w", what, err)
	}
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	if err := do(ctx, place{name.bucket(), path}); err != nil {
		return fmt.Errorf("%s object %s: %w", what, path, err)
	}
	return nil
}

// writing says how an object is replaced: by which content, and on which
// condition.
type writing struct {
	// before is the content that the object had; empty for none. It is removed
	// afterwards.
	before string
	// seq, if not nil, is the sequence that the last message of the object's
	// name must have.
	seq     *uint64
	about   map[string]string
	content io.Reader
}

// put makes the content complete before the name points to it. With ErrConflict
// another writer was faster, and nothing is changed.
func (o *Store) put(ctx context.Context, at place, w writing) error {
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: at.path, Metadata: w.about}, Bucket: string(at.Bucket), NUID: rand.Text(),
	}
	err := o.content(ctx, at, &info, w.content)
	useless := err != nil
	if err == nil {
		err = o.point(ctx, at, &info, w.seq)
		useless = errors.Is(err, conn.ErrConflict) // after other errors the name may point to it
	}
	if useless && info.Chunks > 0 && (ctx.Err() == nil || !at.ForgetsOldest()) { // otherwise it goes with age, or makes room
		_ = o.purge(context.WithoutCancel(ctx), at.Bucket, at.Chunk(info.NUID))
	}
	if err != nil {
		return err
	}
	if w.before != "" {
		if err := o.purge(ctx, at.Bucket, at.Chunk(w.before)); err != nil {
			o.conn.Log.WarnContext(ctx, "what an object was before stays until it is old", "object", at.path, "error", err)
		}
	}
	return nil
}

// point makes the name of an object point to its content.
func (o *Store) point(ctx context.Context, at place, info *jetstream.ObjectInfo, seq *uint64) error {
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: at.meta(), Data: data, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}}
	m.Header.Set(jetstream.MsgIDHeader, info.NUID)
	if seq != nil {
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(*seq, 10))
	}
	err = o.publish(ctx, at.Bucket, m)
	if refused, _ := conn.WrongSequence(err); refused {
		return conn.ErrConflict
	}
	return err
}

// content stores the content of r in chunks, and fills in info.
func (o *Store) content(ctx context.Context, at place, info *jetstream.ObjectInfo, r io.Reader) error {
	digest := sha256.New()
	for {
		var chunk bytes.Buffer
		n, err := io.CopyN(&chunk, r, objectChunk)
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		if info.Size += uint64(n); info.Size > o.most {
			return ErrTooLarge
		}
		if n > 0 {
			digest.Write(chunk.Bytes())
			m := nats.NewMsg(at.Chunk(info.NUID))
			m.Data = chunk.Bytes()
			m.Header.Set(jetstream.MsgIDHeader, info.NUID+"/"+strconv.Itoa(int(info.Chunks)))
			if err := o.publish(ctx, at.Bucket, m); err != nil {
				return err
			}
			info.Chunks++
		}
		if end {
			info.Digest = jetstream.GetObjectDigestValue(digest)
			return nil
		}
	}
}

// publish stores a message that can be sent again.
func (o *Store) publish(ctx context.Context, at streams.Bucket, m *nats.Msg) error {
	full := false
	err := conn.Patiently(ctx, func(ctx context.Context) error {
		_, err := o.conn.Publish(ctx, m)
		var refused *jetstream.APIError
		if full = errors.As(err, &refused) && refused.ErrorCode == storeFull; full {
			return nil
		}
		return err
	})
	if full {
		return fmt.Errorf("%w: raise max_bytes of the stream %s", ErrFull, at.Stream())
	}
	return err
}

// get returns the content of an object, and the sequence of the message that names it.
// It reads again when another writer replaces the object meanwhile.
func (o *Store) get(ctx context.Context, at place) (info jetstream.ObjectInfo, seq uint64, content []byte, err error) {
	for before := ""; ; before = info.NUID {
		if info, seq, err = o.info(ctx, at); err != nil {
			return info, seq, nil, err
		}
		content = nil
		digest := sha256.New()
		err = o.conn.Content(ctx, at.Stream(), at.Chunk(info.NUID), at.meta(), info.NUID, func(m conn.Stored) error {
			digest.Write(m.Data)
			content = append(content, m.Data...)
			return nil
		})
		switch {
		case err != nil:
			return info, seq, nil, err
		case jetstream.GetObjectDigestValue(digest) == info.Digest:
			return info, seq, content, nil
		case before == info.NUID && at.ForgetsOldest():
			return info, seq, nil, conn.ErrNotFound // the first parts of it had to make room
		case before == info.NUID:
			return info, seq, nil, errors.New("its content is damaged or incomplete")
		}
	}
}

// info returns the description of an object, and the sequence of the last message on its name,
// which is not 0 where another client has deleted the object. Error: ErrNotFound.
func (o *Store) info(ctx context.Context, at place) (info jetstream.ObjectInfo, seq uint64, err error) {
	m, err := o.conn.Last(ctx, at.Stream(), at.meta())
	if err != nil {
		return info, 0, err
	}
	if _, info, err = Newest(ctx, o.conn, at.Bucket, m); err == nil && info.Deleted {
		err = conn.ErrNotFound
	}
	return info, m.Seq, err
}

// Newest returns the newest message that describes the object on whose name the
// last one is, with the description. That is the last one, unless the server has
// stored something else there: an acknowledgement, to which a sender may give any
// subject. It takes nothing from what was there before it. Error: ErrNotFound.
func Newest(ctx context.Context, c *conn.Conn, at streams.Bucket, last conn.Stored) (newest conn.Stored, info jetstream.ObjectInfo, err error) {
	if info, ours := described(at, &last); ours {
		return last, info, nil
	}
	found := false
	_, err = c.Each(ctx, at.Stream(), last.Subject, func(m conn.Stored) error {
		if before, ours := described(at, &m); ours {
			newest, info, found = m, before, true
		}
		return nil
	})
	if err == nil && !found {
		err = conn.ErrNotFound
	}
	return newest, info, err
}

// described returns the description of an object that a message is, and whether
// it is one of the object on whose name it is.
func described(at streams.Bucket, m *conn.Stored) (info jetstream.ObjectInfo, ours bool) {
	err := json.Unmarshal(m.Data, &info)
	return info, err == nil && info.NUID != "" && at.Meta(info.Name) == m.Subject
}

// purge removes the messages of a subject.
//
// Where the server makes room by itself, a message takes the place of all before it on
// its subject, and goes by itself. So no account needs a right to purge what transcripts
// and changes are in, a call that by the slightest mistake, or without a text, takes
// everything. A bucket that refuses more when it is full would refuse that message, too.
func (o *Store) purge(ctx context.Context, at streams.Bucket, subject string) error {
	if at.ForgetsOldest() {
		m := &nats.Msg{Subject: subject, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}, jetstream.MsgTTLHeader: {emptied}}}
		return o.publish(ctx, at, m)
	}
	ctx, cancel := context.WithTimeout(ctx, conn.RequestTimeout)
	defer cancel()
	return o.conn.API(ctx, "STREAM.PURGE."+at.Stream(), map[string]string{"filter": subject}, &struct{}{})
}

// List returns the objects that a name matches, in the order of their names: empty
// fields match everything.
func (o *Store) List(ctx context.Context, like Name) ([]Info, error) {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	buckets := []streams.Bucket{like.bucket()}
	if like.Kind == "" {
		buckets = []streams.Bucket{streams.BucketObjects, streams.BucketTranscripts}
	}
	var list []Info
	for _, at := range buckets {
		all, err := o.conn.LastsWhere(ctx, at.Stream(), at.Metas(), func(subject string) bool {
			name, ok := Named(at, subject)
			return ok && like.matches(name)
		})
		if err != nil {
			return nil, fmt.Errorf("list objects: %w", err)
		}
		for _, m := range all {
			name, ok := Named(at, m.Subject)
			_, info, err := Newest(ctx, o.conn, at, m)
			switch {
			case !ok, errors.Is(err, conn.ErrNotFound):
				continue
			case err != nil:
				return nil, fmt.Errorf("list objects: %w", err)
			}
			if !info.Deleted {
				list = append(list, Info{name, int64(info.Size), info.Metadata})
			}
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return slices.Compare(a.fields(), b.fields()) })
	return list, nil
}
