package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/journal"
)

const (
	// silence bounds the wait for the next part of an archive.
	silence = 30 * time.Second
	// tries is how often a stream is copied that breaks off, such as with its
	// leader.
	tries = 3
)

// Store makes backups of a server, and restores them. Its account needs the
// rights of the role backup, or restore.
type Store struct {
	conn    *conn.Conn
	journal *journal.Journal
}

// New returns a Store.
func New(c *conn.Conn, j *journal.Journal) *Store { return &Store{c, j} }

// Write makes a backup in a folder that must not exist, and calls done with
// each stream. When it fails there is no such folder.
func (s *Store) Write(ctx context.Context, dir string, done func(Stream)) (*Manifest, error) {
	return s.write(ctx, dir, "", done)
}

// write is Write for a backup whose manifest has a name.
func (s *Store) write(ctx context.Context, dir, name string, done func(Stream)) (m *Manifest, err error) {
	if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s is there already; name a folder that is not", dir)
	}
	// What is not complete has another name. Secrets may be in it: transcripts,
	// and texts of people.
	part, err := os.MkdirTemp(filepath.Dir(filepath.Clean(dir)), partPattern(dir, name))
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(part))
		}
	}()
	m = &Manifest{Format: format, Name: name, Begun: time.Now().UTC(), Server: s.conn.NC.ConnectedServerVersion()}
	for _, name := range streams.Copied() {
		one, err := s.copyStream(ctx, name, part)
		if err != nil {
			return nil, fmt.Errorf("copy stream %s: %w", name, err)
		}
		m.Streams = append(m.Streams, *one)
		done(*one)
	}
	m.Ended = time.Now().UTC()
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := writeFile(filepath.Join(part, manifestFile), append(data, '\n')); err != nil {
		return nil, err
	}
	if err := syncDir(part); err != nil {
		return nil, err
	}
	if err := os.Rename(part, dir); err != nil {
		return nil, err
	}
	return m, syncDir(filepath.Dir(filepath.Clean(dir)))
}

// partPattern returns the pattern for the name of a backup that is not
// complete. Only that of WriteInto, which has the lock of the folder, fits
// partName: no other call may take it for what was left of one.
func partPattern(dir, name string) string {
	if name == "" {
		return "." + filepath.Base(dir) + ".part-*"
	}
	return "." + name + "-*"
}

// copyStream copies a stream, again if it breaks off.
func (s *Store) copyStream(ctx context.Context, name, dir string) (one *Stream, err error) {
	for attempt := 1; ; attempt++ {
		one, err = s.copyOnce(ctx, name, filepath.Join(dir, name))
		var refused *jetstream.APIError
		final := errors.As(err, &refused) && refused.Code < 500 || errors.Is(err, conn.ErrNotAllowed) || ctx.Err() != nil
		if err == nil || final || attempt == tries {
			return one, err
		}
		if conn.Sleep(ctx, conn.Backoff(attempt)) != nil {
			return nil, err
		}
	}
}

// snapshot is the server's answer to the request for an archive.
type snapshot struct {
	Error  *jetstream.APIError `json:"error,omitempty"`
	Config json.RawMessage     `json:"config"`
	State  json.RawMessage     `json:"state"`
}

// copyOnce copies a stream into a folder of its own.
func (s *Store) copyOnce(ctx context.Context, name, dir string) (*Stream, error) {
	one := &Stream{Name: name, File: archive(s.conn.NC.ConnectedServerVersion())}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, one.File), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	about, err := s.receive(ctx, name, f)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(snapshot{Config: about.Config, State: about.State}, "", "  ")
	if err != nil {
		return nil, err
	}
	if err := writeFile(filepath.Join(dir, stateFile), data); err != nil {
		return nil, err
	}
	if err := syncDir(dir); err != nil {
		return nil, err
	}
	if one.SHA256, one.Bytes, err = hashFile(filepath.Join(dir, one.File)); err != nil {
		return nil, err
	}
	if one.StateSHA256, _, err = hashFile(filepath.Join(dir, stateFile)); err != nil {
		return nil, err
	}
	var state jetstream.StreamState
	if err := json.Unmarshal(about.State, &state); err != nil {
		return nil, fmt.Errorf("its state cannot be read: %w", err)
	}
	one.Messages, one.Last = state.Msgs, state.LastSeq
	return one, nil
}

// receive has the server send the archive of a stream, and writes it.
func (s *Store) receive(ctx context.Context, name string, w io.Writer) (*snapshot, error) {
	nc := s.conn.NC
	inbox := nc.NewInbox()
	// Subscribed before the request is sent: the server begins to send as soon as there is
	// a subscriber, and the first part must not be lost.
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, err
	}
	defer func() { _ = sub.Unsubscribe() }()
	if err := sub.SetPendingLimits(-1, -1); err != nil {
		return nil, err
	}
	about, err := s.request(ctx, "STREAM.SNAPSHOT."+name, map[string]any{"deliver_subject": inbox})
	if err != nil {
		return nil, err
	}
	for {
		msg, err := next(ctx, sub)
		if err != nil {
			return nil, fmt.Errorf("the server does not continue: %w", err)
		}
		if len(msg.Data) == 0 {
			if status := msg.Header.Get("Status"); status != "" && status != "204" {
				return nil, fmt.Errorf("the server gave up: %s %s", status, msg.Header.Get("Description"))
			}
			return about, nil
		}
		if _, err := w.Write(msg.Data); err != nil {
			return nil, err
		}
		// Only what is written is acknowledged, so no more than the server's window
		// is in memory.
		if msg.Reply != "" {
			if err := nc.Publish(msg.Reply, nil); err != nil {
				return nil, err
			}
		}
	}
}

// next returns the next message of a subscription.
func next(ctx context.Context, sub *nats.Subscription) (*nats.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	return sub.NextMsgWithContext(ctx)
}

// request calls the JetStream API once. A second call would begin a second
// archive.
func (s *Store) request(ctx context.Context, name string, request any) (*snapshot, error) {
	data, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	var about snapshot
	err = s.conn.Permitted(ctx, "$JS.API."+name, func(ctx context.Context) error {
		reply, err := s.conn.NC.RequestWithContext(ctx, "$JS.API."+name, data)
		if err != nil {
			return err
		}
		return json.Unmarshal(reply.Data, &about)
	})
	switch {
	case err != nil:
		return nil, err
	case about.Error != nil:
		return nil, about.Error
	}
	return &about, nil
}

// archive returns the name that the nats command line gives to an archive of
// a server's version.
func archive(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	a, _ := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	if a < 2 || a == 2 && b < 15 {
		return "stream.tar.s2"
	}
	return "stream.arc.s2"
}

// writeFile writes a file that is on the disk when it returns.
func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}
