package turns

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	forge "github.com/pfl-forge/pfl-forge"
	"github.com/pfl-forge/pfl-forge/bus/internal/conn"
	"github.com/pfl-forge/pfl-forge/bus/internal/streams"
	"github.com/pfl-forge/pfl-forge/bus/subjects"
)

// counted is after how long the server surely counts a message that it has stored as
// one that waits: it does that beside, and a look right after storing does not show it.
const counted = time.Second

// stored is a command that was stored for the workers.
type stored struct {
	// seq is the command's sequence in the stream. Workers take commands in the order of these.
	seq uint64
	// at is when this process heard of it.
	at time.Time
}

// lineView has this process's knowledge of a line: which projects have commands in it,
// and how many more may go to the workers. All of it can be wrong, because others store
// and move commands as well: a look at the server puts it right, and find adds projects.
type lineView struct {
	// line names the subjects and consumers.
	line subjects.Line
	conn *conn.Conn

	mu sync.Mutex
	// ring has the projects that have commands in the line, the next one first.
	ring []forge.ProjectID
	// serving says that commands are being moved: one may be on its way that is
	// of a project which is not in the ring.
	serving bool
	// room is how many commands may be stored for the workers before they are
	// looked at again, as it was when they were looked at. It follows from how
	// quick they were, and so it is not believed for longer than span.
	room   int
	looked time.Time
	// away is how many commands are at the workers, as far as this process knows:
	// others store commands and hear of results as well. Each look puts it right.
	away int
	// entering is how many others may not be stored yet, so that a look does not show them.
	entering int
	// fresh are the commands that this process stored for the workers lately.
	fresh []stored
	pace  pace
}

// enter reports whether a command may be stored for the workers at once.
func (l *lineView) enter(ctx context.Context) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ring) > 0 || l.serving {
		return false, nil
	}
	// With less than that at the workers nothing need be looked at: so it is
	// where there is little to do.
	if l.away >= least {
		if l.room == 0 || time.Since(l.looked) > span {
			if err := l.look(ctx); err != nil {
				return false, err
			}
		}
		if l.room == 0 {
			return false, nil
		}
	}
	l.room = max(l.room-1, 0)
	l.away++
	l.entering++
	return true, nil
}

// answered notes that a command at the workers has its result.
func (l *lineView) answered() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = max(l.away-1, 0)
}

// entered says that a command which entered is stored with a sequence, or could not be: 0.
func (l *lineView) entered(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entering--
	if seq > 0 {
		l.fresh = append(l.fresh, stored{seq, time.Now()})
	}
}

// uncounted returns how many commands this process has stored for the workers
// behind the last one that they took.
func (l *lineView) uncounted(now time.Time, taken uint64) int {
	l.fresh = slices.DeleteFunc(l.fresh, func(s stored) bool { return s.seq <= taken || now.Sub(s.at) > counted })
	return len(l.fresh)
}

// look finds out how much room there is at the workers. The caller has the
// lock: others wait for the look, and need none.
func (l *lineView) look(ctx context.Context) error {
	var info struct {
		Pending   int `json:"num_pending"`
		Taken     int `json:"num_ack_pending"`
		Delivered struct {
			Consumer uint64 `json:"consumer_seq"`
			Stream   uint64 `json:"stream_seq"`
		} `json:"delivered"`
	}
	err := l.conn.API(ctx, "CONSUMER.INFO."+streams.Commands+"."+l.line.Consumer(), struct{}{}, &info)
	var refused *jetstream.APIError
	if errors.As(err, &refused) && refused.ErrorCode == jetstream.JSErrCodeConsumerNotFound {
		l.room, l.looked = max(least-l.entering, 0), time.Now() // no worker was there yet; it makes the consumer
		return nil
	}
	if err != nil {
		return err
	}
	now := time.Now()
	waiting := max(info.Pending, l.uncounted(now, info.Delivered.Stream)) + l.entering
	l.away = waiting + info.Taken
	l.room, l.looked = max(l.pace.look(now, info.Delivered.Consumer)-waiting, 0), now
	return nil
}

// add notes that a project has a command in the line.
func (l *lineView) add(project forge.ProjectID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Contains(l.ring, project) {
		l.ring = append(l.ring, project)
	}
}

// begin returns how many commands may be moved, and of how many projects there
// are some. The caller ends with end.
func (l *lineView) begin(ctx context.Context) (room, projects int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ring) == 0 {
		return 0, 0, nil
	}
	if err := l.look(ctx); err != nil {
		return 0, 0, err
	}
	l.serving = true
	return l.room, len(l.ring), nil
}

// next takes the project out of the ring whose turn it is.
func (l *lineView) next() (project forge.ProjectID, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ring) == 0 {
		return "", false
	}
	project = l.ring[0]
	l.ring = slices.Delete(l.ring, 0, 1)
	return project, true
}

// moved notes that a command was moved, and is stored for the workers with a sequence.
func (l *lineView) moved(seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.room = max(l.room-1, 0)
	l.away++
	l.fresh = append(l.fresh, stored{seq, time.Now()})
}

// end says that no command is being moved any more.
func (l *lineView) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.serving = false
}

// busy reports whether anything is in the line.
func (l *lineView) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ring) > 0 || l.serving
}
