package backup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/journal"
	"github.com/pfl-forge/pfl-forge/bus/journal/chain"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// ErrNotEmpty says that a server has streams of an installation already.
var ErrNotEmpty = errors.New("the server is not empty")

// unpacking bounds how long the server may take for what it has received.
const unpacking = time.Hour

// Restored says what a restored server holds.
type Restored struct {
	// Journals and Records count what the journals hold.
	Journals int `json:"journals"`
	Records  int `json:"records"`
	// LeftOut counts the records of projects that followed from records of
	// intents which are not in the backup; see the package.
	LeftOut int `json:"left_out" yaml:"left_out"`
	// Findings name each break of a journal; empty if all are whole.
	Findings []chain.Finding `json:"findings"`
}

// Options change how streams are restored.
type Options struct {
	// Replicas is how many servers keep each stream; 0: as many as before.
	Replicas int
	// Done is called with each stream.
	Done func(Stream)
}

// Restore puts a backup into a server that has no stream of an installation,
// and on which no service works. Nothing is changed before all files are
// known to be what was copied. When it is cut off, it can be called again: a
// stream that is there as it was copied stays. Error: ErrNotEmpty.
func (s *Store) Restore(ctx context.Context, dir string, o Options) (*Restored, error) {
	m, err := Open(dir)
	if err != nil {
		return nil, err
	}
	there, err := s.empty(ctx, m)
	if err != nil {
		return nil, err
	}
	// Backwards: a runner that was started too early finds no journal.
	for i := len(m.Streams) - 1; i >= 0; i-- {
		one := &m.Streams[i]
		if !there[one.Name] {
			if err := s.restoreStream(ctx, dir, one, o.Replicas); err != nil {
				return nil, fmt.Errorf("restore stream %s: %w", one.Name, err)
			}
		}
		o.Done(*one)
	}
	out := &Restored{}
	if out.LeftOut, err = s.leaveOut(ctx, m.of(streams.Journal).Last); err != nil {
		return nil, err
	}
	return out, s.audit(ctx, out)
}

// empty returns which streams are there as they were copied, or an error if
// one is otherwise.
func (s *Store) empty(ctx context.Context, m *Manifest) (map[string]bool, error) {
	there := map[string]bool{}
	for _, cfg := range streams.All(1) {
		info, err := s.conn.JS.Stream(ctx, cfg.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for stream %s: %w", cfg.Name, err)
		}
		state, one := info.CachedInfo().State, m.of(cfg.Name)
		if one.Name == "" || state.LastSeq != one.Last || state.Msgs > one.Messages {
			return nil, fmt.Errorf("%w: it has stream %s with %d messages, which a restored one would take the place of; "+
				"stop all services, and restore into a server without streams", ErrNotEmpty, cfg.Name, state.Msgs)
		}
		there[cfg.Name] = true
	}
	return there, nil
}

// restoreStream sends the archive of a stream to the server.
func (s *Store) restoreStream(ctx context.Context, dir string, one *Stream, replicas int) error {
	data, err := os.ReadFile(filepath.Join(dir, one.Name, stateFile))
	if err != nil {
		return err
	}
	var about snapshot
	if err := json.Unmarshal(data, &about); err != nil {
		return fmt.Errorf("%s: %w", stateFile, err)
	}
	if replicas > 0 {
		if about.Config, err = withReplicas(about.Config, replicas); err != nil {
			return err
		}
	}
	f, err := os.Open(filepath.Join(dir, one.Name, one.File))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var begun struct {
		Error *jetstream.APIError `json:"error"`
		To    string              `json:"deliver_subject"`
	}
	request, err := json.Marshal(snapshot{Config: about.Config, State: about.State})
	if err != nil {
		return err
	}
	if err := s.ask(ctx, "$JS.API.STREAM.RESTORE."+one.Name, request, silence, &begun); err != nil {
		return err
	}
	if begun.Error != nil {
		return begun.Error
	}
	chunk := make([]byte, min(128<<10, s.conn.NC.MaxPayload()))
	for {
		n, err := f.Read(chunk)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := s.send(ctx, begun.To, chunk[:n], silence); err != nil {
			return err
		}
	}
	return s.send(ctx, begun.To, nil, unpacking)
}

// send sends a part of an archive, or with none its end.
func (s *Store) send(ctx context.Context, subject string, part []byte, patience time.Duration) error {
	var answer struct {
		Error *jetstream.APIError `json:"error"`
	}
	if err := s.ask(ctx, subject, part, patience, &answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error
	}
	return nil
}

// ask sends a request and reads its answer, which may be empty.
func (s *Store) ask(ctx context.Context, subject string, data []byte, patience time.Duration, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.conn.Permitted(ctx, subject, func(ctx context.Context) error {
		reply, err := s.conn.NC.RequestWithContext(ctx, subject, data)
		switch {
		case err != nil:
			return err
		case len(reply.Data) == 0:
			return nil
		case bytes.HasPrefix(reply.Data, []byte("-ERR")):
			return fmt.Errorf("the server says: %s", strings.Trim(strings.TrimPrefix(string(reply.Data), "-ERR"), " '"))
		}
		return json.Unmarshal(reply.Data, answer)
	})
}

// withReplicas returns the configuration of a stream with another number of
// copies.
func withReplicas(config json.RawMessage, replicas int) (json.RawMessage, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(config, &fields); err != nil {
		return nil, fmt.Errorf("%s: %w", stateFile, err)
	}
	fields["num_replicas"] = fmt.Append(nil, replicas)
	if replicas > 1 {
		delete(fields, "persist_mode") // that of a single server
	}
	return json.Marshal(fields)
}

// leaveOut removes the records of projects that followed from intents'
// records after a sequence, which are not in the backup, and all later ones
// of these projects. It returns how many it removed. The intents send their
// messages again, since nothing shows any more that they arrived.
func (s *Store) leaveOut(ctx context.Context, last uint64) (int, error) {
	projects, err := s.conn.JS.Stream(ctx, streams.Projects)
	if err != nil {
		return 0, err
	}
	var gone []uint64
	ends := map[string]bool{} // the journals that end before
	err = s.journal.Each(ctx, forge.Key{}, func(e *journal.Entry) error {
		if !e.Key.IsProject() || e.Late {
			return nil
		}
		for _, text := range e.Anchors {
			ref, err := chain.ParseRef(text)
			if err != nil {
				continue // the audit says so
			}
			if key, err := subjects.ParseJournal(ref.Subject); err == nil && !key.IsProject() && ref.Seq > last {
				ends[e.Subject] = true
			}
		}
		if ends[e.Subject] {
			gone = append(gone, e.Seq)
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	// From the end, so that a journal is whole whenever this is cut off.
	for _, seq := range slices.Backward(gone) {
		if err := projects.DeleteMsg(ctx, seq); err != nil {
			return 0, fmt.Errorf("leave out message %d of %s: %w", seq, streams.Projects, err)
		}
	}
	return len(gone), nil
}

// audit reads all journals, and notes what is wrong with them.
func (s *Store) audit(ctx context.Context, out *Restored) error {
	a := chain.NewAudit(func(string) bool { return true })
	err := s.journal.Each(ctx, forge.Key{}, func(e *journal.Entry) error {
		a.Add(&e.Link)
		return nil
	})
	if err != nil {
		return err
	}
	out.Journals, out.Records = a.Count()
	out.Findings = a.Findings()
	return nil
}
