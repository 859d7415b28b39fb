package bus

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
)

const (
	// MaxObject bounds an object, in bytes.
	MaxObject = 64 << 20

	objectChunk   = 128 << 10
	objectTimeout = time.Minute
	// storeFull is the server's code for a stream that takes no more.
	storeFull = 10077
)

// ErrObjectTooLarge says that an object has more than MaxObject bytes.
var ErrObjectTooLarge = fmt.Errorf("the object is larger than %d MiB", MaxObject>>20)

// ErrObjectsFull says that an object store has reached its bound.
var ErrObjectsFull = errors.New("the object store is full")

// Objects reads and writes the object stores: each kind of object has its place in one of
// them. Several goroutines may use it.
//
// The layout is that of NATS object stores, so that other clients read them. The client is
// not that of nats.go, which publishes the name of an object without waiting for its content:
// into a store that is full, its Put loses the old content and the new one (measured with
// v1.55). It cannot replace an object on a condition either, and reads and lists by consumers,
// which people have no right to create.
type Objects struct {
	conn *Conn
	// most bounds an object, in bytes.
	most uint64
}

// newObjects returns the Objects of a connection.
func newObjects(c *Conn) *Objects {
	return &Objects{conn: c, most: MaxObject}
}

// place is where an object is.
type place struct {
	bucket
	path string
}

func (p place) meta() string { return p.bucket.meta(p.path) }

// Put stores what r has under a name, in place of what was there; if it fails,
// that stays. Errors: ErrObjectTooLarge, ErrObjectsFull, and those of r.
func (o *Objects) Put(ctx context.Context, name ObjectName, r io.Reader) error {
	return o.do(ctx, "put", name, func(ctx context.Context, at place) error {
		before, _, err := o.info(ctx, at)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		return o.put(ctx, at, writing{before: before.NUID, content: r})
	})
}

// Get writes an object to w. After an error, what was written is not to be used.
// Error: ErrNotFound.
func (o *Objects) Get(ctx context.Context, name ObjectName, w io.Writer) error {
	return o.do(ctx, "get", name, func(ctx context.Context, at place) error {
		_, _, content, err := o.get(ctx, at)
		if err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
}

// Delete removes an object. That there is none is no error.
func (o *Objects) Delete(ctx context.Context, name ObjectName) error {
	return o.do(ctx, "delete", name, func(ctx context.Context, at place) error {
		info, _, err := o.info(ctx, at)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(o.purge(ctx, at.bucket, at.meta()), o.purge(ctx, at.bucket, at.chunk(info.NUID)))
	})
}

func (o *Objects) do(ctx context.Context, what string, name ObjectName, do func(context.Context, place) error) error {
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

// writing is what becomes of an object.
type writing struct {
	before  string  // the content that there was; empty: none
	seq     *uint64 // if not nil: only if the last message of its name is this one
	about   map[string]string
	content io.Reader
}

// put makes the content complete before the name points to it. With ErrConflict
// somebody else was faster, and nothing is changed.
func (o *Objects) put(ctx context.Context, at place, w writing) error {
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: at.path, Metadata: w.about}, Bucket: string(at.bucket), NUID: rand.Text(),
	}
	err := o.content(ctx, at, &info, w.content)
	useless := err != nil
	if err == nil {
		err = o.point(ctx, at, &info, w.seq)
		useless = errors.Is(err, ErrConflict) // after other errors the name may point to it
	}
	if useless && info.Chunks > 0 && (ctx.Err() == nil || !at.forgetsOldest()) { // otherwise it goes with age, or makes room
		_ = o.purge(context.WithoutCancel(ctx), at.bucket, at.chunk(info.NUID))
	}
	if err != nil {
		return err
	}
	if w.before != "" {
		if err := o.purge(ctx, at.bucket, at.chunk(w.before)); err != nil {
			o.conn.log.Warn("what an object was before stays until it is old", "object", at.path, "error", err)
		}
	}
	return nil
}

// point makes the name of an object point to its content.
func (o *Objects) point(ctx context.Context, at place, info *jetstream.ObjectInfo, seq *uint64) error {
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: at.meta(), Data: data, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}}
	m.Header.Set(jetstream.MsgIDHeader, info.NUID)
	if seq != nil {
		m.Header.Set(jetstream.ExpectedLastSubjSeqHeader, strconv.FormatUint(*seq, 10))
	}
	err = o.publish(ctx, at.bucket, m)
	if refused, _ := wrongSequence(err); refused {
		return ErrConflict
	}
	return err
}

// content stores what r has, and notes in info what that is.
func (o *Objects) content(ctx context.Context, at place, info *jetstream.ObjectInfo, r io.Reader) error {
	digest := sha256.New()
	for {
		var chunk bytes.Buffer
		n, err := io.CopyN(&chunk, r, objectChunk)
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return err
		}
		if info.Size += uint64(n); info.Size > o.most {
			return ErrObjectTooLarge
		}
		if n > 0 {
			digest.Write(chunk.Bytes())
			m := nats.NewMsg(at.chunk(info.NUID))
			m.Data = chunk.Bytes()
			m.Header.Set(jetstream.MsgIDHeader, info.NUID+"/"+strconv.Itoa(int(info.Chunks)))
			if err := o.publish(ctx, at.bucket, m); err != nil {
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
func (o *Objects) publish(ctx context.Context, at bucket, m *nats.Msg) error {
	full := false
	err := patiently(ctx, func(ctx context.Context) error {
		_, err := o.conn.publish(ctx, m)
		var refused *jetstream.APIError
		if full = errors.As(err, &refused) && refused.ErrorCode == storeFull; full {
			return nil
		}
		return err
	})
	if full {
		return fmt.Errorf("%w: raise max_bytes of the stream %s", ErrObjectsFull, at.stream())
	}
	return err
}

// get returns the content of an object, and the sequence of the message that names it.
// It reads again when somebody replaces the object meanwhile.
func (o *Objects) get(ctx context.Context, at place) (info jetstream.ObjectInfo, seq uint64, content []byte, err error) {
	for before := ""; ; before = info.NUID {
		if info, seq, err = o.info(ctx, at); err != nil {
			return info, seq, nil, err
		}
		content = nil
		digest := sha256.New()
		_, err = o.conn.each(ctx, at.stream(), at.chunk(info.NUID), func(m stored) error {
			digest.Write(m.Data)
			content = append(content, m.Data...)
			return nil
		})
		switch {
		case err != nil:
			return info, seq, nil, err
		case jetstream.GetObjectDigestValue(digest) == info.Digest:
			return info, seq, content, nil
		case before == info.NUID && at.forgetsOldest():
			return info, seq, nil, ErrNotFound // the first parts of it had to make room
		case before == info.NUID:
			return info, seq, nil, errors.New("its content is damaged or incomplete")
		}
	}
}

// info returns what is known of an object, and the sequence of the message that says
// so, which is not 0 where another client has deleted the object. Error: ErrNotFound.
func (o *Objects) info(ctx context.Context, at place) (info jetstream.ObjectInfo, seq uint64, err error) {
	m, err := o.conn.last(ctx, at.stream(), at.meta())
	if err != nil {
		return info, 0, err
	}
	if err := json.Unmarshal(m.Data, &info); err != nil {
		return info, m.Seq, err
	}
	if info.Deleted {
		return info, m.Seq, ErrNotFound
	}
	return info, m.Seq, nil
}

func (o *Objects) purge(ctx context.Context, at bucket, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return o.conn.api(ctx, "STREAM.PURGE."+at.stream(), map[string]string{"filter": subject}, &struct{}{})
}

// List returns the objects that a name matches, in the order of their names: empty
// fields match everything.
func (o *Objects) List(ctx context.Context, like ObjectName) ([]ObjectInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	buckets := []bucket{like.bucket()}
	if like.Kind == "" {
		buckets = []bucket{bucketObjects, bucketTranscripts}
	}
	var list []ObjectInfo
	for _, at := range buckets {
		all, err := o.conn.lastsWhere(ctx, at.stream(), at.metas(), func(subject string) bool {
			name, ok := named(at, subject)
			return ok && like.matches(name)
		})
		if err != nil {
			return nil, fmt.Errorf("list objects: %w", err)
		}
		for _, m := range all {
			var info jetstream.ObjectInfo
			if err := json.Unmarshal(m.Data, &info); err != nil || info.Deleted {
				continue
			}
			if name, ok := named(at, m.Subject); ok {
				list = append(list, ObjectInfo{name, int64(info.Size), info.Metadata})
			}
		}
	}
	slices.SortFunc(list, func(a, b ObjectInfo) int { return slices.Compare(a.fields(), b.fields()) })
	return list, nil
}
