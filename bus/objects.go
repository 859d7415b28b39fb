package bus

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
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
	// bucketObjects is the object store; its stream is declared with the others.
	bucketObjects = "FORGE"
	streamObjects = "OBJ_" + bucketObjects

	// MaxObject bounds an object, in bytes.
	MaxObject = 64 << 20

	// maxObjects bounds all of them together, in bytes, where an operator has not
	// chosen another bound.
	maxObjects = 4 << 30
	// keepObjects is how long one stays that nobody deletes.
	keepObjects = 30 * day

	objectChunk   = 128 << 10
	objectTimeout = time.Minute
	// storeFull is the server's code for a stream that takes no more.
	storeFull = 10077
)

// ErrObjectTooLarge says that an object has more than MaxObject bytes.
var ErrObjectTooLarge = fmt.Errorf("the object is larger than %d MiB", MaxObject>>20)

// ErrObjectsFull says that the object store has reached its bound.
var ErrObjectsFull = errors.New("the object store is full: raise max_bytes of the stream " + streamObjects)

// objects declares the stream of the object store, in the form that NATS clients
// know, so that the nats command line reads it.
//
//	$O.FORGE.C.<content>      a chunk
//	$O.FORGE.M.<base64 name>  the last message says which content the object has
func objects() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name:        streamObjects,
		Description: "files that workers hand on to one another",
		Subjects:    []string{chunkSubject(">"), "$O." + bucketObjects + ".M.>"},
		MaxAge:      keepObjects,
		MaxBytes:    maxObjects,
		Discard:     jetstream.DiscardNew, // half an object is of no use
		AllowRollup: true,
		AllowDirect: true,
	}
}

func chunkSubject(content string) string { return "$O." + bucketObjects + ".C." + content }

func metaSubject(path string) string {
	return "$O." + bucketObjects + ".M." + base64.URLEncoding.EncodeToString([]byte(path))
}

// Objects is the object store. It is safe for concurrent use.
type Objects struct {
	bus  *Bus
	most uint64 // bytes of an object
}

// Objects returns the object store.
func (b *Bus) Objects() *Objects { return &Objects{b, MaxObject} }

// Put stores what r has under a name, in place of what was there; if it fails,
// that stays. Errors: ErrObjectTooLarge, ErrObjectsFull, and those of r.
func (o *Objects) Put(ctx context.Context, name ObjectName, r io.Reader) error {
	return o.do(ctx, "put", name, func(ctx context.Context, path string) error { return o.put(ctx, path, r) })
}

// Get writes an object to w. After an error, what was written is not to be used.
// Error: ErrNotFound.
func (o *Objects) Get(ctx context.Context, name ObjectName, w io.Writer) error {
	return o.do(ctx, "get", name, func(ctx context.Context, path string) error { return o.get(ctx, path, w) })
}

// Delete removes an object. That there is none is no error.
func (o *Objects) Delete(ctx context.Context, name ObjectName) error {
	return o.do(ctx, "delete", name, func(ctx context.Context, path string) error {
		info, err := o.info(ctx, path)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		return errors.Join(o.purge(ctx, metaSubject(path)), o.purge(ctx, chunkSubject(info.NUID)))
	})
}

func (o *Objects) do(ctx context.Context, what string, name ObjectName, do func(context.Context, string) error) error {
	path, err := name.path()
	if err != nil {
		return fmt.Errorf("%s object: %w", what, err)
	}
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	if err := do(ctx, path); err != nil {
		return fmt.Errorf("%s object %s: %w", what, path, err)
	}
	return nil
}

// put makes the content complete before the name points to it.
func (o *Objects) put(ctx context.Context, path string, r io.Reader) error {
	before, err := o.info(ctx, path)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	info := jetstream.ObjectInfo{ObjectMeta: jetstream.ObjectMeta{Name: path}, Bucket: bucketObjects, NUID: rand.Text()}
	if err := o.content(ctx, &info, r); err != nil {
		if info.Chunks > 0 {
			_ = o.purge(context.WithoutCancel(ctx), chunkSubject(info.NUID)) // otherwise it goes with age
		}
		return err
	}
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: metaSubject(path), Data: data, Header: nats.Header{jetstream.MsgRollup: {jetstream.MsgRollupSubject}}}
	if err := o.publish(ctx, m); err != nil {
		return err
	}
	if before.NUID != "" {
		if err := o.purge(ctx, chunkSubject(before.NUID)); err != nil {
			o.bus.log.Warn("what an object was before stays until it is old", "object", path, "error", err)
		}
	}
	return nil
}

// content stores what r has, and notes in info what that is.
func (o *Objects) content(ctx context.Context, info *jetstream.ObjectInfo, r io.Reader) error {
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
			m := nats.NewMsg(chunkSubject(info.NUID))
			m.Data = chunk.Bytes()
			m.Header.Set(jetstream.MsgIDHeader, info.NUID+"/"+strconv.Itoa(int(info.Chunks)))
			if err := o.publish(ctx, m); err != nil {
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
func (o *Objects) publish(ctx context.Context, m *nats.Msg) error {
	full := false
	err := patiently(ctx, func(ctx context.Context) error {
		_, err := o.bus.publish(ctx, m)
		var refused *jetstream.APIError
		if full = errors.As(err, &refused) && refused.ErrorCode == storeFull; full {
			return nil
		}
		return err
	})
	if full {
		return ErrObjectsFull
	}
	return err
}

// get reads again when somebody replaces the object meanwhile.
func (o *Objects) get(ctx context.Context, path string, w io.Writer) error {
	for before := ""; ; {
		info, err := o.info(ctx, path)
		if err != nil {
			return err
		}
		var content bytes.Buffer
		digest := sha256.New()
		_, err = o.bus.each(ctx, streamObjects, chunkSubject(info.NUID), func(m stored) error {
			digest.Write(m.Data)
			content.Write(m.Data)
			return nil
		})
		if err != nil {
			return err
		}
		if jetstream.GetObjectDigestValue(digest) == info.Digest {
			_, err := content.WriteTo(w)
			return err
		}
		if before == info.NUID {
			return errors.New("its content is damaged or incomplete")
		}
		before = info.NUID
	}
}

// info returns what is known of an object, or ErrNotFound.
func (o *Objects) info(ctx context.Context, path string) (info jetstream.ObjectInfo, err error) {
	m, err := o.bus.last(ctx, streamObjects, metaSubject(path))
	if err != nil {
		return info, err
	}
	if err := json.Unmarshal(m.Data, &info); err != nil {
		return info, err
	}
	if info.Deleted { // by another client
		return info, ErrNotFound
	}
	return info, nil
}

func (o *Objects) purge(ctx context.Context, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return o.bus.api(ctx, "STREAM.PURGE."+streamObjects, map[string]string{"filter": subject}, &struct{}{})
}

// List returns the objects that a name matches, in the order of their names: empty
// fields match everything.
func (o *Objects) List(ctx context.Context, like ObjectName) ([]ObjectInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, objectTimeout)
	defer cancel()
	all, err := o.bus.lasts(ctx, streamObjects, "$O."+bucketObjects+".M.>")
	if err != nil {
		return nil, fmt.Errorf("list objects: %w", err)
	}
	var list []ObjectInfo
	for _, m := range all {
		var info jetstream.ObjectInfo
		if err := json.Unmarshal(m.Data, &info); err != nil || info.Deleted {
			continue
		}
		if name, err := parseObjectName(info.Name); err == nil && like.matches(name) {
			list = append(list, ObjectInfo{name, int64(info.Size)})
		}
	}
	slices.SortFunc(list, func(a, b ObjectInfo) int { return slices.Compare(a.fields(), b.fields()) })
	return list, nil
}
